"""Blank text: text without a visible character."""

from countersign_evidence.offline import verify as rules


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen.

    By the list of code points that readers of evidence have, in each version of Unicode the same:
    white space, control and format characters, default-ignorable code points, private use,
    noncharacters, combining marks, emoji modifiers and a few characters that show nothing. Where
    something visible is left, the rest does no harm.
    """
    return not (text.isascii() and text.isalnum()) and rules.is_blank(text)
