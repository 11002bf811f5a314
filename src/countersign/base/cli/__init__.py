"""Parts shared by all commands."""
