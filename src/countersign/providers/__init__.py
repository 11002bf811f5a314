"""Identity providers. This release has the sandbox only."""
