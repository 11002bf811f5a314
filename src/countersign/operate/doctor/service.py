"""Checks of the service's data and promises: logs, keys, notices, webhooks."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import Connection, text

from countersign.base.db.tables import further_providers, verification_settings
from countersign.base.errors import CountersignError, HeadUnavailable
from countersign.base.setting_values import MailServer
from countersign.base.values import Mode, rfc3339
from countersign.core.access.keys import has_live_key
from countersign.core.access.secrets import read_secret
from countersign.core.buyers.providers import credentials_row
from countersign.core.buyers.rules import VerificationSettings
from countersign.core.log import logs_sql
from countersign.core.log.check import last_check
from countersign.core.log.check_records import unmatched_events
from countersign.core.log.clock_guard import WRONG_SECONDS, database_time
from countersign.core.log.fork_guard import (
    kept_elsewhere,
    lost_tail,
    why_not,
    why_suspended,
)
from countersign.core.log.keys import LogKeys
from countersign.core.log.model import Log
from countersign.core.log.sequencer import Sequencer
from countersign.core.notices.registry import KnownNotices, all_versions, revision_of
from countersign.core.vault.vault import SealedColumn, count_keys
from countersign.identity.registry import IdentityProviders
from countersign.operate.doctor.machine import of_tables
from countersign.operate.doctor.promises import third_parties
from countersign.operate.doctor.sight import (
    ASK_SECONDS,
    Asked,
    Diagnosis,
    Severity,
    Sight,
    say,
    together,
)


def keys(look: Sight) -> Iterator[Diagnosis]:
    """The keys belong to this database, and open all of its data keys."""
    secret = read_secret(look.settings.secret_key_file)
    with look.reading() as connection:
        known = text("SELECT value FROM deployment WHERE name = 'secret_check'")
        kept = connection.execute(known).scalar_one_or_none()
        wrapping = count_keys(connection)
        ring = look.vault(connection).encryption
    if bytes(kept or b"") != secret.check_value():
        yield say("keys.other_secret")
    lost = [id_.hex() for id_ in wrapping if id_ not in ring.ids]
    if lost:
        yield say("keys.lost", ids=", ".join(lost))
    yield say("keys.fine", number=len(ring.ids))


def log_keys(look: Sight) -> Iterator[Diagnosis]:
    """Each key of the newest logs signs."""

    async def sign(connection: Connection) -> list[tuple[Log, str, str | None]]:
        own = LogKeys(look.vault(connection), Sequencer(look.clock, look.heads), look.settings)
        return [
            (log, key.vkey, await own.why_unusable(log, key))
            for log in logs_sql.newest_logs(connection).values()
            for key in logs_sql.keys_of(connection, log.id)
            if key.retires_at is None or look.now < key.retires_at
        ]

    with look.reading() as connection:
        found = asyncio.run(sign(connection))
    for log, vkey, why in found:
        if why is not None:
            yield say("log_keys.unusable", key=vkey[:60], log=log.origin, why=why)
    yield say("log_keys.fine", number=len(found))


def logs(look: Sight) -> Iterator[Diagnosis]:
    """The database matches the published head, and the last check of it had no findings."""
    said, heads, place = [], look.heads, look.settings.log_head_dir
    try:
        if isinstance(place, str):
            heads.check()  # in a directory it would leave files of another user
    except HeadUnavailable as error:
        yield say("logs.head_file", why=error.message)
    with look.reading() as connection:
        last, queues = last_check(connection), logs_sql.queues(connection)
        if last is not None and last.findings:
            yield say("logs.mismatch", at=rfc3339(last.at), number=last.findings)
        for mode, log in logs_sql.newest_logs(connection).items():
            number, _ = queues.get(mode, (0, None))
            said.append(f"{mode.value} {log.size} entries, {number} waiting")
            try:
                note, own_place = heads.kept(mode)
            except HeadUnavailable as error:
                yield say("logs.head_file", why=error.message)
                continue
            why = (
                why_suspended(connection, mode)
                or kept_elsewhere(connection, own_place)
                or why_not(connection, mode, note)
                or lost_tail(connection, mode, heads.accepted(mode))
            )
            if why is not None:
                yield say("logs.suspended", mode=mode.value, why=why)
            if log.at > look.now + timedelta(seconds=5):
                yield say("logs.future", log=log.origin, at=rfc3339(log.at))
    yield say("logs.fine", logs="; ".join(said), place=place)


def notices(look: Sight) -> Iterator[Diagnosis]:
    """Each notice has a version in force for live keys, now and soon."""
    now, said = look.now, []
    with look.reading() as connection:
        every = all_versions(connection, look.settings.time_zone)
        known = KnownNotices(revision_of(connection), every)
        has_live = has_live_key(connection, now)
        unmatched = dict.fromkeys(why for _, why in unmatched_events(connection))
    for why in unmatched:
        yield say("notices.unmatched", why=why)
    for notice, versions in sorted(every.items()):
        live = known.current(notice, Mode.LIVE, now, remember=False)
        if live is not None:
            said.append(f"{notice} {live.content.version} is in force")
        elif has_live:
            yield say("notices.not_in_force", notice=notice)
        else:
            said.append(f"{notice} is not in force for live keys; there are none")
        for version in versions:
            if now < version.effective_at <= now + timedelta(days=7) and version.removal is None:
                number, at = version.content.version, rfc3339(version.effective_at)
                said.append(f"{notice} {number} from {at}")
                if version.review is None:
                    yield say("notices.unreviewed", notice=notice, version=number, at=at)
    if not every:
        yield say("notices.none")
    yield say("notices.fine", notices="; ".join(said))


_ACCOUNTS_MAX: Final = 100


def clock(look: Sight) -> Iterator[Diagnosis]:
    """This machine's is right: by the database's, the witnesses' and the authorities'."""
    ahead: dict[str, float] = {}
    with look.reading() as connection:
        parties = third_parties(look, connection)
        if look.embedded_url is None:
            ahead["the database"] = look.clock.time_ns() / 1e9 - database_time(connection)
    for url, asked in _ask_all(look, [url for _, _, url in parties]):
        if isinstance(asked, Asked) and asked.ahead is not None:
            ahead[url] = asked.ahead
    for whom, seconds in ahead.items():
        if abs(seconds) > 5.0:
            code = "clock.wrong" if abs(seconds) > WRONG_SECONDS else "clock.off"
            side = "ahead of" if seconds > 0 else "behind"
            yield say(code, seconds=abs(seconds), side=side, whom=whom)
    if ahead:
        yield say("clock.fine", seconds=max(map(abs, ahead.values())), number=len(ahead))
    else:
        yield say("clock.alone")


def _ask_all(
    look: Sight,
    urls: Iterable[str],
    **options: Any,  # noqa: ANN401 - those of httpx2
) -> list[tuple[str, Asked | str]]:
    urls = sorted(set(urls))
    asked = together([partial(look.ask, url, **options) for url in urls], look.seconds - 1)
    return [(url, one or "no response") for url, one in zip(urls, asked, strict=True)]


def _reached(look: Sight, urls: Iterable[str], **options: Any) -> Iterator[Diagnosis]:  # noqa: ANN401
    for url, asked in _ask_all(look, urls, **options):
        if isinstance(asked, str):
            yield say("reached.not", url=url, why=asked)
        elif asked.status >= 500:
            yield say("reached.failing", url=url, status=asked.status)
        elif asked.ends_at is not None and asked.ends_at - look.now < timedelta(days=14):
            yield say("reached.certificate", url=url, at=rfc3339(asked.ends_at))


def witnesses(look: Sight) -> Iterator[Diagnosis]:
    """Witnesses and time-stamp authorities respond, and time-stamps do not end soon."""
    with look.reading() as connection:
        parties = third_parties(look, connection)
        ending = logs_sql.to_renew(connection, look.now, look.now + timedelta(days=30))
    if not parties:
        yield say("witnesses.none")
    yield from _reached(look, [url for _, _, url in parties])
    if ending is not None and ending.ends_at is not None:
        yield say("witnesses.ending", at=rfc3339(ending.ends_at))
    yield say("witnesses.fine", number=len(parties))


def providers(look: Sight) -> Iterator[Diagnosis]:
    """Each identity provider that an account uses can be reached."""
    with look.reading() as connection:
        origins = asyncio.run(_origins(look, connection))
    if not origins:
        yield say("providers.none")
        return
    trusted = ssl.create_default_context(cafile=look.settings.provider_ca_file)
    plain = {origin for origin in origins if origin.startswith("http://")}
    options: dict[str, Any] = {"verify": trusted, "trust_env": False}
    yield from _reached(look, plain, **options)
    yield from _reached(look, origins - plain, proxy=look.settings.provider_proxy_url, **options)
    yield say("providers.fine", origins=", ".join(sorted(origins)))


async def _origins(look: Sight, connection: Connection) -> set[str]:
    vault, found = look.vault(connection), set()
    factory = IdentityProviders(vault.access.secret.document_fingerprint, look.clock)
    for table in (verification_settings, further_providers):
        sealed = SealedColumn(vault.vault, vault.access.entropy, table.name, "credentials")
        for row in connection.execute(table.select().limit(_ACCOUNTS_MAX)).mappings().all():
            own = {k: v for k, v in row.items() if k in VerificationSettings.__struct_fields__}
            settings = VerificationSettings(**own | {"rules": None})
            place = {"account": settings.account_id}
            place["row_id"] = credentials_row(settings, row.get("mode"))
            try:
                credentials = await sealed.open(settings.credentials, **place)
                found.add(settings.base_url or factory.origin(settings.provider, credentials))
            except CountersignError:
                continue  # `keys` says why
    return found


def webhooks(look: Sight) -> Iterator[Diagnosis]:
    """No endpoint was given up, and the names of receivers resolve."""
    used = "SELECT id, url FROM webhook_endpoints WHERE disabled_at IS NULL AND deleted_at IS NULL"
    with look.reading() as connection:
        rows = connection.execute(text(used)).fetchmany(_ACCOUNTS_MAX)
    hosts = {endpoint: urlsplit(url).hostname for endpoint, url in rows}
    asks = [partial(_failure, partial(socket.getaddrinfo, host, None)) for host in hosts.values()]
    for (endpoint, host), why in zip(hosts.items(), together(asks, look.seconds - 1), strict=True):
        if why != "":
            yield say("webhooks.unresolved", endpoint=endpoint, host=host, why=why or "no response")
    yield from of_tables("webhooks", look)


def mails(look: Sight) -> Iterator[Diagnosis]:
    """The mail server greets, and mails are not refused."""
    if (server := look.settings.smtp_url) is not None:
        (why,) = together([partial(_failure, partial(_greet, server))], look.seconds - 1)
        if why != "":
            yield say("mails.server", host=server.host, port=server.port, why=why or "no response")
    yield from of_tables("mails", look)


def _greet(server: MailServer) -> None:
    with socket.create_connection((server.host, server.port), ASK_SECONDS) as channel:
        if server.tls != "tls" and not channel.recv(1):  # with TLS the client speaks first
            raise OSError("it ends the connection")


def _failure(act: Callable[[], object]) -> str:
    """Why this fails; empty: it does not."""
    try:
        act()
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def public_address(look: Sight) -> Iterator[Diagnosis]:
    """Clients reach the service there, and its certificate does not end soon."""
    url = look.settings.public_url
    if url.startswith("https://"):
        for found in _reached(look, [f"{url}/healthz"]):
            is_down = found.code in {"reached.not", "reached.failing"}
            yield found._replace(severity=Severity.BROKEN) if is_down else found
        if not look.settings.trusted_proxies:  # the service itself speaks no TLS
            yield say("public_address.proxies")
        yield say("public_address.fine", url=url)
