"""The nouns of the domain and their rules: frozen types and pure functions."""
