"""How readable a colour is: contrast as WCAG 2.2 defines it (1.4.3)."""

from __future__ import annotations

import re
from typing import Final

NEEDED: Final = 4.5
"""Of text to what is behind it."""
_COLOR: Final = re.compile("#[0-9a-fA-F]{6}")
_WHITE: Final = 1.0
_BLACK: Final = 0.0


def contrasts(color: str | None) -> dict[str, float]:
    """The contrast of white and of black text on a colour `#rrggbb`, from 1 to 21; else {}."""
    if color is None or not _COLOR.fullmatch(color):
        return {}
    own = _luminance(color)
    return {"white": round(_of(own, _WHITE), 1), "black": round(_of(own, _BLACK), 1)}


def _of(one: float, other: float) -> float:
    dark, light = sorted((one, other))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
