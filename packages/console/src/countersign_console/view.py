"""How pages are made: HTML on the server, one style sheet in the page, no third party."""

from __future__ import annotations

import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from countersign.server.console_host import Host, PageReply, PageRequest
from countersign_console import times

WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    (files(__package__) / "words.toml").read_text("utf-8")
)
"""By locale, then by name."""
LOCALES: Final = tuple(WORDS)
_LANGUAGE: Final = "language"
ZONE: Final = "zone"
"""The cookie with the person's time zone. Like the language, it is kept by the browser."""
KEPT_SECONDS: Final = 365 * 86_400
_SAFE: Final = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-robots-tag": "noindex",
    "cross-origin-opener-policy": "same-origin",
}


def locale_of(host: Host, request: PageRequest) -> str:
    """The chosen language, or the first available one of the browser's."""
    chosen = request.query.get("lang") or request.cookies.get(host.cookie_name(_LANGUAGE), "")
    if chosen in LOCALES:
        return chosen
    asked = request.headers.get("accept-language", "")
    wanted = (one.partition(";")[0].strip()[:2].lower() for one in asked.split(","))
    return next((one for one in wanted if one in LOCALES), LOCALES[0])


def keep_locale(host: Host, request: PageRequest, page: PageReply) -> PageReply:
    """The page, with the cookie that keeps the language if it was chosen just now."""
    chosen = request.query.get("lang", "")
    if chosen not in LOCALES:
        return page
    kept = host.cookie(_LANGUAGE, chosen, KEPT_SECONDS)
    return replace(page, headers=[*page.headers, kept])


def word(name: str, words: Mapping[str, str], *kinds: str) -> str:
    """The words for a name of the API, of the first kind that has some."""
    found = (words.get(f"{kind}_{name}") for kind in kinds)
    return next((text for text in found if text is not None), None) or wordless(name)


def wordless(name: str) -> str:
    """A name without words, as it is: a test that opens all pages finds it."""
    return name


def render(
    template: str,
    locale: str,
    status: int = 200,
    script: str = "",
    *,
    verifier: str = "",
    reach: str = "'self'",
    **values: object,
) -> PageReply:
    """A page; `script` is the name of a file among the templates.

    `verifier` is further code, appended, and `reach` the addresses that it may connect to.
    """
    style, style_digest = _part("style.css")
    scripts = [*([_part(script)] if script else ()), *([_digested(verifier)] if verifier else ())]
    context: dict[str, object] = {
        "locales": [(name, words["language_name"]) for name, words in WORDS.items()],
        "words": WORDS[locale],
        "locale": locale,
        "errors": {},
        "style": Markup(style),  # noqa: S704 - a file of this package
        "scripts": [Markup(code) for code, _ in scripts],  # noqa: S704 - of the service
    }
    text = _templates().get_template(template).render(context | values)
    allowed = " ".join(f"'sha256-{digest}'" for _, digest in scripts) or "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_digest}'; script-src {allowed}; "
        f"img-src 'self'; connect-src {reach}; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )
    return PageReply(
        status=status,
        headers=[*_SAFE.items(), ("content-security-policy", policy)],
        body=text.encode(),
    )


def lead(to: str, *headers: tuple[str, str]) -> PageReply:
    """A response that leads to another page (RFC 9110 §15.4.4)."""
    return PageReply(
        status=303, headers=[("location", to), ("cache-control", "no-store"), *headers], body=b""
    )


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["moment"] = times.moment
    made.filters["day"] = times.day
    made.filters["age"] = times.age
    made.filters["number"] = times.number
    made.filters["word"] = word
    return made


@cache
def _part(name: str) -> tuple[str, str]:
    """A file included in the page, and its digest for the policy."""
    return _digested((files(__package__) / "templates" / name).read_text("utf-8"))


def _digested(text: str) -> tuple[str, str]:
    return text, b64encode(sha256(text.encode()).digest()).decode()
