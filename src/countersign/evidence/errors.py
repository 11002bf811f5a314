"""The one error that evidence code lets out."""


class EvidenceError(ValueError):
    """The input cannot become evidence, or is not the evidence that a function reads or checks.

    Each reader and each check in this room raises it, and its docstring says more only where that
    is not plain from what it reads.
    """
