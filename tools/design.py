"""The design of every page, copied into each style sheet; `make docs` writes it.

python -m tools.design
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TOKENS: Final = ROOT / "web" / "design" / "tokens.css"
SHEETS: Final = (
    ROOT / "src/countersign/hosted/toolkit/templates/style.css",
    ROOT / "src/countersign/server/templates/style.css",
    ROOT / "packages/evidence/src/countersign_evidence/offline/verify.html",
    ROOT / "examples/storefront/shop.css",
    ROOT / "examples/node-shop/shop.css",
    ROOT / "packages/console/src/countersign_console/templates/style.css",
    ROOT / "examples/oscar-shop/outfitter/static/outfitter/shop.css",
)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_POLICY: Final = re.compile(r"style-src 'sha256-[^']*'")
"""Of a page that has its sheet in itself, and names the sheet by its digest."""
_COPY: Final = re.compile(
    r"(/\* design(, light only)? \*/\n).*?(?=/\* end of design \*/)", re.DOTALL
)
"""Light only: another page's sheet sets the background, and has no dark mode."""


def with_design(text: str) -> str:
    """A style sheet with the design of today.

    Raises ValueError if it has no place for it.
    """
    tokens = TOKENS.read_text(encoding="utf-8")
    light = tokens.splitlines(keepends=True)[0].replace("light dark", "light")
    made, number = _COPY.subn(lambda place: place[1] + (light if place[2] else tokens), text)
    if number != 1:
        raise ValueError("the sheet has no place for the design")
    style = _STYLE.search(made)
    if style is None:
        return made
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    return _POLICY.sub(lambda _: f"style-src 'sha256-{digest}'", made)


if __name__ == "__main__":
    for sheet in SHEETS:
        sheet.write_text(with_design(sheet.read_text(encoding="utf-8")), encoding="utf-8")
