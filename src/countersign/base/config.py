"""Settings: `COUNTERSIGN_*` variables, or one TOML file, or both (a variable wins).

Each is declared once, on `Settings`: type, reader, default. All are checked at start, and all
mistakes are reported together.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from countersign.base.errors import InvalidConfiguration
from countersign.base.host import Network, is_loopback
from countersign.base.setting_values import (
    ADDRESS,
    BOOLEAN,
    DATABASE_SCHEMES,
    PORT,
    SENDER,
    VISIBLE,
    MailServer,
    Rate,
    expecting,
    networks,
    number,
    one_of,
    starts_with,
    to_header,
    to_heads,
    to_issuer,
    to_key_source,
    to_mail_server,
    to_proxy,
    to_rate,
    to_url,
    to_urls,
)

PREFIX: Final = "COUNTERSIGN_"
FILE_VARIABLE: Final = "COUNTERSIGN_CONFIG"
AGE_MIN: Final = 18
AGE_MAX: Final = 99
VALIDITY_DAYS_MAX: Final = 365
"""No statute was found to set it; at most 12 months, by choice."""
_EVIDENCE_DAYS_MAX: Final = 3650

_Given: TypeAlias = tuple[str, str | None]
"""The source of a value, and its text."""


class Setting(NamedTuple):
    """How a setting is read (`ValueError`: what was expected), and its default as text."""

    read: Callable[[str], object]
    default: str | None


def _setting(read: Callable[[str], object], default: str | None, *, secret: bool = False) -> Any:  # noqa: ANN401 - a field of any type
    return field(metadata={"setting": Setting(read, default)}, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one deployment, validated. What has no default is omitted or derived.

    `make docs` writes docs/configuration.md from the text below each: its purpose and an example.
    """

    data_dir: Path = _setting(Path, "./var")
    """Directory of the embedded database, `secret.key`, `key-encryption.key`, the heads of the
    logs and the server lock. Example: `/var/lib/countersign`."""
    database_url: str | None = _setting(
        expecting(
            "a URL such as postgresql://user@host/name; leave it out for the embedded database",
            lambda text: text if text.startswith(DATABASE_SCHEMES) else None,
        ),
        None,
        secret=True,
    )
    """URL of the PostgreSQL database. If omitted: the embedded SQLite database in the data
    directory.
    Example: `postgresql://countersign@db1,db2/countersign?target_session_attrs=read-write`."""
    database_pooler: str = _setting(one_of("none", "transaction"), "none")
    """`transaction`: PostgreSQL is behind a pooler in transaction mode, such as PgBouncer; the
    service then uses no prepared statements and sets timeouts for each transaction. `none`:
    connections are sessions. `serve` and `init` refuse a transaction pooler that is not
    declared here. Example: `transaction`."""
    secret_key_file: Path = _setting(Path, None)
    """File with the deployment's secret key, the same on all servers. If omitted: `secret.key` in
    the data directory. Example: `/run/secrets/countersign`."""
    key_encryption_key: str = _setting(
        expecting("file:PATH, env:NAME or command:PROGRAM ARGUMENT…", to_key_source), None
    )
    """Source of the key-encryption key: `file:PATH`, `env:NAME`, or `command:PROGRAM ARGUMENT…`,
    which prints the key. If omitted: `key-encryption.key` in the data directory.
    Example: `command:/usr/local/bin/fetch-key countersign`."""
    log_keys: str = _setting(one_of("vault", "pkcs11"), "vault")
    """Where new signing keys of the live log are kept: `vault`, encrypted in the database, or
    `pkcs11`, on the token of `COUNTERSIGN_PKCS11_MODULE`. Takes effect at the next `countersign
    log rotate-key`; existing keys stay where they are. Example: `pkcs11`."""
    log_ml_dsa: bool = _setting(BOOLEAN, "false")
    """`true`: at `countersign init` or the next `countersign log rotate-key` the live log also
    gets an ML-DSA-44 key, designed to withstand quantum computers, and signs each checkpoint
    with both. The second signature adds 3.3 KB to a checkpoint. Its key is always in the vault.
    Example: `true`."""
    pkcs11_module: Path | None = _setting(Path, None)
    """PKCS#11 library of the token or hardware security module that keeps the log's signing keys.
    Needs the package `python-pkcs11`. Set it on every server and for every command while a key
    on the token signs. Example: `/usr/lib/softhsm/libsofthsm2.so`."""
    pkcs11_token: str | None = _setting(str, None)
    """Label of the token. Example: `countersign`."""
    pkcs11_pin_file: Path | None = _setting(Path, None)
    """File with the user PIN of the token. Example: `/run/secrets/countersign-pin`."""
    log_head_dir: Path | str = _setting(
        expecting("a directory, or the URL of an object store: s3://BUCKET/PREFIX", to_heads), None
    )
    """Directory for the last published checkpoint (head) of each log, by which a server notices
    that an older database was restored. With PostgreSQL also the URL of an [object
    store](logs.md): `s3://BUCKET/PREFIX`, `gs://` or `az://`, with
    credentials in the store's own variables. If omitted: `heads` in the data directory; a
    restore of the whole directory is then not noticed. Several servers of one PostgreSQL
    database share one place; a server without it does not seal.
    Example: `/mnt/elsewhere/countersign-heads`."""
    witness_policy_file: Path | None = _setting(Path, None)
    """File with `witness`, `group` and `quorum` lines (c2sp.org/tlog-policy). The server asks
    witnesses that have a URL to cosign live checkpoints. The lines become part of the policy,
    without comments and URLs. Example: `/etc/countersign/witnesses.policy`."""
    timestamp_urls: tuple[str, ...] = _setting(
        expecting("URLs that begin with https://, separated by commas", to_urls), ""
    )
    """URLs of time-stamp authorities (RFC 3161), separated by commas. Every five minutes the
    server requests a time-stamp of the newest live checkpoint; of an unchanged one, once a day.
    Replaces the authorities that `countersign init --time-stamps` chose.
    Example: `https://tsa.example.com/tsr`."""
    timestamp_roots_file: Path | None = _setting(Path, None)
    """File with the root certificates (PEM) of trusted time-stamp authorities. Time-stamps that do
    not chain to them are refused and logged. If omitted: time-stamps of authorities in
    `COUNTERSIGN_TIMESTAMP_URLS` are kept without a check of the signer; those of authorities
    that `init` chose must chain to the certificate that comes with the release.
    Example: `/var/lib/countersign/time-stamp-authorities.pem`."""
    seal_within_seconds: int = _setting(number(60, 31 * 86_400), "86400")
    """The promise in receipts: the longest time in seconds (60 to 2678400) from an acknowledgment
    to its entry in the log. Sealing takes about a second; the rest is for faults that an
    operator must repair. A later entry is evidence against the operator. Example: `86400`."""
    host: str = _setting(ADDRESS, "127.0.0.1")
    """Address to listen on. Example: `0.0.0.0`."""
    port: int = _setting(PORT, "8080")
    """Port to listen on. Example: `8080`."""
    public_url: str = _setting(
        expecting("a URL that clients can reach, such as https://countersign.example.com", to_url),
        None,
    )
    """URL at which clients reach the service; links, tokens and the names of the logs contain it.
    If omitted: host and port. Required if `COUNTERSIGN_HOST` is not a loopback address.
    Example: `https://countersign.example.com`."""
    trusted_proxies: tuple[Network, ...] = _setting(
        expecting(
            "IP addresses or networks separated by commas, such as 10.0.0.0/8,192.0.2.7", networks
        ),
        "",
    )
    """Addresses or networks of your own proxies, separated by commas. They are removed from the
    right end of the forwarding header. Without them the sign-in forms of the console and of
    `/buyer` have no limit per address: one stranger can use up the places of everyone.
    `countersign doctor` warns about that. Example: `10.0.0.0/8,192.0.2.7`."""
    client_ip_header: str = _setting(
        expecting("the name of a header, such as X-Forwarded-For", to_header), "X-Forwarded-For"
    )
    """Header with the buyer's address, for requests that omit `ip`. `Forwarded` is parsed by RFC
    7239. Example: `Forwarded`."""
    rate_limit: Rate | None = _setting(to_rate, "6000/60")
    """Requests/seconds allowed for each API key, or `off`. Buyers' pages and client tokens of an
    account share a limit 20 times as high, separately in test and live mode; one session gets at
    most a hundredth of that, but at least 60 a minute. Above a limit the response is 429 with
    `Retry-After`: a page in the buyer's language, or JSON for a client token. Servers on one
    PostgreSQL database [share the limits](postgresql.md) if `COUNTERSIGN_LOG_HEAD_DIR` is not
    `heads` in the data directory. Example: `600/60`."""
    time_zone: ZoneInfo = _setting(
        expecting("a time zone such as America/Los_Angeles", ZoneInfo), "America/Los_Angeles"
    )
    """Time zone in which a day begins: a notice is in force from 0:00 on `effective_from` in this
    zone. Example: `America/Los_Angeles`."""
    minimum_age: int = _setting(number(AGE_MIN, AGE_MAX), str(AGE_MIN))
    """Age in years that every live verification has to prove. Accounts can require more.
    Example: `21`."""
    verification_days: int = _setting(number(1, VALIDITY_DAYS_MAX), str(VALIDITY_DAYS_MAX))
    """Longest time in days that a live verification counts. Accounts can require less.
    Example: `180`."""
    evidence_days: int = _setting(number(0, _EVIDENCE_DAYS_MAX), "90")
    """Days to keep the evidence of a live verification after the verification can no longer count.
    Then `countersign retention run` erases it. Example: `30`."""
    failed_evidence_days: int = _setting(number(0, _EVIDENCE_DAYS_MAX), "30")
    """Days to keep the evidence of an unsuccessful live verification. Example: `7`."""
    provider_concurrency: int = _setting(number(1, 512), "64")
    """Maximum of concurrent requests to an identity provider, for each account and server; the
    workers of a server divide it. A request that gets no slot within 2 seconds returns 503.
    Example: `16`."""
    provider_proxy_url: str | None = _setting(
        expecting("the URL of a proxy, such as http://proxy.internal:3128", to_proxy),
        None,
        secret=True,
    )
    """URL of the forward proxy (CONNECT) to identity providers, with user and password if needed.
    If omitted: the server connects directly. Example: `http://proxy.internal:3128`."""
    provider_ca_file: Path | None = _setting(Path, None)
    """File with CA certificates (PEM) to trust for identity providers and their proxy, in addition
    to those of the system. Example: `/etc/ssl/certs/private-ca.pem`."""
    metrics_port: int | None = _setting(PORT, None)
    """Port for `/metrics`. If omitted: no metrics are served. Example: `9090`."""
    metrics_host: str = _setting(ADDRESS, "127.0.0.1")
    """Address to listen on for `/metrics`. Metrics need no key and reveal business volume: let
    only your monitoring reach this address. Example: `10.0.0.5`."""
    security_contact: str | None = _setting(
        expecting(
            "a URI that begins with https://, mailto: or tel:",
            starts_with("https://", "mailto:", "tel:"),
        ),
        None,
    )
    """Contact in `/.well-known/security.txt`. If omitted: that path returns 404.
    Example: `mailto:security@example.com`."""
    webhook_timeout_seconds: int = _setting(number(1, 30), "15")
    """Time limit for a webhook receiver, from connecting to the end of its response.
    Example: `10`."""
    webhook_allow_private: bool = _setting(BOOLEAN, "false")
    """`true`: webhooks may go to plain HTTP and to addresses that are not public, such as this
    machine. For development only: vendors could make the server call internal services.
    Example: `true`."""
    smtp_url: MailServer | None = _setting(
        expecting(
            "the URL of a mail server, such as smtp+starttls://user:password@mail.example.com:587; "
            "smtp:// takes a password to this machine alone",
            to_mail_server,
        ),
        None,
        secret=True,
    )
    """Mail server that sends buyers [the link of their copy](checkout.md): `smtp+starttls://`
    (STARTTLS required, port 587), `smtps://` (TLS from the first byte, port 465) or `smtp://`
    (not encrypted, port 25), with `user:password@` if needed; percent-encode special characters
    (`%40` for `@`). `smtp://` sends a password to this machine only. Certificates are checked
    against the authorities of the system, or those of `SSL_CERT_FILE`. Needs the extra `mail`.
    If omitted: no mail is sent, and the page offers none.
    Example: `smtp+starttls://countersign:secret@mail.example.com:587`."""
    smtp_sender: str | None = _setting(
        expecting(
            "an e-mail address, such as copies@countersign.example.com",
            lambda text: text if SENDER.match(text) else None,
        ),
        None,
    )
    """Sender address of these mails. Bounces go there and contain the buyer's address: let the
    mailbox discard or soon delete them. The mail server must be allowed to send for its domain
    (SPF, DKIM). If omitted: `copies@` with the host of `COUNTERSIGN_PUBLIC_URL`.
    Example: `copies@countersign.example.com`."""
    smtp_daily_limit: int = _setting(number(1, 1_000_000), "1000")
    """Most mails of an account in 24 hours, in each mode, over all servers, from 1 to 1,000,000.
    Many mail servers allow a sender few more. It also limits the mails that can be sent through
    [one shop's sessions](security.md#threats). Above it the page asks buyers to use the link.
    Example: `5000`."""
    workers: int = _setting(number(1, 64), "1")
    """Number of serving processes, from 1 to 64. With 2 or more, another process supervises them:
    see [several processes](install.md). One process fills almost two cores, and on fewer than three
    a second one makes each request dearer. Example: `2`."""
    traces_url: str | None = _setting(
        expecting(
            "the URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318",
            starts_with("https://", "http://"),
        ),
        None,
    )
    """Base URL of an OTLP/HTTP receiver of [traces](health.md). Needs the extra `traces`.
    If omitted: nothing is traced. Example: `http://127.0.0.1:4318`."""
    drain_seconds: int = _setting(number(0, 300), "0")
    """Seconds, from 0 to 300, for which a stopping server keeps serving while `/readyz` returns
    503 `draining`: see [stopping](install.md). Example: `5`."""
    console: bool = _setting(BOOLEAN, "false")
    """`true`: people sign in at [`/console`](console.md), and the staff operations of the API
    respond. `false`: both return 404. `make run` and `make demo` set it. Example: `true`."""
    console_url: str | None = _setting(
        expecting("a URL that staff can reach, such as https://console.example.com", to_url), None
    )
    """URL of the console on a separate host. `/console` and the staff operations then respond
    only to requests for this host. Route the host to the same server; a reverse proxy can
    restrict it to your network. Passkeys of people belong to this host. If omitted: they are at
    `COUNTERSIGN_PUBLIC_URL`. Example: `https://console.example.com`."""
    notice_reviewers: int = _setting(number(1, 2), "2")
    """`2`: the publisher of a notice's version cannot [review](notices.md) it over the API. `1`:
    one person may do both, and the record of the review says so. Example: `1`."""
    oidc_issuer: str | None = _setting(
        expecting("the URL of an issuer, such as https://accounts.example.org", to_issuer), None
    )
    """Issuer of the OpenID Connect provider for [signing in to the
    console](console.md#signing-in-at-a-provider), exactly as the provider writes it, including
    a slash at the end. It begins with `https://`, or is this machine. The server fetches its
    `/.well-known/openid-configuration`. Needs the next two settings. If omitted: people sign in
    with passkeys only. Example: `https://accounts.example.org`."""
    oidc_client_id: str | None = _setting(VISIBLE, None)
    """Client identifier of this deployment at the provider. Example: `countersign`."""
    oidc_client_secret: str | None = _setting(VISIBLE, None, secret=True)
    """Client secret at the provider. The server sends it only to the provider's token endpoint.
    Example: `7Fjfp0ZBr1KtDRbnfVdmIw`."""


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
    host = values.get("host")
    if host and values.get("public_url", "") is None and not is_loopback(host):
        found.append(
            f"{PREFIX}PUBLIC_URL: expected the URL at which clients reach the service, since "
            f"{PREFIX}HOST is {host}: links, tokens and log names contain it"
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
