"""Identity providers: a provider's bytes in, facts out."""
