"""Checks of what is elsewhere: the clock, witnesses, authorities, providers, the public address."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from countersign.base.db.tables import further_providers, verification_settings
from countersign.base.errors import CountersignError
from countersign.base.values import Mode, rfc3339
from countersign.core.access.keys import has_live_key
from countersign.core.buyers.providers import credentials_row
from countersign.core.buyers.rules import VerificationSettings
from countersign.core.log import logs_sql
from countersign.core.log.authorities import chosen_authorities, known_authorities
from countersign.core.log.clock_guard import WRONG_SECONDS, database_time
from countersign.core.log.model import TIMESTAMP, WITNESS
from countersign.core.log.policy import witnesses_in
from countersign.core.vault.vault import SealedColumn
from countersign.identity.registry import IdentityProviders
from countersign.operate.doctor.finding import Diagnosis, say
from countersign.operate.doctor.service import newest_logs
from countersign.operate.doctor.sight import Asked, Sight, together

CLOCK_OFF_SECONDS: Final = 5.0
_ANCHOR_AGE: Final = timedelta(hours=36)
_CERTIFICATE: Final = timedelta(days=14)
_STAMP: Final = timedelta(days=30)
_ACCOUNTS_MAX: Final = 100


def clock(look: Sight) -> Iterator[Diagnosis]:
    """This machine's is right: by the database's, the witnesses' and the authorities'."""
    ahead: dict[str, float] = {}
    with look.reading() as connection:
        parties = _third_parties(look, connection)
        if look.embedded_url is None:
            ahead["the database"] = look.clock.time_ns() / 1e9 - database_time(connection)
    for url, asked in _ask_all(look, [url for _, _, url in parties]):
        if isinstance(asked, Asked) and asked.ahead is not None:
            ahead[url] = asked.ahead
    for whom, seconds in ahead.items():
        if abs(seconds) > CLOCK_OFF_SECONDS:
            code = "clock.wrong" if abs(seconds) > WRONG_SECONDS else "clock.off"
            side = "ahead of" if seconds > 0 else "behind"
            yield say(code, seconds=abs(seconds), side=side, whom=whom)
    if ahead:
        yield say("clock.fine", seconds=max(map(abs, ahead.values())), number=len(ahead))
    else:
        yield say("clock.alone")


def _third_parties(look: Sight, connection: Connection) -> list[tuple[str, str, str]]:
    """Kind, name and URL of each witness and authority that is asked."""
    _, witnesses = witnesses_in(look.settings.witness_policy_file)
    found = [(WITNESS, w.key_name, w.url) for w in witnesses if w.url and w.verifier.checkable]
    known, names = known_authorities(), chosen_authorities(connection)
    chosen = tuple(known[name].url for name in names if name in known)
    return found + [(TIMESTAMP, url, url) for url in look.settings.timestamp_urls or chosen]


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
        elif asked.ends_at is not None and asked.ends_at - look.now < _CERTIFICATE:
            yield say("reached.certificate", url=url, at=rfc3339(asked.ends_at))


def witnesses(look: Sight) -> Iterator[Diagnosis]:
    """Witnesses and time-stamp authorities respond, and have seen the log lately."""
    with look.reading() as connection:
        parties, log = _third_parties(look, connection), newest_logs(connection).get(Mode.LIVE)
        last = [
            (name, logs_sql.newest_anchor(connection, log.id, kind, name))
            for kind, name, _ in parties
            if log is not None and log.size
        ]
        ending = logs_sql.to_renew(connection, look.now, look.now + _STAMP)
        has_live = has_live_key(connection, look.now)
    if not parties:
        yield say("witnesses.none_live" if has_live else "witnesses.none")
    yield from _reached(look, [url for _, _, url in parties])
    for name, newest in last:
        if newest is None:
            yield say("witnesses.never", name=name)
        elif look.now - newest[1] > _ANCHOR_AGE:
            yield say("witnesses.late", name=name, at=rfc3339(newest[1]))
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


def public_address(look: Sight) -> Iterator[Diagnosis]:
    """Clients reach the service there, and its certificate does not end soon."""
    url = look.settings.public_url
    if url.startswith("https://"):
        yield from _reached(look, [f"{url}/healthz"])
        if not look.settings.trusted_proxies:  # the service itself speaks no TLS
            yield say("public_address.proxies")
        yield say("public_address.fine", url=url)
