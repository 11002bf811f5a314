"""A small browser without JavaScript: cookies, links, forms, and nothing else."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Self
from urllib.parse import urlencode, urljoin, urlsplit

import httpx2

from tests.checkout.buyer import Buyer
from tests.http.backstage import make_client
from tests.support.service import Server

_VOID = {"meta", "input", "img", "br", "link"}
Finish = Callable[[], str]
"""Ends a request, and gives the whole response."""


@dataclass
class Form:
    """A form: its action and the values of its fields."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)
    """The names of boxes that are not ticked."""
    texts: list[str] = field(default_factory=list)
    """The names of fields to type in."""


class Page(HTMLParser):
    """The content of a page."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.response = response
        self.status = response.status_code
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self._link: str | None = None
        self._feed(response.text)

    def _feed(self, text: str) -> None:
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    @property
    def text(self) -> str:
        """The words of the page, without its style and script."""
        return re.sub(r"\s+", " ", " ".join(self.words))

    @property
    def heading(self) -> str:
        found = re.search(r"<h1>(.*?)</h1>", self.response.text)
        assert found is not None
        return found[1]

    @property
    def form(self) -> Form:
        """The first form that is sent."""
        return next(form for form in self.forms if form.method == "post")

    @property
    def policy(self) -> dict[str, str]:
        parts = self.response.headers["content-security-policy"].split(";")
        return dict(part.strip().partition(" ")[::2] for part in parts)

    def having(self, **attributes: str) -> list[dict[str, str]]:
        """The elements with these attributes."""
        return [have for _, have in self.elements if attributes.items() <= have.items()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        self.elements.append((tag, have))
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "a":
            self._link = have["href"]
        elif tag == "form":
            self.forms.append(Form(have.get("action", ""), have.get("method", "get")))
        elif tag == "input" and self.forms:
            form, name, kind = self.forms[-1], have["name"], have.get("type", "text")
            if kind == "checkbox" and "checked" not in have:
                form.boxes.append(name)
            elif kind != "radio" or "checked" in have:
                form.fields[name] = have.get("value", "")
            if kind == "text":
                form.texts.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag
        if tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in {"style", "script"}:
            self.words.append(data)
            if self._link is not None and data.strip():
                self.links[data.strip()] = self._link


class Surfer:
    """A buyer's browser with a link."""

    def __init__(self, server: Server, buyer: Buyer, **headers: str) -> None:
        self.client = make_client(server, **headers)
        self.client.follow_redirects = True
        self.buyer = buyer
        self.path = f"/c/{buyer.session['client_token']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @property
    def root(self) -> str:
        return f"/c/{self.buyer.id}"

    def open(self, path: str | None = None) -> Page:
        """Open the link, or an address of the same service."""
        return self._page(self.client.get(self.path if path is None else path))

    def follow(self, page: Page, words: str) -> Page:
        return self._page(self.client.get(urljoin(str(page.response.url), page.links[words])))

    def send(self, form: Form, **changes: str | None) -> Page:
        """Send a form; None leaves a field out."""
        fields = {**form.fields, **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        return self._page(self.client.post(form.action, data=sent))

    def initial(self, page: Page, initials: str = "AB") -> Page:
        """Type the same initials in every field, and go on to the review."""
        return self.send(page.form, **dict.fromkeys(page.form.texts, initials))

    def agree(self, page: Page) -> Page:
        """Tick every box of the review, and send it."""
        return self.send(page.form, **dict.fromkeys(page.form.boxes, "yes"))

    def complete(self) -> Page:
        return self.agree(self.initial(self.open()))

    def _page(self, response: httpx2.Response) -> Page:
        check_headers(response)
        page = Page(response)
        assert self.buyer.session["client_token"] not in response.text
        return page


def check_headers(response: httpx2.Response) -> None:
    """Whatever is below `/c/` has these, errors too."""
    headers = response.headers
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-robots-tag"] == "noindex"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for part in ("base-uri 'none'", "form-action '", "frame-ancestors "):
        assert part in policy


@contextmanager
def held_back(client: httpx2.Client, path: str, fields: Mapping[str, str]) -> Iterator[Finish]:
    """Send a form of this browser except its end; the result sends the rest.

    By then the service has read the session.
    """
    body = urlencode(fields).encode()
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    host = urlsplit(str(client.base_url))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host.netloc}\r\nCookie: {cookies}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as slow:
        slow.sendall(head.encode() + body[:1])

        def finish() -> str:
            slow.sendall(body[1:])
            return b"".join(iter(lambda: slow.recv(65536), b"")).decode()

        yield finish
