"""Windows of a real browser that report every error."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page

from tests.support import node

_LOOPBACK: Final = {"127.0.0.1", "localhost"}
PHONE: Final = {
    "viewport": {"width": 360, "height": 640},
    "device_scale_factor": 3,
    "is_mobile": True,
    "has_touch": True,
}
_CPU_SLOWDOWN: Final = 4
_SLOW_4G: Final = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "forced colours": {"forced_colors": "active"},
    "200 % zoom": {"viewport": {"width": 640, "height": 512}},
    "400 % zoom": {"viewport": {"width": 320, "height": 256}},
    "phone": {"viewport": {"width": 360, "height": 640}},
}
"""How a page can be shown; each is a state of the window, not of its content."""
_WCAG: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


class Windows:
    """Opens pages, and fails if their console, scripts or policies say anything unexpected."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._trouble: list[str] = []
        self._expected: list[str] = []
        self._hosts: set[str] = set()

    def open(self, **options: Any) -> Page:  # noqa: ANN401 - Playwright's
        """Open an empty page in a profile of its own."""
        context = self._browser.new_context(**options)
        self._contexts.append(context)
        # Violations of a policy are on the console, too, without the blocked content.
        context.add_init_script(
            "addEventListener('securitypolicyviolation', e =>"
            " console.error('CSP', e.violatedDirective, e.blockedURI))"
        )
        context.on("page", self._watch)
        return context.new_page()

    def phone(self, **options: Any) -> Page:  # noqa: ANN401 - Playwright's
        """Open a page on a small phone with a slow network."""
        page = self.open(**PHONE | options)
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", _SLOW_4G)
        return page

    def slow_phone(self, **options: Any) -> Page:  # noqa: ANN401 - Playwright's
        """The same with a slow processor: Chromium keeps ours busy meanwhile, idle or not."""
        page = self.phone(**options)
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": _CPU_SLOWDOWN})
        return page

    def expect_trouble(self, pattern: str) -> None:
        """Expected messages on the console are allowed."""
        self._expected.append(pattern)

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        said = [t for t in self._trouble if not any(re.search(p, t) for p in self._expected)]
        assert not said, said
        assert self._hosts <= _LOOPBACK

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self._trouble.append(str(error)))
        page.on("console", lambda message: self._trouble.append(message.text))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https", "ws", "wss"}:
            self._hosts.add(parts.hostname or "")


def violations(page: Page) -> list[str]:
    """Findings of axe-core in a page, at WCAG 2.2 AA: rule, place and problem."""
    # Its stylesheet has arrived: without it every link is small.
    page.wait_for_load_state("load")
    if not page.evaluate("typeof axe === 'object'"):
        axe = node.AXE / "node_modules" / "axe-core" / "axe.min.js"
        page.evaluate(f"{axe.read_text(encoding='utf-8')}; undefined")
    found = page.evaluate(
        "tags => axe.run({runOnly: tags, resultTypes: ['violations']}).then(r => r.violations)",
        _WCAG,
    )
    return [
        f"{rule['id']} {item['target']}: {item['failureSummary']}"
        for rule in found
        for item in rule["nodes"]
    ]


def assert_accessible(page: Page) -> None:
    """The page does not break WCAG 2.2 AA, as far as a machine can see."""
    assert violations(page) == []


def assert_accessible_in_every_look(page: Page) -> None:
    """The same in all colours and sizes, without horizontal scrolling.

    One walk covers all looks: walking through the pages takes longer than checking them.
    """
    usual = page.viewport_size
    found = {}
    for name, look in LOOKS.items():
        page.emulate_media(
            color_scheme=look.get("color_scheme", "light"),
            forced_colors=look.get("forced_colors", "none"),
        )
        if size := look.get("viewport", usual):
            page.set_viewport_size(size)
        found[name] = violations(page)
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            found[name].append("wider than its window")
    page.emulate_media(color_scheme="null", forced_colors="null")
    if usual:
        page.set_viewport_size(usual)
    assert not any(found.values()), found
