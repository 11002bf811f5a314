"""Errors that stop a run."""


class BenchError(Exception):
    """A run cannot continue; the message says why and what to do."""
