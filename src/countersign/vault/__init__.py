"""Keys and envelopes for what is personal or secret."""
