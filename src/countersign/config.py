"""Settings: `COUNTERSIGN_*` variables, or one TOML file, or both (a variable wins).

All settings are checked at start, and all mistakes are reported together.
"""

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from countersign.buyers.rules import AGE_MAX, AGE_MIN, VALIDITY_DAYS_MAX
from countersign.errors import InvalidConfiguration
from countersign.host import Network, is_loopback, is_wildcard

PREFIX: Final = "COUNTERSIGN_"
FILE_VARIABLE: Final = "COUNTERSIGN_CONFIG"
_PORT_MAX: Final = 65535
_EVIDENCE_DAYS_MAX: Final = 3650
_PROVIDER_CONCURRENCY_MAX: Final = 512
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?(?:/[A-Za-z0-9._~/-]*)?\Z"
)
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,5})\Z")


_Given: TypeAlias = tuple[str, str | None]
"""Where a value is set, and its text."""


class Rate(NamedTuple):
    """At most this many requests in this many seconds."""

    requests: int
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one deployment, validated."""

    data_dir: Path
    database_url: str | None = field(repr=False)
    secret_key_file: Path
    key_encryption_key: str
    log_head_dir: Path
    witness_policy_file: Path | None
    timestamp_urls: tuple[str, ...]
    host: str
    port: int
    public_url: str
    trusted_proxies: tuple[Network, ...]
    client_ip_header: str
    rate_limit: Rate | None
    time_zone: ZoneInfo
    minimum_age: int
    verification_days: int
    evidence_days: int
    failed_evidence_days: int
    provider_concurrency: int
    provider_proxy_url: str | None = field(repr=False)
    provider_ca_file: Path | None
    metrics_port: int | None
    metrics_host: str
    security_contact: str | None
    webhook_timeout_seconds: int
    webhook_allow_private: bool
    workers: int


class Setting(NamedTuple):
    """One setting: how to read it, its default and an example, and its meaning."""

    read: Callable[[str], object]
    default: str | None
    example: str
    meaning: str


def _database_url(text: str) -> str:
    # The driver checks the rest. The URL may hold a password, so no message repeats it.
    if not text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        msg = "a URL such as postgresql://user@host/name; leave it out for the embedded database"
        raise ValueError(msg)
    return text


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _PORT_MAX:
        msg = "a port from 1 to 65535"
        raise ValueError(msg)
    return int(text)


def _host(text: str) -> str:
    if text != "localhost":
        try:
            ip_address(text)
        except ValueError:
            msg = "an IP address to listen on, such as 127.0.0.1 or 0.0.0.0"
            raise ValueError(msg) from None
    return text


def _url(text: str) -> str:
    # The URL goes into headers, so only harmless characters are allowed.
    match = _URL.match(text)
    host = text.partition("://")[2].partition("/")[0]
    if match is None or int(match[1] or 1) > _PORT_MAX or is_wildcard(host):
        msg = "a URL that clients can reach, such as https://countersign.example.com"
        raise ValueError(msg)
    return text.rstrip("/")


def _urls(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not all(part.startswith(("https://", "http://")) and part.isprintable() for part in found):
        msg = "URLs that begin with https://, separated by commas"
        raise ValueError(msg)
    return found


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        msg = "IP addresses or networks separated by commas, such as 10.0.0.0/8,192.0.2.7"
        raise ValueError(msg) from None


def _header(text: str) -> str:
    if not _HEADER.match(text):
        msg = "the name of a header, such as X-Forwarded-For"
        raise ValueError(msg)
    return text.lower()


def _rate(text: str) -> Rate | None:
    if text == "off":
        return None
    match = _RATE.match(text)
    if match is None:
        msg = "requests/seconds, such as 6000/60, or off"
        raise ValueError(msg)
    return Rate(int(match[1]), int(match[2]))


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        msg = "a time zone such as America/Los_Angeles"
        raise ValueError(msg) from None


def _between(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            msg = f"a number from {least} to {most}"
            raise ValueError(msg)
        return int(text)

    return read


def _proxy(text: str) -> str:
    try:
        parts = urlsplit(text)
        fine = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        if fine and text.isprintable() and not (parts.path + parts.query + parts.fragment):
            return text
    except ValueError:  # the URL may hold a password, so no message repeats it
        pass
    msg = "the URL of a proxy, such as http://proxy.internal:3128"
    raise ValueError(msg)


def _contact(text: str) -> str:
    if not text.startswith(("https://", "mailto:", "tel:")) or not text.isprintable():
        msg = "a URI that begins with https://, mailto: or tel:"
        raise ValueError(msg)
    return text


def _key_source(text: str) -> str:
    scheme, _, rest = text.partition(":")
    if scheme not in {"file", "env", "command"} or not rest.strip():
        msg = "file:PATH, env:NAME or command:PROGRAM ARGUMENT…"
        raise ValueError(msg)
    if scheme == "command" and not shlex.split(rest):  # ValueError if a quote is not closed
        raise ValueError(text)
    return text


def _webhook_timeout(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 30:
        msg = "a number of seconds from 1 to 30"
        raise ValueError(msg)
    return int(text)


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        msg = "true or false"
        raise ValueError(msg)
    return text == "true"


def _workers(text: str) -> int:
    if text != "1":
        msg = (
            "1: this release runs one process per server; on PostgreSQL start more servers instead"
        )
        raise ValueError(msg)
    return 1


SETTINGS: Final[dict[str, Setting]] = {
    "data_dir": Setting(
        Path,
        "./var",
        "/var/lib/countersign",
        "Directory for the embedded database, the secret key, the key-encryption key, the last "
        "published checkpoints and the server lock.",
    ),
    "database_url": Setting(
        _database_url,
        None,
        "postgresql://countersign@db1,db2/countersign?target_session_attrs=read-write",
        "URL of the PostgreSQL database. If omitted: the embedded SQLite database in the data "
        "directory.",
    ),
    "secret_key_file": Setting(
        Path,
        None,
        "/run/secrets/countersign",
        "File with the deployment's secret key. If omitted: `secret.key` in the data directory. "
        "All servers of a deployment need the same key.",
    ),
    "key_encryption_key": Setting(
        _key_source,
        None,
        "command:/usr/local/bin/fetch-key countersign",
        "Source of the key-encryption key: `file:PATH`, `env:NAME`, or `command:PROGRAM "
        "ARGUMENT…`, which prints the key. If omitted: `key-encryption.key` in the data directory.",
    ),
    "log_head_dir": Setting(
        Path,
        None,
        "/mnt/elsewhere/countersign-heads",
        "Directory for the last published checkpoint of each log, which reveals that an older "
        "database was restored. If omitted: `heads` in the data directory; a restore of the whole "
        "directory then replaces these files, too, and is not noticed.",
    ),
    "witness_policy_file": Setting(
        Path,
        None,
        "/etc/countersign/witnesses.policy",
        "File with `witness`, `group` and `quorum` lines (c2sp.org/tlog-policy). The server asks "
        "witnesses with a URL to cosign live checkpoints. The lines become part of the policy, "
        "without comments and URLs.",
    ),
    "timestamp_urls": Setting(
        _urls,
        "",
        "https://tsa.example.com/tsr",
        "URLs of time-stamp authorities (RFC 3161), separated by commas. Every five minutes the "
        "server requests a time-stamp of the newest live checkpoint. Needs the package "
        "`rfc3161-client`.",
    ),
    "host": Setting(_host, "127.0.0.1", "0.0.0.0", "Address to listen on."),  # noqa: S104 - an example in the documentation
    "port": Setting(_port, "8080", "8080", "Port to listen on."),
    "public_url": Setting(
        _url,
        None,
        "https://countersign.example.com",
        "URL at which clients reach the service. Links, tokens and the names of the logs are made "
        "from it. If omitted: host and port. Required if `COUNTERSIGN_HOST` is not a loopback "
        "address.",
    ),
    "trusted_proxies": Setting(
        _networks,
        "",
        "10.0.0.0/8,192.0.2.7",
        "Addresses or networks of this deployment's own proxies, separated by commas. They are "
        "removed from the right end of the forwarding header.",
    ),
    "client_ip_header": Setting(
        _header,
        "X-Forwarded-For",
        "Forwarded",
        "Header that provides the buyer's address if a request omits `ip`. `Forwarded` is parsed "
        "by RFC 7239.",
    ),
    "rate_limit": Setting(
        _rate, "6000/60", "600/60", "Requests/seconds allowed for each API key, or `off`."
    ),
    "time_zone": Setting(
        _zone,
        "America/Los_Angeles",
        "America/Los_Angeles",
        "Time zone in which a day begins: a notice is in force from 0:00 on `effective_from` in "
        "this zone.",
    ),
    "minimum_age": Setting(
        _between(AGE_MIN, AGE_MAX),
        str(AGE_MIN),
        "21",
        "Age in years that every live verification has to prove. Accounts can require more.",
    ),
    "verification_days": Setting(
        _between(1, VALIDITY_DAYS_MAX),
        str(VALIDITY_DAYS_MAX),
        "180",
        "Longest time in days that a live verification counts. Accounts can require less.",
    ),
    "evidence_days": Setting(
        _between(0, _EVIDENCE_DAYS_MAX),
        "90",
        "30",
        "Days for which the evidence of a live verification is kept after the verification can no "
        "longer count. After that `countersign retention run` erases the evidence.",
    ),
    "failed_evidence_days": Setting(
        _between(0, _EVIDENCE_DAYS_MAX),
        "30",
        "7",
        "Days for which the evidence of an unsuccessful live verification is kept.",
    ),
    "provider_concurrency": Setting(
        _between(1, _PROVIDER_CONCURRENCY_MAX),
        "64",
        "16",
        "Maximum of concurrent requests to an identity provider, for each account and server. A "
        "request that gets no slot within 2 seconds returns 503.",
    ),
    "provider_proxy_url": Setting(
        _proxy,
        None,
        "http://proxy.internal:3128",
        "URL of the forward proxy (CONNECT) to the identity providers; it may contain a user and a "
        "password. If omitted: the server connects directly.",
    ),
    "provider_ca_file": Setting(
        Path,
        None,
        "/etc/ssl/certs/private-ca.pem",
        "File with certificates (PEM) of authorities to trust for identity providers and their "
        "proxy, in addition to those of the system.",
    ),
    "metrics_port": Setting(
        _port,
        None,
        "9090",
        "Port for `/metrics`. If omitted: no metrics are served.",
    ),
    "metrics_host": Setting(
        _host,
        "127.0.0.1",
        "10.0.0.5",
        "Address to listen on for `/metrics`. Metrics need no key and reveal how much business is "
        "done: let only your monitoring reach this address.",
    ),
    "security_contact": Setting(
        _contact,
        None,
        "mailto:security@example.com",
        "Contact in `/.well-known/security.txt`. If omitted: that path returns 404.",
    ),
    "webhook_timeout_seconds": Setting(
        _webhook_timeout,
        "15",
        "10",
        "Time limit for a webhook's receiver, from the connection to the end of its response.",
    ),
    "webhook_allow_private": Setting(
        _flag,
        "false",
        "true",
        "`true`: webhooks may go to plain HTTP and to addresses that are not public, such as this "
        "machine. For development only: vendors could make the server call internal services.",
    ),
    "workers": Setting(
        _workers, "1", "1", "Number of server processes. Must be 1 in this release."
    ),
}
"""Every setting, in the order of docs/configuration.md, which is checked against this table."""


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings from the environment and the file that COUNTERSIGN_CONFIG names.

    Raises:
        InvalidConfiguration: with every mistake, one a line.
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
    if values.get("metrics_port") is not None and values["metrics_port"] == values.get("port"):
        mistakes.append(f"{PREFIX}METRICS_PORT: expected a port other than {PREFIX}PORT")
    if values.get("host") and "public_url" in values:
        host = values["host"]
        if values["public_url"] is None and not is_loopback(host):
            mistakes.append(
                f"{PREFIX}PUBLIC_URL: expected the URL at which clients reach the service, "
                f"since {PREFIX}HOST is {host}: links, tokens and the names of the logs are made "
                "from it"
            )
    if mistakes:
        raise InvalidConfiguration("\n".join(mistakes))
    values["secret_key_file"] = values["secret_key_file"] or values["data_dir"] / "secret.key"
    key_file = values["data_dir"] / "key-encryption.key"
    values["key_encryption_key"] = values["key_encryption_key"] or f"file:{key_file}"
    values["log_head_dir"] = values["log_head_dir"] or values["data_dir"] / "heads"
    host = f"[{values['host']}]" if ":" in values["host"] else values["host"]
    values["public_url"] = values["public_url"] or f"http://{host}:{values['port']}"
    assert set(values) == {f.name for f in fields(Settings)}  # noqa: S101 - the two lists agree
    return Settings(**values)


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
