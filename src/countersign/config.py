"""Settings: `COUNTERSIGN_*` variables, or one TOML file, or both (a variable wins).

Each is declared once, on `Settings`: type, reader, default. All are checked at start, and all
mistakes are reported together.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from countersign.errors import InvalidConfiguration
from countersign.host import Network, is_loopback, is_wildcard

PREFIX: Final = "COUNTERSIGN_"
FILE_VARIABLE: Final = "COUNTERSIGN_CONFIG"
AGE_MIN: Final = 18
AGE_MAX: Final = 99
VALIDITY_DAYS_MAX: Final = 365
"""No statute was found to set it; at most 12 months, by choice."""
_EVIDENCE_DAYS_MAX: Final = 3650
_SEAL_WITHIN_MAX: Final = 31 * 86_400
_PORT_MAX: Final = 65535
_WORKERS_MAX: Final = 64
_DRAIN_SECONDS_MAX: Final = 300
_MAILS_MAX: Final = 1_000_000
_DATABASE_SCHEMES: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?(?:/[A-Za-z0-9._~/-]*)?\Z"
)
_STORE: Final = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9](?:[A-Za-z0-9._/-]*)\Z")
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,5})\Z")

_SENDER: Final = re.compile(
    r"[A-Za-z0-9._+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}\Z"
)
_SMTP_SCHEMES: Final = {
    "smtp": ("none", 25),
    "smtp+starttls": ("starttls", 587),
    "smtps": ("tls", 465),
}

_Given: TypeAlias = tuple[str, str | None]
"""Where a value is set, and its text."""


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


class Setting(NamedTuple):
    """How a setting is read (`ValueError`: what was expected), and its text if none is given."""

    read: Callable[[str], object]
    default: str | None


def _setting(read: Callable[[str], object], default: str | None, *, secret: bool = False) -> Any:  # noqa: ANN401 - a field of any type
    return field(metadata={"setting": Setting(read, default)}, repr=not secret)


def _expecting(expected: str, convert: Callable[[str], object]) -> Callable[[str], object]:
    """A reader that converts, and says what was expected where that fails or gives nothing.

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


def _number(least: int, most: int) -> Callable[[str], object]:
    def convert(text: str) -> int | None:
        is_number = text.isascii() and text.isdigit()
        return int(text) if is_number and least <= int(text) <= most else None

    return _expecting(f"a number from {least} to {most}", convert)


def _host(text: str) -> str:
    if text != "localhost":
        ip_address(text)
    return text


def _url(text: str) -> str | None:
    # The URL goes into headers, so only harmless characters are allowed.
    match = _URL.match(text)
    host = text.partition("://")[2].partition("/")[0]
    if match is None or int(match[1] or 1) > _PORT_MAX or is_wildcard(host):
        return None
    return text.rstrip("/")


def _issuer(text: str) -> str | None:
    # As it is written: an issuer is compared letter by letter, also a slash at its end.
    is_safe = text.startswith("https://") or is_loopback(urlsplit(text).netloc)
    return text if is_safe and _url(text) else None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _urls(text: str) -> tuple[str, ...] | None:
    urls = tuple(_parts(text))
    fine = all(url.startswith(("https://", "http://")) and url.isprintable() for url in urls)
    return urls if fine else None


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, _parts(text)))


def _visible(text: str) -> str | None:
    return text if re.fullmatch(r"[ -~]{1,1024}", text) else None


def _header(text: str) -> str | None:
    return text.lower() if re.fullmatch(r"[A-Za-z0-9-]{1,64}", text) else None


def _heads(text: str) -> Path | str | None:
    if "://" not in text:
        return Path(text)
    return text.rstrip("/") if _STORE.match(text) else None


def _rate(text: str) -> Rate | None:
    if text == "off":
        return None
    match = _RATE.match(text)
    if match is None:
        raise ValueError("requests/seconds, such as 6000/60, or off")
    return Rate(int(match[1]), int(match[2]))


def _proxy(text: str) -> str | None:
    parts = urlsplit(text)
    fine = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    if fine and text.isprintable() and not (parts.path + parts.query + parts.fragment):
        return text
    return None


def _starts_with(*schemes: str) -> Callable[[str], str | None]:
    return lambda text: text if text.startswith(schemes) and text.isprintable() else None


def _smtp(text: str) -> MailServer | None:
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


def _key_source(text: str) -> str | None:
    scheme, _, rest = text.partition(":")
    if scheme == "command":
        return text if shlex.split(rest) else None  # ValueError if a quote is not closed
    return text if scheme in {"file", "env"} and rest.strip() else None


_ADDRESS: Final = _expecting("an IP address to listen on, such as 127.0.0.1 or 0.0.0.0", _host)
_PORT: Final = _number(1, _PORT_MAX)
_BOOLEAN: Final = {"true": True, "false": False}.get


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one deployment, validated, in the order of docs/configuration.md.

    That page says what each is for. What has no default is omitted, or derived from others.
    """

    data_dir: Path = _setting(Path, "./var")
    database_url: str | None = _setting(
        _expecting(
            "a URL such as postgresql://user@host/name; leave it out for the embedded database",
            lambda text: text if text.startswith(_DATABASE_SCHEMES) else None,
        ),
        None,
        secret=True,
    )
    database_pooler: str = _setting(
        _expecting("none or transaction", {"none": "none", "transaction": "transaction"}.get),
        "none",
    )
    secret_key_file: Path = _setting(Path, None)
    key_encryption_key: str = _setting(
        _expecting("file:PATH, env:NAME or command:PROGRAM ARGUMENT…", _key_source), None
    )
    log_keys: str = _setting(
        _expecting("vault or pkcs11", {"vault": "vault", "pkcs11": "pkcs11"}.get), "vault"
    )
    log_ml_dsa: bool = _setting(_expecting("true or false", _BOOLEAN), "false")
    pkcs11_module: Path | None = _setting(Path, None)
    pkcs11_token: str | None = _setting(str, None)
    pkcs11_pin_file: Path | None = _setting(Path, None)
    log_head_dir: Path | str = _setting(
        _expecting("a directory, or the URL of an object store: s3://BUCKET/PREFIX", _heads), None
    )
    witness_policy_file: Path | None = _setting(Path, None)
    timestamp_urls: tuple[str, ...] = _setting(
        _expecting("URLs that begin with https://, separated by commas", _urls), ""
    )
    timestamp_roots_file: Path | None = _setting(Path, None)
    seal_within_seconds: int = _setting(_number(60, _SEAL_WITHIN_MAX), "86400")
    host: str = _setting(_ADDRESS, "127.0.0.1")
    port: int = _setting(_PORT, "8080")
    public_url: str = _setting(
        _expecting("a URL that clients can reach, such as https://countersign.example.com", _url),
        None,
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        _expecting(
            "IP addresses or networks separated by commas, such as 10.0.0.0/8,192.0.2.7", _networks
        ),
        "",
    )
    client_ip_header: str = _setting(
        _expecting("the name of a header, such as X-Forwarded-For", _header), "X-Forwarded-For"
    )
    rate_limit: Rate | None = _setting(_rate, "6000/60")
    time_zone: ZoneInfo = _setting(
        _expecting("a time zone such as America/Los_Angeles", ZoneInfo), "America/Los_Angeles"
    )
    minimum_age: int = _setting(_number(AGE_MIN, AGE_MAX), str(AGE_MIN))
    verification_days: int = _setting(_number(1, VALIDITY_DAYS_MAX), str(VALIDITY_DAYS_MAX))
    evidence_days: int = _setting(_number(0, _EVIDENCE_DAYS_MAX), "90")
    failed_evidence_days: int = _setting(_number(0, _EVIDENCE_DAYS_MAX), "30")
    provider_concurrency: int = _setting(_number(1, 512), "64")
    provider_proxy_url: str | None = _setting(
        _expecting("the URL of a proxy, such as http://proxy.internal:3128", _proxy),
        None,
        secret=True,
    )
    provider_ca_file: Path | None = _setting(Path, None)
    metrics_port: int | None = _setting(_PORT, None)
    metrics_host: str = _setting(_ADDRESS, "127.0.0.1")
    security_contact: str | None = _setting(
        _expecting(
            "a URI that begins with https://, mailto: or tel:",
            _starts_with("https://", "mailto:", "tel:"),
        ),
        None,
    )
    webhook_timeout_seconds: int = _setting(_number(1, 30), "15")
    webhook_allow_private: bool = _setting(_expecting("true or false", _BOOLEAN), "false")
    smtp_url: MailServer | None = _setting(
        _expecting(
            "the URL of a mail server, such as smtp+starttls://user:password@mail.example.com:587; "
            "smtp:// takes a password to this machine alone",
            _smtp,
        ),
        None,
        secret=True,
    )
    smtp_sender: str | None = _setting(
        _expecting(
            "an e-mail address, such as copies@countersign.example.com",
            lambda text: text if _SENDER.match(text) else None,
        ),
        None,
    )
    smtp_daily_limit: int = _setting(_number(1, _MAILS_MAX), "1000")
    workers: int = _setting(_number(1, _WORKERS_MAX), "1")
    traces_url: str | None = _setting(
        _expecting(
            "the URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318",
            _starts_with("https://", "http://"),
        ),
        None,
    )
    drain_seconds: int = _setting(_number(0, _DRAIN_SECONDS_MAX), "0")
    console: bool = _setting(_expecting("true or false", _BOOLEAN), "false")
    console_url: str | None = _setting(
        _expecting("a URL that staff can reach, such as https://console.example.com", _url), None
    )
    oidc_issuer: str | None = _setting(
        _expecting("the URL of an issuer, such as https://accounts.example.org", _issuer), None
    )
    oidc_client_id: str | None = _setting(
        _expecting("at most 1,024 printable ASCII characters", _visible), None
    )
    oidc_client_secret: str | None = _setting(
        _expecting("at most 1,024 printable ASCII characters", _visible), None, secret=True
    )


SETTINGS: Final[Mapping[str, Setting]] = {f.name: f.metadata["setting"] for f in fields(Settings)}


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings from the environment and the file that COUNTERSIGN_CONFIG names.

    Raises InvalidConfiguration with every mistake, one a line.
    """
    mistakes: list[str] = []
    given = _from_file(environment.get(FILE_VARIABLE), mistakes)
    for name, text in environment.items():
        # An empty variable counts as not set: that is how compose files omit one.
        if name.startswith(PREFIX) and name != FILE_VARIABLE and text:
            given[name.removeprefix(PREFIX).lower()] = (name, text)
    values: dict[str, Any] = {}
    for key, setting in SETTINGS.items():
        origin, value = given.get(key, (PREFIX + key.upper(), setting.default))
        try:
            values[key] = None if value is None else setting.read(value)
        except ValueError as error:
            mistakes.append(f"{origin}: expected {error}")
    mistakes += _contradictions(values)
    if mistakes:
        raise InvalidConfiguration("\n".join(mistakes))
    values["secret_key_file"] = values["secret_key_file"] or values["data_dir"] / "secret.key"
    key_file = values["data_dir"] / "key-encryption.key"
    values["key_encryption_key"] = values["key_encryption_key"] or f"file:{key_file}"
    values["log_head_dir"] = values["log_head_dir"] or values["data_dir"] / "heads"
    host = f"[{values['host']}]" if ":" in values["host"] else values["host"]
    values["public_url"] = values["public_url"] or f"http://{host}:{values['port']}"
    return Settings(**values)


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """The mistakes of settings that do not go together."""
    found: list[str] = []
    if values.get("metrics_port") is not None and values["metrics_port"] == values.get("port"):
        found.append(f"{PREFIX}METRICS_PORT: expected a port other than {PREFIX}PORT")
    if values.get("host") and "public_url" in values:
        host = values["host"]
        if values["public_url"] is None and not is_loopback(host):
            found.append(
                f"{PREFIX}PUBLIC_URL: expected the URL at which clients reach the service, "
                f"since {PREFIX}HOST is {host}: links, tokens and the names of the logs are made "
                "from it"
            )
    if isinstance(values.get("log_head_dir"), str) and values.get("database_url") is None:
        found.append(
            f"{PREFIX}LOG_HEAD_DIR: expected a directory, since the embedded database has one "
            "server, which seals in the transactions of its acts"
        )
    return found


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The `COUNTERSIGN_*` variables that are not settings: perhaps typing errors.

    They do not stop a server, because a shell may hold variables for clients (such as a key for
    examples) or for a newer release.
    """
    return sorted(
        name
        for name in environment
        if name.startswith(PREFIX)
        and name != FILE_VARIABLE
        and name.removeprefix(PREFIX).lower() not in SETTINGS
    )


def _from_file(path: str | None, mistakes: list[str]) -> dict[str, _Given]:
    if path is None:
        return {}
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        mistakes.append(f"{FILE_VARIABLE}: {path} cannot be read: {error}")
        return {}
    given: dict[str, _Given] = {}
    for key, value in table.items():
        origin = f"{path}: {key}"
        if key not in SETTINGS:
            mistakes.append(f"{origin}: unknown setting")
        elif isinstance(value, bool) or not isinstance(value, str | int | list):
            mistakes.append(f"{origin}: expected a string, a number or a list of strings")
        else:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            given[key] = (origin, text)
    return given
