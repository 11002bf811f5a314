"""The pages that the service serves about itself; nothing on them comes from elsewhere."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from countersign import __version__
from countersign.errors import REFUSALS, NotFound
from countersign.http.openapi import openapi_document
from countersign.http.openapi_components import with_references
from countersign.http.reply import JSON, Call, Header, Reply
from countersign.http.route import Route

_HTML: Final[Header] = (b"content-type", b"text/html; charset=utf-8")
_TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")
_SCRIPT: Final[Header] = (b"content-type", b"text/javascript; charset=utf-8")
_ICON: Final[Header] = (b"content-type", b"image/svg+xml")
_FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" '
    'rx="3" fill="#1b4965"/><path d="M4 8.5l2.7 2.7L12 5.4" fill="none" stroke="#fff" '
    'stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_CACHING: Final[Header] = (b"cache-control", b"public, max-age=300")
_templates: Final = Environment(
    loader=PackageLoader("countersign.server"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def document_routes(routes: Sequence[Route[Any]]) -> tuple[Route[object], ...]:
    """Routes for the OpenAPI document and its pages, rendered once."""
    document = openapi_document(routes)
    published = json.dumps(with_references(document), ensure_ascii=False).encode()
    return (
        _page("/openapi.json", JSON, published),
        _html("/", "home.html"),
        _html("/docs/reference", "reference.html", document=document, operations=_by_tag(document)),
        _page("/docs/search.js", _SCRIPT, _templates.get_template("search.js").render().encode()),
        Route(address="GET /docs", handler=_guide),
        Route(address="GET /docs/{path*}", handler=_guide),
        _page("/robots.txt", _TEXT, b"User-agent: *\nDisallow: /\n"),
        _page("/favicon.ico", _ICON, _FAVICON.encode()),
        _html("/docs/errors", "errors.html", errors=_errors()),
    )


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


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    """Method, path and operation, in the groups of the document."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return groups


async def _guide(_: object, call: Call) -> Reply:
    """A guide, a picture in one, or the index of the search; rendered when first asked for."""
    found = (await asyncio.to_thread(_site)).get(call.path)
    if found is None:
        raise NotFound
    return found


@cache
def _site() -> dict[str, Reply]:
    # The parser is loaded when it is needed: it would make every start slower.
    from countersign.server.guides import images, read_guides, search_index  # noqa: PLC0415

    guides = read_guides()
    site = {
        guide.path: _rendered("guide.html", guide=guide, index=guide is guides[0])
        for guide in guides
    }
    found = json.dumps(search_index(guides), ensure_ascii=False).encode()
    site["/docs/search.json"] = Reply(found, (JSON, _CACHING))
    return site | {
        path: Reply(picture, ((b"content-type", b"image/png"), _CACHING))
        for path, picture in images().items()
    }


def _html(path: str, template: str, **context: object) -> Route[object]:
    return _fixed(path, _rendered(template, **context))


def _rendered(template: str, **context: object) -> Reply:
    style = Markup(_templates.get_template("style.css").render())  # noqa: S704 - our own file
    page = _templates.get_template(template).render(
        style=style, version=__version__, code=_code, **context
    )
    policy = (
        f"default-src 'none'; style-src 'sha256-{_base64_sha256(str(style))}'; script-src 'self'; "
        "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = (
        _HTML,
        _CACHING,
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
    )
    return Reply(page.encode(), headers)


def _page(path: str, content_type: Header, body: bytes) -> Route[object]:
    return _fixed(path, Reply(body, (content_type, _CACHING)))


def _fixed(path: str, reply: Reply) -> Route[object]:
    async def serve(_: object, _call: Call) -> Reply:
        return reply

    return Route(address=f"GET {path}", handler=serve)


def _code(text: str) -> Markup:
    """Plain text in which `backquoted` parts become code and empty lines paragraphs."""
    pieces = Markup().escape(text).split("`")
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return Markup("<p>" + marked.replace("\n\n", "</p><p>") + "</p>")  # noqa: S704 - escaped above


def _base64_sha256(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode("ascii")
