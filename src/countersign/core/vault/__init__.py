"""Keys and envelopes for personal and secret data."""
