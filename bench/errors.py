"""What may stop a run."""


class BenchError(Exception):
    """A run cannot go on; the message says why and what to do."""
