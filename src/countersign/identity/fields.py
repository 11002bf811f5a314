"""How each field of a provider's answer is used; every field that a provider describes is sorted.

A field nobody has sorted is a question nobody has asked: the tests fail on it.
"""

from enum import StrEnum


class Use(StrEnum):
    """What a field is to us."""

    CHECKED = "checked"
    """Compared with what it has to be: a status, an identifier, a mode."""
    REQUIRED = "required"
    """Without it, a fact is unknown, and nobody is verified."""
    OPTIONAL = "optional"
    """Taken where it is given."""
    IGNORED = "ignored"
    """Known, and of no use to the decision; it stays in the encrypted evidence."""
