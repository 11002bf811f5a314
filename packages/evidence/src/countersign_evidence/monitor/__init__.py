"""Watching a log from outside: no server, no database, only what the log publishes."""
