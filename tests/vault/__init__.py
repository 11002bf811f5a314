"""The vault: envelopes, keys and their rotation."""
