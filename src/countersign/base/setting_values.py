"""The values of settings, each read from its text. A `ValueError` says what was expected."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from countersign.base.host import PORT_MAX, Network, is_loopback, is_wildcard

DATABASE_SCHEMES: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?(?:/[A-Za-z0-9._~/-]*)?\Z"
)
_STORE: Final = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9](?:[A-Za-z0-9._/-]*)\Z")
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,5})\Z")

SENDER: Final = re.compile(
    r"[A-Za-z0-9._+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}\Z"
)
_SMTP_SCHEMES: Final = {
    "smtp": ("none", 25),
    "smtp+starttls": ("starttls", 587),
    "smtps": ("tls", 465),
}


class Rate(NamedTuple):
    """At most this many requests in this many seconds."""

    requests: int
    seconds: int


class MailServer(NamedTuple):
    """A mail server that takes mail to pass on."""

    host: str
    port: int
    tls: str
    """`none`, `starttls` (required), or `tls` from the first byte."""
    user: str | None
    password: str | None

    def __repr__(self) -> str:
        return f"MailServer({self.host}:{self.port})"


def expecting(expected: str, convert: Callable[[str], object]) -> Callable[[str], object]:
    """A reader that converts; if that fails or gives None, it raises ValueError with `expected`.

    No message repeats the text: a URL may hold a password.
    """

    def read(text: str) -> object:
        try:
            value = convert(text)
        except (ValueError, KeyError, OSError):
            value = None
        if value is None:
            raise ValueError(expected)
        return value

    return read


def one_of(*words: str) -> Callable[[str], object]:
    """The reader of one of these words."""
    return expecting(" or ".join(words), {word: word for word in words}.get)


def number(least: int, most: int) -> Callable[[str], object]:
    def convert(text: str) -> int | None:
        is_number = text.isascii() and text.isdigit()
        return int(text) if is_number and least <= int(text) <= most else None

    return expecting(f"a number from {least} to {most}", convert)


def to_host(text: str) -> str:
    if text != "localhost":
        ip_address(text)
    return text


def to_url(text: str) -> str | None:
    # The URL goes into headers, so only harmless characters are allowed.
    match = _URL.match(text)
    host = text.partition("://")[2].partition("/")[0]
    if match is None or int(match[1] or 1) > PORT_MAX or is_wildcard(host):
        return None
    return text.rstrip("/")


def to_issuer(text: str) -> str | None:
    # Unchanged: an issuer is compared character by character, including a trailing slash.
    is_safe = text.startswith("https://") or is_loopback(urlsplit(text).netloc)
    return text if is_safe and to_url(text) else None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def to_urls(text: str) -> tuple[str, ...] | None:
    urls = tuple(_parts(text))
    fine = all(url.startswith(("https://", "http://")) and url.isprintable() for url in urls)
    return urls if fine else None


def networks(text: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, _parts(text)))


def to_visible(text: str) -> str | None:
    return text if re.fullmatch(r"[ -~]{1,1024}", text) else None


def to_header(text: str) -> str | None:
    return text.lower() if re.fullmatch(r"[A-Za-z0-9-]{1,64}", text) else None


def to_heads(text: str) -> Path | str | None:
    if "://" not in text:
        return Path(text)
    return text.rstrip("/") if _STORE.match(text) else None


def to_rate(text: str) -> Rate | None:
    if text == "off":
        return None
    match = _RATE.match(text)
    if match is None:
        raise ValueError("requests/seconds, such as 6000/60, or off")
    return Rate(int(match[1]), int(match[2]))


def to_proxy(text: str) -> str | None:
    parts = urlsplit(text)
    fine = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    if fine and text.isprintable() and not (parts.path + parts.query + parts.fragment):
        return text
    return None


def starts_with(*schemes: str) -> Callable[[str], str | None]:
    return lambda text: text if text.startswith(schemes) and text.isprintable() else None


def to_mail_server(text: str) -> MailServer | None:
    parts = urlsplit(text)
    tls, port = _SMTP_SCHEMES[parts.scheme]
    user, password = (
        part and unquote(part, errors="strict") for part in (parts.username, parts.password)
    )
    rest = parts.path.strip("/") + parts.query + parts.fragment
    is_whole = parts.hostname and (user is None) == (password is None) and not rest
    # A password is not sent in the clear, but to this machine.
    is_safe = user is None or tls != "none" or is_loopback(parts.netloc.rpartition("@")[2])
    if not is_whole or not is_safe or not f"{text}{user}{password}".isprintable():
        return None
    return MailServer(parts.hostname or "", parts.port or port, tls, user, password)


def to_key_source(text: str) -> str | None:
    scheme, _, rest = text.partition(":")
    if scheme == "command":
        return text if shlex.split(rest) else None  # ValueError if a quote is not closed
    return text if scheme in {"file", "env"} and rest.strip() else None


ADDRESS: Final = expecting("an IP address to listen on, such as 127.0.0.1 or 0.0.0.0", to_host)
PORT: Final = number(1, PORT_MAX)
BOOLEAN: Final = expecting("true or false", {"true": True, "false": False}.get)
VISIBLE: Final = expecting("at most 1,024 printable ASCII characters", to_visible)
