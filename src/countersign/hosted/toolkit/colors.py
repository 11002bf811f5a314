"""A vendor's colour, made readable: contrast as WCAG 2.2 defines it (1.4.3)."""

from __future__ import annotations

from typing import Final, NamedTuple

CONTRAST: Final = 4.5
"""Contrast of text with its background."""
SURFACES: Final = ("#fff", "#f5f7f9", "#eef1f4")
DARK_SURFACES: Final = ("#0d1217", "#151c23", "#1d262f")
"""Background colours of text, from `web/design/tokens.css`: light and dark."""
_LIGHT_MIN: Final = 0.1791
"""From this luminance on, black on a colour has more contrast than white: at least 4.58 to 1."""
_STEPS: Final = 32


class Palette(NamedTuple):
    """The uses of a colour; each is `#rrggbb` or `#rgb`."""

    brand: str
    on_brand: str
    ink: str
    """For text and marks on the surfaces, in light mode."""
    dark_ink: str


def palette(color: str) -> Palette:
    """The colours derived from one of the form `#rrggbb`."""
    return Palette(
        color, on_color(color), _towards(color, 0, SURFACES), _towards(color, 255, DARK_SURFACES)
    )


def on_color(color: str) -> str:
    """Black or white, whichever is easier to read on this colour."""
    return "#000" if luminance(color) > _LIGHT_MIN else "#fff"


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of a colour, from 0 to 1."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (part / 255 for part in _parts(color))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _towards(color: str, end: int, surfaces: tuple[str, ...]) -> str:
    """The colour, as near to black (0) or white (255) as these surfaces need."""
    made = color
    for step in range(_STEPS + 1):
        parts = [round(part + (end - part) * step / _STEPS) for part in _parts(color)]
        made = "#" + "".join(f"{part:02x}" for part in parts)
        if all(contrast(made, surface) >= CONTRAST for surface in surfaces):
            break
    return made


def _parts(color: str) -> tuple[int, int, int]:
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return red, green, blue
