"""The pages that the service serves about itself; nothing on them comes from elsewhere."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from countersign import __version__
from countersign.bootstrap import Deployment
from countersign.http.errors import STATUS
from countersign.http.openapi import openapi_document
from countersign.http.reply import JSON, Call, Header, Reply
from countersign.http.routes import Route

_HTML: Final[Header] = (b"content-type", b"text/html; charset=utf-8")
_TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")
_ICON: Final[Header] = (b"content-type", b"image/svg+xml")
_FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" '
    'rx="3" fill="#1b4965"/><path d="M4 8.5l2.7 2.7L12 5.4" fill="none" stroke="#fff" '
    'stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_CACHING: Final[Header] = (b"cache-control", b"public, max-age=300")
_templates: Final = Environment(
    loader=PackageLoader("countersign.http"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def document_routes(routes: Sequence[Route]) -> tuple[Route, ...]:
    """Routes for the OpenAPI document and its pages, rendered once."""
    document = openapi_document(routes)
    return (
        _page("/openapi.json", JSON, json.dumps(document, ensure_ascii=False).encode()),
        _html("/docs", "reference.html", document=document),
        _page("/robots.txt", _TEXT, b"User-agent: *\nDisallow: /\n"),
        _page("/favicon.ico", _ICON, _FAVICON.encode()),
        _html("/docs/errors", "errors.html", errors=_errors()),
    )


def _errors() -> list[dict[str, Any]]:
    return sorted(
        (
            {
                "code": error.code,
                "status": status,
                "meaning": (error.__doc__ or "").partition("\n")[0],
                "remedy": error.remedy,
            }
            for error, status in STATUS.items()
        ),
        key=lambda entry: str(entry["code"]),
    )


def _html(path: str, template: str, **context: object) -> Route:
    style = Markup(_templates.get_template("style.css").render())  # noqa: S704 - our own file
    page = _templates.get_template(template).render(
        style=style, version=__version__, code=_code, **context
    )
    hashed = _base64_sha256(str(style))
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    return _page(
        path,
        _HTML,
        page.encode(),
        (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
        (b"referrer-policy", b"no-referrer"),
    )


def _page(path: str, content_type: Header, body: bytes, *headers: Header) -> Route:
    reply = Reply(body, (content_type, _CACHING, *headers))

    async def serve(_deployment: Deployment, _call: Call) -> Reply:
        return reply

    return Route(method="GET", path=path, handler=serve)


def _code(text: str) -> Markup:
    """Plain text in which `backquoted` parts become code and empty lines paragraphs."""
    pieces = Markup().escape(text).split("`")
    marked = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return Markup("<p>" + marked.replace("\n\n", "</p><p>") + "</p>")  # noqa: S704 - escaped above


def _base64_sha256(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode("ascii")
