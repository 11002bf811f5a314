"""The service's own pages; they load nothing from other hosts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from countersign import __version__
from countersign.base.errors import REFUSALS, NotFound
from countersign.core.gate.route import JSON, Header, Reply
from countersign.server.guides import grouped, images, packaged, read_guides, search_index

_FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" '
    'rx="3" fill="#1b4965"/><path d="M4 8.5l2.7 2.7L12 5.4" fill="none" stroke="#fff" '
    'stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_REFERENCE: Final = "/docs/reference"
_CACHING: Final[Header] = (b"cache-control", b"public, max-age=300")
_templates: Final = Environment(
    loader=PackageLoader("countersign.server"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def document(path: str) -> Reply:
    """The page at this path; rendered at the first request."""
    if path in _PAGES:
        return _page(path)
    found = _site().get(path)
    if found is None:
        raise NotFound
    return found


@cache
def missing() -> Reply:
    """The page for unknown paths."""
    return _html("missing.html")._replace(status=NotFound.status)


@cache
def _page(path: str) -> Reply:
    return _PAGES[path]()


@cache
def _site() -> dict[str, Reply]:
    """The guides, the pictures in them, and the index of their search."""
    guides = read_guides()
    groups = grouped(guides)
    site = {guide.path: _html("guide.html", guide=guide, groups=groups) for guide in guides}
    found = json.dumps(search_index(guides), ensure_ascii=False).encode()
    site["/docs/search.json"] = _plain(JSON[1], found)
    pictures = {path: _plain(b"image/png", data) for path, data in images().items()}
    return site | _reference() | pictures


def _openapi() -> dict[str, Any]:
    """The committed document; a test compares it with one made from the routes."""
    found: dict[str, Any] = json.loads(packaged("spec/openapi.json").read_bytes())
    return found


def _reference() -> dict[str, Reply]:
    """The OpenAPI document as pages; each operation includes the components that it uses."""
    document = _openapi()
    components = document["components"]

    def resolved(section: str, value: dict[str, Any]) -> dict[str, Any]:
        shared = value.get("$ref")
        return components[section][shared.rpartition("/")[2]] if shared else value

    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["parameters"] = [resolved("parameters", p) for p in operation["parameters"]]
            operation["responses"] = {
                status: resolved("responses", r) for status, r in operation["responses"].items()
            }
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    groups = {
        name: (f"{_REFERENCE}/{name.lower().replace(' ', '-')}", group)
        for name, group in found.items()
    }
    pages = {
        path: _html("operations.html", name=name, operations=group)
        for name, (path, group) in groups.items()
    }
    types = {f"{_REFERENCE}/types": _html("types.html", schemas=components["schemas"])}
    return {_REFERENCE: _html("reference.html", document=document, groups=groups), **types, **pages}


def _errors() -> list[dict[str, Any]]:
    return [
        {
            "code": error.code,
            "status": error.status,
            "meaning": (error.__doc__ or "").partition("\n")[0],
            "remedy": error.remedy,
        }
        for error in sorted(REFUSALS, key=lambda error: error.code)
    ]


def _html(template: str, **context: object) -> Reply:
    style = Markup(_templates.get_template("style.css").render())  # noqa: S704 - our own file
    page = _templates.get_template(template).render(
        style=style, version=__version__, code=_code, **context
    )
    style_digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_digest}'; script-src 'self'; "
        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = (
        (b"content-type", b"text/html; charset=utf-8"),
        _CACHING,
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
    )
    return Reply(page.encode(), headers)


def _plain(kind: bytes, body: bytes) -> Reply:
    return Reply(body, ((b"content-type", kind), _CACHING))


def _code(text: str) -> Markup:
    """Plain text as HTML, with `backquoted` parts as code and empty lines between paragraphs."""
    pieces = Markup().escape(text).split("`")
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return Markup("<p>" + marked.replace("\n\n", "</p><p>") + "</p>")  # noqa: S704 - escaped above


_PAGES: Final[dict[str, Callable[[], Reply]]] = {
    "/": lambda: _html("home.html"),
    "/openapi.json": lambda: _plain(JSON[1], json.dumps(_openapi(), ensure_ascii=False).encode()),
    "/docs/errors": lambda: _html("errors.html", errors=_errors()),
    "/docs/search.js": lambda: _plain(
        b"text/javascript; charset=utf-8", _templates.get_template("search.js").render().encode()
    ),
    "/robots.txt": lambda: _plain(b"text/plain; charset=utf-8", b"User-agent: *\nDisallow: /\n"),
    "/favicon.ico": lambda: _plain(b"image/svg+xml; charset=utf-8", _FAVICON.encode()),
}
