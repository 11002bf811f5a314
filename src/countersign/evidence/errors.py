"""The one error that evidence code lets out."""


class EvidenceError(ValueError):
    """The input cannot become evidence, or is not evidence."""
