"""One design: every sheet contains it, and every possible vendor colour is readable."""

from __future__ import annotations

import re
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from countersign.hosted.toolkit.screens import CONTRAST, DARK_SURFACES, SURFACES, contrast, palette
from tools.design import SHEETS, TOKENS, with_design

PROPERTY: Final = re.compile(r"--([\w-]+): ([^;]+);")
LIGHT, DARK = (
    dict(PROPERTY.findall(block)) for block in TOKENS.read_text(encoding="utf-8").splitlines()
)
EDGE: Final = 3.0
"""The contrast of controls with their background (WCAG 2.2, 1.4.11)."""
COLORS: Final = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


def test_every_sheet_contains_the_design_unchanged() -> None:
    """After a change of it: `make docs`."""
    for sheet in SHEETS:
        text = sheet.read_text(encoding="utf-8")
        assert with_design(text) == text, sheet


def test_the_surfaces_of_the_design_are_those_that_colours_are_computed_for() -> None:
    names = ("paper", "soft", "ground")
    assert {LIGHT[name] for name in names} == set(SURFACES)
    assert {DARK[name] for name in names} == set(DARK_SURFACES)


def test_every_text_of_the_design_can_be_read_on_every_surface() -> None:
    for tokens, surfaces in ((LIGHT, SURFACES), (DARK, DARK_SURFACES)):
        for surface in surfaces:
            for name in ("ink", "quiet", "link", "good", "bad", "caution"):
                assert contrast(tokens[name], surface) >= CONTRAST, (name, surface)
            assert contrast(tokens["edge"], surface) >= EDGE, surface


@given(COLORS)
@example("#757575")
@example("#767676")
@example("#ffff00")
@example("#000000")
def test_every_colour_of_a_vendor_can_be_read(color: str) -> None:
    made = palette(color)
    assert made.brand == color
    assert contrast(made.brand, made.on_brand) >= CONTRAST
    assert all(contrast(made.ink, surface) >= CONTRAST for surface in SURFACES)
    assert all(contrast(made.dark_ink, surface) >= CONTRAST for surface in DARK_SURFACES)


def test_a_readable_colour_is_not_changed() -> None:
    assert palette("#1b4965").ink == "#1b4965"
    assert contrast("#000", "#fff") == 21
