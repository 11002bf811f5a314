"""Anchor checkpoints outside: cosignatures of witnesses, and RFC 3161 time-stamps.

Only statements of third parties keep an operator from rewriting a log. Both are optional; evidence
shows if one is absent, and the local clock never replaces either.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import structlog

from countersign.base.db.database import Database
from countersign.base.deadline import detached
from countersign.base.errors import (
    AnchoringFailed,
    CountersignError,
    EvidencePending,
    InvalidConfiguration,
)
from countersign.base.loops import forever
from countersign.base.values import Clock, Mode, from_ns
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.authorities import (
    chosen_authorities,
    known_authorities,
    timestamps_package,
)
from countersign.core.log.clock_guard import times_of
from countersign.core.log.model import TIMESTAMP, WITNESS, Anchor, Log, StoredCheckpoint
from countersign.core.log.seal import SealLog
from countersign_evidence.errors import EvidenceError, refused_as
from countersign_evidence.note import cosigned_at, open_note, parse_cosignature
from countersign_evidence.policy import Witness
from countersign_evidence.verification import CheckTimestamp

PERIOD_SECONDS: Final = 10.0
"""How often witnesses are asked while no caller waits for them."""
ASK_SECONDS: Final = 1.0
"""Witnesses are asked at most this often, however many callers wait."""
STAMP_SECONDS: Final = 300.0
"""Authorities are asked at most this often, whether they responded the last time or not."""
AGAIN: Final = timedelta(days=1)
"""An unchanged checkpoint is anchored again after this: an idle log shows that it still runs."""
RENEW_BEFORE: Final = timedelta(days=90)
"""So long before the end of its certificates a time-stamp is renewed."""
_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"
_SIZE: Final = "text/x.tlog.size"
_TIMEOUT_SECONDS: Final = 20.0
_RESPONSE_BYTES_MAX: Final = 256 * 1024

_log: Final = structlog.get_logger("countersign.anchoring")


class LastAnchor(NamedTuple):
    """The last success of a witness or an authority with the live log; None: never."""

    kind: str
    name: str
    size: int | None
    """How many entries it covers."""
    at: datetime | None


@dataclass(eq=False, repr=False, kw_only=True)
class AnchorLog:
    """Has the newest live checkpoint cosigned and time-stamped at intervals."""

    database: Database
    seal: SealLog
    witnesses: Sequence[Witness]
    """They are asked for cosignatures."""
    given: Sequence[str]
    """URLs of the authorities that are asked for RFC 3161 time-stamps; none: those that the
    operator chose at `init`."""
    check: CheckTimestamp | None
    """None: the certificates of the authorities that were chosen count."""
    clock: Clock
    _asked_at: dict[str, float] = field(default_factory=dict)
    _cosigning: asyncio.Lock = field(default_factory=asyncio.Lock)
    _on_demand: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Anchor until cancelled; no-op if neither is configured."""
        await forever("anchoring", self.anchor, PERIOD_SECONDS)

    def ask_witnesses(self) -> None:
        """Have the newest checkpoint cosigned now, since a caller waits for it; returns at once."""
        if self.witnesses and (self._on_demand is None or self._on_demand.done()):
            self._on_demand = detached(self._cosign_newest())

    async def anchor(self) -> None:
        """One round. Failed requests are repeated in the next one; nothing is raised."""
        await self._cosign_newest()
        authorities = await self._authorities()
        newest = await self._newest() if authorities else None
        if newest is not None:
            for authority in authorities:
                await self._try(authority, self.stamp(newest[1], authority))
        if authorities:
            await self._try(authorities[0], self.renew())

    async def last(self) -> Sequence[LastAnchor]:
        """The last success of each configured witness and authority, witnesses first."""
        live = (await self.database.read(logs_sql.newest_logs)).get(Mode.LIVE)
        asked = [(WITNESS, witness.key_name) for witness in self.witnesses]
        asked += [(TIMESTAMP, url) for url in await self._authorities()]
        found, read = [], self.database.read
        for kind, name in asked:
            newest = await read(logs_sql.newest_anchor, live.id, kind, name) if live else None
            found.append(LastAnchor(kind, name, *(newest or (None, None))))
        return found

    async def times(self) -> dict[str, float]:
        """The clocks of witnesses and authorities by their URL, Unix seconds: of who responds."""
        witnesses = [witness.url for witness in self.witnesses if witness.url]
        return await times_of([*witnesses, *await self._authorities()])

    async def _authorities(self) -> Sequence[str]:
        """The addresses of the authorities to ask: from the settings, else from `init`."""
        if self.given:
            return self.given
        known = known_authorities()
        names = await self.database.read(chosen_authorities)
        return [known[name].url for name in names if name in known]

    async def _cosign_newest(self) -> None:
        async with self._cosigning:
            newest = await self._newest() if self.witnesses else None
            for witness in self.witnesses if newest is not None else ():
                assert newest is not None  # noqa: S101 - for the type checker
                if self._may_ask(witness.key_name, ASK_SECONDS):
                    await self._try(witness.url or "", self.cosign(*newest, witness))

    async def _newest(self) -> tuple[Log, StoredCheckpoint] | None:
        """The live log and its newest checkpoint, published first; None: not possible now."""
        try:
            log = (await self.seal.current())[Mode.LIVE]
            checkpoint = await self.database.read(logs_sql.latest, log.id)
            if checkpoint is None or checkpoint.size == 0:
                return None
            await self.seal.release(log, checkpoint)
        except (CountersignError, KeyError) as error:
            if not isinstance(error, EvidencePending):
                _log.warning("anchoring_postponed", kind=type(error).__name__)
            return None
        return log, checkpoint

    def _may_ask(self, whom: str, seconds: float) -> bool:
        """True if so many seconds have passed since the last request to this third party."""
        now = self.clock.monotonic()
        if now - self._asked_at.get(whom, float("-inf")) < seconds:
            return False
        self._asked_at[whom] = now
        return True

    async def _last_size(self, checkpoint: StoredCheckpoint, kind: str, name: str) -> int | None:
        """The size this third party anchored last; None: this checkpoint, recently."""
        newest = await self.database.read(logs_sql.newest_anchor, checkpoint.log_id, kind, name)
        size, at = newest or (0, None)
        lately = at is not None and from_ns(self.clock.time_ns()) - at < AGAIN
        return None if size >= checkpoint.size and lately else size

    async def cosign(self, log: Log, checkpoint: StoredCheckpoint, witness: Witness) -> None:
        """Have a witness cosign a checkpoint (c2sp.org/tlog-witness), and keep the cosignature."""
        name = witness.key_name
        old = await self._last_size(checkpoint, WITNESS, name)
        if old is None:
            return
        status, media_type, body = await self._submit(witness, log, old, checkpoint)
        if status == 409 and media_type == _SIZE:
            text = body.removesuffix(b"\n")
            if not text.isdigit() or len(text) > 19:
                raise AnchoringFailed("The witness returned 409 without a size.")
            old = int(text)
            if old > checkpoint.size:
                raise AnchoringFailed(
                    f"The witness {name} has seen a larger tree ({old} entries) than this "
                    "database has."
                )
            status, _, body = await self._submit(witness, log, old, checkpoint)
        if status != 200:
            raise AnchoringFailed(f"The witness {name} returned the status {status}.")
        with refused_as(AnchoringFailed, f"The witness {name} returned no valid cosignature"):
            _, (signed,) = open_note(checkpoint.note + body, [witness.verifier])
        if cosigned_at(signed.time) is None:
            raise AnchoringFailed(f"The witness {name} cosigned with an invalid time.")
        lines = body.splitlines(keepends=True)
        line = next(line for line in lines if parse_cosignature(line) == signed)
        await self._keep(checkpoint, WITNESS, name, line)

    async def stamp(self, checkpoint: StoredCheckpoint, authority: str) -> None:
        """Have an authority time-stamp a checkpoint (RFC 3161), at most every five minutes."""
        if await self._last_size(checkpoint, TIMESTAMP, authority) is None:
            return
        if not self._may_ask(authority, STAMP_SECONDS):
            return
        body, ends_at = await self._request_stamp(authority, checkpoint.note)
        await self._keep(checkpoint, TIMESTAMP, authority, body, ends_at=ends_at)

    async def renew(self) -> None:
        """Have the time-stamp whose certificates expire first time-stamped itself, if soon.

        Each round renews one, by the first authority that can.
        """
        now = from_ns(self.clock.time_ns())
        old = await self.database.read(logs_sql.to_renew, now, now + RENEW_BEFORE)
        if old is None:
            return
        for authority in await self._authorities():
            try:
                body, ends_at = await self._request_stamp(authority, old.body)
            except AnchoringFailed as error:
                _log.warning("anchoring_failed", url=authority, reason=error.message)
                continue
            if ends_at is None or old.ends_at is None or ends_at <= old.ends_at:
                continue
            await self._keep(old, TIMESTAMP, authority, body, renews=old.digest, ends_at=ends_at)
            return

    async def _request_stamp(self, authority: str, data: bytes) -> tuple[bytes, datetime | None]:
        """A checked time-stamp of these bytes, and when the first of its certificates ends."""
        timestamps = timestamps_package()
        request = timestamps.timestamp_request(data)
        status, media_type, body = await _post(authority, _QUERY, request)
        if status != 200 or media_type != _REPLY:
            raise AnchoringFailed(f"{authority} returned the status {status} with {media_type}.")
        with refused_as(AnchoringFailed, f"{authority} returned no time-stamp that can be kept"):
            self._checking(authority)(body, data)
        return body, timestamps.ends_at(body)

    def _checking(self, authority: str) -> CheckTimestamp:
        """The function that checks the time-stamps of this authority."""
        if self.check is not None:
            return self.check
        (known,) = [one for one in known_authorities().values() if one.url == authority]
        check: CheckTimestamp = timestamps_package().timestamp_check(known.certificate)
        return check

    async def _submit(
        self, witness: Witness, log: Log, old: int, checkpoint: StoredCheckpoint
    ) -> tuple[int, str, bytes]:
        path = await self.database.scan(tree_sql.consistency, log.id, old, checkpoint.size)
        lines = [f"old {old}", *(b64encode(hash_).decode("ascii") for hash_ in path), "", ""]
        url = f"{(witness.url or '').rstrip('/')}/add-checkpoint"
        return await _post(url, "text/plain", "\n".join(lines).encode() + checkpoint.note)

    async def _keep(
        self,
        of: StoredCheckpoint | Anchor,
        kind: str,
        name: str,
        body: bytes,
        **more: Any,  # noqa: ANN401 - members of Anchor that only time-stamps have
    ) -> None:
        """Keep what a third party says of a checkpoint, or of an anchor that it renews."""
        anchor = Anchor(
            log_id=of.log_id,
            size=of.size,
            kind=kind,
            name=name,
            at=from_ns(self.clock.time_ns()),
            body=body,
            digest=sha256(body).hexdigest(),
            **more,
        )
        await self.database.write(logs_sql.add_anchor, anchor)

    async def _try(self, url: str, work: Awaitable[None]) -> None:
        try:
            await work
        except CountersignError as error:
            _log.warning("anchoring_failed", url=url, reason=error.message)


def timestamp_check(roots: Path | None) -> CheckTimestamp:
    """The function that checks received time-stamps, for a file with root certificates (PEM).

    Without one, a time-stamp by any signer is kept. Raises InvalidConfiguration if the package that
    time-stamps need is missing, or the file cannot be read.
    """
    timestamps: Any = timestamps_package()
    check: CheckTimestamp = timestamps.check_timestamp
    try:
        return check if roots is None else timestamps.timestamp_check(roots.read_bytes())
    except (OSError, EvidenceError) as error:
        unread = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else None
        why = unread or f"holds {error}"
        raise InvalidConfiguration(f"COUNTERSIGN_TIMESTAMP_ROOTS_FILE: {roots} {why}.") from error


async def _post(url: str, media_type: str, body: bytes) -> tuple[int, str, bytes]:
    """Post to a witness or an authority, with limits; returns status, media type and body."""
    headers = {"Content-Type": media_type}
    try:
        async with (
            httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > _RESPONSE_BYTES_MAX:
                    raise AnchoringFailed(f"The response of {url} is too large.")
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            return response.status_code, kind, bytes(received)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise AnchoringFailed(f"{url} cannot be reached: {type(error).__name__}.") from error
