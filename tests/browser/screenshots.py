"""Takes the pictures of docs/images: the pages of a buyer in two sizes, a dossier, the console.

`make screenshots` runs this module. It starts its own service and example shop, and writes the
words of each page next to the pictures, so that a test detects pictures with old words. With
`ONLY=console` it takes the pictures of the console alone.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import httpx2
from playwright.sync_api import Browser, BrowserContext, Page

from countersign.core.paper import typeset
from countersign.server.console_host import ROOT
from tests.browser.walk import Walk
from tests.console import pictured
from tests.console.visitor import COOKIE
from tests.storefront.pictured import (
    CERTIFICATE,
    IMAGES,
    SHOP_NAME,
    WORDS,
    certificate,
    running_service,
    words_now,
)
from tests.support.browsers import running_browser
from tests.support.providers import playing

_COLORS: Final = 16
_POINTS: Final = 76.0
"""Resolution of a dossier's picture, in dots per inch."""
_PALETTE: Final = """\
async ([png, most]) => {
  const bytes = Uint8Array.from(atob(png), c => c.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const {width, height} = bitmap;
  const drawn = new OffscreenCanvas(width, height).getContext("2d");
  drawn.drawImage(bitmap, 0, 0);
  const pixels = new Uint32Array(drawn.getImageData(0, 0, width, height).data.buffer);
  const found = new Map();
  for (const one of pixels) found.set(one, (found.get(one) ?? 0) + 1);
  const kept = [...found].sort((a, b) => b[1] - a[1]).slice(0, most).map(([one]) => one);
  const part = (one, at) => (one >> at) & 255;
  const apart = (a, b) => [0, 8, 16].reduce((sum, at) => sum + (part(a, at) - part(b, at)) ** 2, 0);
  const places = new Map();
  for (const one of found.keys()) {
    let best = 0;
    kept.forEach((other, at) => { if (apart(one, other) < apart(one, kept[best])) best = at; });
    places.set(one, best);
  }
  return {
    width, height,
    palette: kept.flatMap(one => [part(one, 0), part(one, 8), part(one, 16)]),
    places: btoa(Array.from(pixels, one => String.fromCharCode(places.get(one))).join("")),
  };
}
"""
"""The commonest colours of a picture, and for each pixel the place of the nearest one."""
_MARGIN: Final = 16.0
"""Around a part of a page of the console."""
_TALLEST: Final = 1400.0
"""For a page of the console: lower parts are not in the picture."""
DEVICES: Final[dict[str, dict[str, Any]]] = {
    "phone": {"viewport": {"width": 360, "height": 640}, "is_mobile": True, "has_touch": True},
    "desktop": {"viewport": {"width": 1024, "height": 640}},
}
_DESK: Final[dict[str, Any]] = {"viewport": {"width": 1120, "height": 640}}


class Photographer(Walk):
    """A buyer who takes a picture of each page."""

    def __init__(self, context: BrowserContext, shop: str, device: str) -> None:
        super().__init__(context.new_page(), shop)
        self.darkroom, self.device = context.new_page(), device

    def take(self, name: str) -> None:
        self.page.evaluate("document.activeElement?.blur()")
        png = self.page.screenshot(full_page=True, animations="disabled")
        (IMAGES / "checkout" / f"{name}-{self.device}.png").write_bytes(
            with_palette(self.darkroom, png)
        )


def with_palette(page: Page, png: bytes) -> bytes:
    """The picture with few colours, which is a fraction of its size."""
    small = page.evaluate(_PALETTE, [b64encode(png).decode(), _COLORS])
    width, height, places = small["width"], small["height"], b64decode(small["places"])
    # Two pixels are a byte; each line is as it is (filter 0).
    rows = (places[at : at + width] for at in range(0, width * height, width))
    lines = b"".join(
        b"\0" + bytes.fromhex(row.hex()[1::2].ljust(width + width % 2, "0")) for row in rows
    )
    parts = (
        (b"IHDR", struct.pack(">2I5B", width, height, 4, 3, 0, 0, 0)),
        (b"PLTE", bytes(small["palette"])),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def buy(walk: Photographer) -> None:
    """Go through a purchase, with every mistake."""
    page, take = walk.page, walk.take
    page.goto(walk.shop)
    take("shop")
    walk.add("handguard")
    walk.fill()
    take("shop-checkout")
    walk.press("Order")
    take("identity")
    page.get_by_label("The address does not match").check()
    walk.press("Start the identity check")
    take("identity-failed")
    walk.identify()
    take("notice")
    walk.follow("Español")
    take("notice-spanish")
    walk.follow("English")
    walk.press("Continue to review")
    take("notice-errors")
    walk.initial()
    take("review")
    walk.agree()
    take("done")
    walk.follow("Your copy, for 30 days")
    take("copy")
    page.go_back()
    walk.follow(f"Return to {SHOP_NAME}")
    take("shop-released")


def fail(walk: Photographer, vendor: httpx2.Client) -> None:
    """Go through everything that ends without one."""
    page, take = walk.page, walk.take
    walk.add("handguard")
    walk.order(zip="94107")
    walk.initial()
    walk.agree()
    walk.follow(f"Return to {SHOP_NAME}")
    take("shop-not-cleared")

    walk.order()
    walk.follow("Decline")
    take("decline")
    walk.press("Yes, decline")
    take("declined")

    walk.order_here()
    walk.identify_apart()
    take("shop-component")
    walk.follow("My order")
    take("shop-open")
    link = page.get_by_role("link", name="Read the notice").get_attribute("href") or ""
    walk.press("Cancel the order")
    page.goto(link)
    take("cancelled")

    walk.order()
    vendor.post("/v1/test/clock/advance", json={"seconds": 3600}).raise_for_status()
    page.reload()
    take("expired")
    page.goto(f"{vendor.base_url}/c/chk_00000000000000000000000000")
    take("unknown")


def be_checked(walk: Photographer) -> None:
    """Go through the states of an identity check at a provider."""
    page, take = walk.page, walk.take

    def begin() -> None:
        walk.add("handguard")
        walk.order()
        walk.follow("Decline")
        walk.follow("No, go back")

    def find(outcome: str) -> None:
        page.locator("#outcome").select_option(outcome)
        page.get_by_role("button").click()
        page.get_by_role("heading", name="Identity check").wait_for()

    begin()
    take("identity-provider")
    page_of_session = page.url
    walk.press("Start the identity check")
    page.get_by_role("heading", name="Agree to the check").wait_for()
    at_provider = page.url
    page.goto(page_of_session)
    page.get_by_text("Continue on another device").click()
    take("identity-waiting")
    page.goto(at_provider)
    find("underage")
    take("identity-not-passed")
    walk.press("Try again")
    find("later")
    take("identity-deciding")


def first_page(path: Path) -> bytes:
    """The first page of the PDF of a dossier, as a picture."""
    with patch("countersign.core.dossiers.pdf.typeset", _drawn):
        return certificate(path)


def _drawn(template: bytes, words: Mapping[str, Any]) -> bytes:
    facts = json.dumps(words)
    source = typeset._parts() + template
    made = typeset._compiler().compile(
        source, format="png", ppi=_POINTS, sys_inputs={"facts": facts}
    )
    page = made[0] if isinstance(made, list) else made
    assert page is not None
    return page


def photograph(browser: Browser, directory: Path) -> None:
    """Take every picture."""
    directory.mkdir()
    page = browser.new_page()
    (IMAGES / "certificate.png").write_bytes(with_palette(page, first_page(CERTIFICATE)))
    with running_service(directory) as (shop, vendor):
        for device, options in DEVICES.items():
            with browser.new_context(**options) as context:
                walk = Photographer(context, shop.url, device)
                buy(walk)
                fail(walk, vendor)
    checks = directory / "checks"
    checks.mkdir()
    with playing("stripe") as provider, running_service(checks, provider) as (shop, _):
        for device, options in DEVICES.items():
            with browser.new_context(**options) as context:
                be_checked(Photographer(context, shop.url, device))


def visit_console(browser: Browser, there: pictured.Staffed) -> None:
    """Take the pictures of the console, as somebody of compliance who is signed in."""
    darkroom = browser.new_page()
    cookie: Any = {"name": COOKIE, "value": there.session, "url": there.url}
    for name, picture in there.pictures.items():
        device = DEVICES["phone"] if picture.is_phone else _DESK
        scheme: Any = "dark" if picture.is_dark else "light"
        with browser.new_context(**device, color_scheme=scheme, timezone_id="UTC") as context:
            context.add_cookies([cookie])
            png = _of_console(context.new_page(), there.url, picture)
        (pictured.FOLDER / f"console-{name}.png").write_bytes(with_palette(darkroom, png))


def _of_console(page: Page, url: str, picture: pictured.Picture) -> bytes:
    """A page of the console, or a part of it."""
    page.goto(f"{url}{ROOT}/{picture.page}")
    if picture.action:
        button = page.locator(
            f'[formaction$="{picture.action}"],'
            f'form[action$="{picture.action}"] button:not([formaction])'
        ).first
        form = button.locator("xpath=ancestor::form")
        for name, value in picture.fields.items():
            form.locator(f"[name={name}]").fill(value)
        button.click()
        page.wait_for_load_state()
    page.evaluate("document.activeElement?.blur()")
    box = page.locator(picture.part or "body").bounding_box()
    assert box is not None
    around: Any = {side: max(box[side] - _MARGIN, 0.0) for side in ("x", "y")}
    around |= {side: box[side] + 2 * _MARGIN for side in ("width", "height")}
    if not picture.part:
        around = box | {"height": min(box["height"], _TALLEST)}
    return page.screenshot(full_page=True, clip=around, animations="disabled")


def main() -> int:
    is_all = "console" not in sys.argv[1:]
    with (
        TemporaryDirectory() as directory,
        pictured.staffed(Path(directory)) as there,
        running_browser() as browser,
    ):
        visit_console(browser, there)
        if is_all:
            photograph(browser, Path(directory) / "shop")
    with TemporaryDirectory() as directory:
        _write(pictured.WORDS, pictured.words_now(Path(directory)))
    if is_all:
        with TemporaryDirectory() as directory:
            _write(WORDS, words_now(Path(directory)))
    return 0


def _write(file: Path, words: Mapping[str, list[str]]) -> None:
    file.write_text(json.dumps(words, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
