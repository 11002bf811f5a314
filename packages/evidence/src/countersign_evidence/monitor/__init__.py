"""Watching a log from outside: no server, no database, only published data."""
