"""How the pages of a checkout session are made: HTML that loads nothing but the vendor's logo.

Style and script stand in the page, and the content security policy names them by their digests.
"""

from __future__ import annotations

import re
import tomllib
from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

from countersign.base.errors import (
    InvalidRequest,
    NotFound,
    RateLimited,
    Refusal,
    Retryable,
    UnsupportedMediaType,
)
from countersign.base.http.body import DOOR_BYTES_MAX, form_pairs
from countersign.core.acknowledgments.model import Origin, resolve_browser
from countersign.core.checkout.brand import FONTS, Brand
from countersign.core.checkout.room import Checkout
from countersign.core.gate.route import NO_STORE, Call, Header, Reply

if TYPE_CHECKING:
    from jinja2 import Environment


WORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    (files("countersign.hosted.toolkit") / "words.toml").read_text("utf-8")
)
"""By locale, then by name; `{vendor}`, `{number}` and `{provider}` are placeholders."""
LOCALES: Final = tuple(WORDS)


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


COLOR: Final = "#1b4965"
"""For a vendor without a color."""
PRIVATE: Final[tuple[Header, ...]] = (
    NO_STORE,
    (b"referrer-policy", b"no-referrer"),
    (b"x-robots-tag", b"noindex"),
)
_ALONE: Final[Header] = (b"cross-origin-opener-policy", b"same-origin")
"""No page of another site that has opened this one keeps a hold of its window (HTML §7.1.3).

On every page: if only some had it, a shop could tell which page its visitor has seen.
"""
_HTML: Final[Header] = (b"content-type", b"text/html; charset=utf-8")

_WEIGHT: Final = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.ASCII)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_GAP: Final = re.compile(r"\s*([{};,])\s*|(?<=:)\s+")
_INDENT: Final = re.compile(r"^[ \t]+", re.MULTILINE)
"""Indentation, which every page would carry."""
_OWN_PATH: Final = re.compile(r"(?P<page>/buyer|/c/[\w-]+)(?P<rest>[\w./-]*)", re.ASCII)

_kept: dict[Hashable, tuple[bytes, tuple[tuple[int, bytes], ...]]] = {}
"""Rendered pages, by the values that they share."""


def screen(
    template: str,
    locale: str,
    brand: Brand | None,
    status: int = 200,
    *,
    framed_by: str = "'none'",
    form_action: str = "'self'",
    scripts: tuple[str, ...] = ("page.js",),
    headers: tuple[Header, ...] = (),
    alike: Hashable | None = None,
    own: tuple[str, ...] = (),
    **context: object,
) -> Reply:
    """A page.

    `framed_by` is the origin of the pages that may embed it, `form_action` the origins that its
    forms may lead to, also by redirects. Pages with the same `alike` are rendered once: they may
    differ only in the texts of `own`, each of which is unique in the page.
    """
    shown = brand or Brand(name="")
    style, style_digest = _style(shown.color or COLOR, shown.font or FONTS[0])
    script, script_digest = _script(scripts)
    key = (template, locale, brand, scripts, len(own), alike)
    kept = None if alike is None else _kept.get(key)
    if kept is None:
        values = {
            "test_mode": False,
            "languages": [(name, words["language_name"]) for name, words in WORDS.items()],
            "here": "",
            "by_link": False,
            "again": None,
            "progress": None,
            "order": "",
            "vendor": brand and brand.name,
            "brand": shown,
            "locale": locale,
            "words": words_of(locale, brand.name if brand else ""),
            "style": style,
            "script": script,
        }
        body = _templates().get_template(template).render(values | context).encode()
        if alike is not None:
            _keep(key, body, own)
    else:
        body = kept[0] + b"".join([own[at].encode() + text for at, text in kept[1]])
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_digest}'; script-src "
        f"'sha256-{script_digest}'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action {form_action}; frame-ancestors {framed_by}"
    )
    safe = (_HTML, *PRIVATE, _ALONE, (b"content-security-policy", policy.encode()))
    return Reply(body, (*safe, *headers), status)


def _keep(key: Hashable, body: bytes, own: tuple[str, ...]) -> None:
    """Cache a page without its own texts: the beginning, and the part after each of them."""
    names = [text.encode() for text in own]
    first, *rest = re.split(b"(" + b"|".join(map(re.escape, names)) + b")", body)
    if len(_kept) >= 256:
        _kept.clear()
    pairs = zip(rest[::2], rest[1::2], strict=True)
    _kept[key] = first, tuple((names.index(name), text) for name, text in pairs)


NO_COOKIE: Final = "This browser has no cookie of this page."
ANOTHER_BROWSER: Final = "The form was served to another browser."
_CAUSES: Final = {NO_COOKIE: "no_cookie", ANOTHER_BROWSER: "another_browser"}
"""The causes that the reader of the page can remove, each with its own text."""
_KINDS: Final = {NotFound: "unknown", RateLimited: "limited"}


def failed(
    error: Refusal, accepted: bytes, known: str = "", path: str = "", *, is_form: bool = False
) -> Reply:
    """The page of an error; `accepted` is the header Accept-Language, `known` a better language.

    It links back to the requested `path`, or to the page of the form. It does not reveal the
    existence of a session that the visitor may not see.
    """
    locale = known or preferred(accepted)
    name = _CAUSES.get(error.message) or _KINDS.get(type(error), "failed")
    words = words_of(locale)
    seconds = str(error.retry_after).encode() if isinstance(error, Retryable) else None
    return screen(
        "failed.html",
        locale,
        None,
        error.status,
        headers=((b"retry-after", seconds),) if seconds else (),
        title=words[f"{name}_title"],
        intro=words[f"{name}_intro"],
        return_url=None,
        again=None if isinstance(error, NotFound) else _again(path, is_form=is_form),
    )


def _again(path: str, *, is_form: bool) -> str | None:
    """The address to retry a failed request to this path; None: not one of ours."""
    found = _OWN_PATH.fullmatch(path)
    return found and found["page"] + ("" if is_form else found["rest"])


def preferred(accepted: bytes) -> str:
    """The best available locale for an Accept-Language header."""
    liked: list[tuple[float, str]] = []
    for one in accepted.decode("latin-1").lower().split(",")[:20]:
        name, _, weight = one.strip().partition(";")
        found = _WEIGHT.fullmatch(weight.strip())
        liking = float(found[1]) if found else 1.0
        if liking and name[:2] in WORDS and name[2:3] in {"", "-"}:
            liked.append((liking, name[:2]))
    return max(liked, key=lambda pair: pair[0], default=(0.0, LOCALES[0]))[1]


def lead(address: str, *headers: tuple[bytes, bytes]) -> Reply:
    """Lead to another address of the page."""
    return Reply(b"", ((b"location", address.encode()), *PRIVATE, _ALONE, *headers), 303)


@lru_cache(maxsize=256)
def words_of(locale: str, vendor: str = "") -> Mapping[str, str]:
    """The texts of the interface, with the vendor's name in them."""
    return {name: text.replace("{vendor}", vendor) for name, text in WORDS[locale].items()}


def part(template: str, locale: str, brand: Brand, **context: object) -> str:
    """A part of a page, as markup."""
    from markupsafe import Markup  # noqa: PLC0415 - see `_templates`

    values = {"words": words_of(locale, brand.name), **context}
    return Markup(_templates().get_template(template).render(values))  # noqa: S704


@lru_cache(maxsize=256)
def _style(color: str, font: str) -> tuple[str, str]:
    values = {"own": palette(color), "font": font}
    text = _COMMENT.sub("", _templates().get_template("style.css").render(values))
    return _own(_GAP.sub(lambda gap: gap[1] or "", text).strip())


@cache
def _script(names: tuple[str, ...]) -> tuple[str, str]:
    texts = [_templates().get_template(name).render() for name in names]
    return _own("".join(_INDENT.sub("", text) + "\n" for text in texts))


def _own(text: str) -> tuple[str, str]:
    """A text of ours to stand in a page as it is, and its digest as a policy names it."""
    from markupsafe import Markup  # noqa: PLC0415 - see `_templates`

    return Markup(text), b64encode(sha256(text.encode()).digest()).decode()  # noqa: S704


@cache
def _templates() -> Environment:
    # Loaded with the first page: it would make every start slower.
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    return Environment(
        loader=PackageLoader("countersign.hosted.toolkit"),
        autoescape=select_autoescape(),
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


FIELDS_MAX: Final = 2000


def browser(room: Checkout, call: Call) -> Origin:
    """Where the browser's own request came from."""
    return resolve_browser(
        call.raw_headers,
        peer=call.peer,
        header=room.client_ip_header,
        trusted_proxies=room.trusted_proxies,
    )


def address_of(room: Checkout, call: Call) -> str:
    """The address of a browser that is not signed in, as the configured proxies tell it.

    "" without any: then the connection's may be that of a proxy, and so everybody's.
    """
    return (browser(room, call).ip or "") if room.trusted_proxies else ""


def read_query(call: Call) -> dict[str, str]:
    """The first value of each parameter of the address.

    Raises:
        InvalidRequest: it is not well formed.
    """
    try:
        query = parse_qs(call.query_string.decode("latin-1"), max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidRequest("The query string is not well formed.") from None
    return {name: values[0] for name, values in query.items()}


async def read_door(room: Checkout, call: Call) -> Mapping[str, str]:
    """The fields of a sign-in form, counted against the browser's address."""
    address = address_of(room, call)
    return await read_form(call, DOOR_BYTES_MAX, (address,) if address else ())


async def read_form(call: Call, most: int, owners: Sequence[str]) -> Mapping[str, str]:
    """The fields of a form of at most `most` bytes, which count for these owners.

    Raises:
        UnsupportedMediaType: the body is no form.
        InvalidRequest: it is not well formed, or has a field twice.
    """
    media_type = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != b"application/x-www-form-urlencoded" or call.read_body is None:
        raise UnsupportedMediaType
    fields = form_pairs(await call.read_body(most, owners), FIELDS_MAX, "form")
    form = dict(fields)
    if len(form) != len(fields) or any("\x00" in value for value in form.values()):
        raise InvalidRequest("The form is not well formed.")
    return form
