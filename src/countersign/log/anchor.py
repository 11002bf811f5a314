"""Anchor checkpoints outside: cosignatures of witnesses, and RFC 3161 time-stamps.

Only statements of third parties keep an operator from rewriting a log. Both are optional; what is
absent is shown as absent, and the local clock never stands in for either.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Sequence
from types import ModuleType
from typing import Final

import httpx2
import structlog

from countersign.clock import Clock
from countersign.db.database import Database
from countersign.errors import (
    AnchoringFailed,
    CountersignError,
    EvidencePending,
    InvalidConfiguration,
)
from countersign.evidence.checkpoint import cosigned_at
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import open_note, parse_cosignature
from countersign.evidence.policy import Witness
from countersign.instant import from_ns
from countersign.log import logs_sql, tree_sql
from countersign.log.model import TIMESTAMP, WITNESS, Anchor, Log, StoredCheckpoint
from countersign.log.seal import SealLog
from countersign.loops import forever
from countersign.mode import Mode

PERIOD_SECONDS: Final = 10.0
"""Witnesses are asked at most this often (c2sp.org/tlog-witness)."""
STAMP_SECONDS: Final = 300.0
"""Authorities are asked at most this often, whether they responded the last time or not."""
_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"
_SIZE: Final = "text/x.tlog.size"
_TIMEOUT_SECONDS: Final = 20.0
_RESPONSE_BYTES_MAX: Final = 256 * 1024

_log: Final = structlog.get_logger("countersign.anchoring")


class AnchorLog:
    """Has the newest live checkpoint cosigned and time-stamped at intervals."""

    def __init__(
        self,
        database: Database,
        seal: SealLog,
        witnesses: Sequence[Witness],
        authorities: Sequence[str],
        clock: Clock,
    ) -> None:
        """Witnesses are asked for cosignatures, authorities (their URLs) for RFC 3161 time-stamps.

        Raises InvalidConfiguration if there are authorities, but not the package that they need.
        """
        if authorities:
            _timestamps()
        self._database = database
        self._seal = seal
        self._witnesses = [w for w in witnesses if w.url and w.verifier.checkable]
        self._authorities = authorities
        self._clock = clock
        # Of each log, which may be another after a new epoch: the size that was anchored last.
        self._cosigned: dict[tuple[int, str], int] = {}
        self._stamped: dict[tuple[int, str], int] = {}
        self._asked_at: dict[str, float] = {}

    async def run(self) -> None:
        """Anchor until cancelled; nothing to do where neither is configured."""
        await forever("anchoring", self.anchor, PERIOD_SECONDS)

    async def anchor(self) -> None:
        """One round. Failed requests are repeated in the next one; nothing is raised."""
        if not (self._witnesses or self._authorities):
            return
        try:
            log = (await self._seal.current())[Mode.LIVE]
            checkpoint = await self._database.read(logs_sql.latest, log.id)
            if checkpoint is None or checkpoint.size == 0:
                return
            await self._seal.release(log, checkpoint)
        except (CountersignError, KeyError) as error:
            if not isinstance(error, EvidencePending):
                _log.warning("anchoring_postponed", kind=type(error).__name__)
            return
        for witness in self._witnesses:
            await self._try(witness.url or "", self.cosign(log, checkpoint, witness))
        for authority in self._authorities:
            await self._try(authority, self.stamp(log, checkpoint, authority))

    async def cosign(self, log: Log, checkpoint: StoredCheckpoint, witness: Witness) -> None:
        """Have a witness cosign a checkpoint (c2sp.org/tlog-witness), and keep the cosignature."""
        name = witness.key_name
        old = self._cosigned.get((log.id, name), 0)
        if old >= checkpoint.size:
            return
        status, media_type, body = await self._submit(witness, log, old, checkpoint)
        if status == 409 and media_type == _SIZE:
            old = _size(body)
            if old > checkpoint.size:
                raise AnchoringFailed(
                    f"The witness {name} has seen a larger tree ({old} entries) than this "
                    "database has."
                )
            status, _, body = await self._submit(witness, log, old, checkpoint)
        if status != 200:
            raise AnchoringFailed(f"The witness {name} returned the status {status}.")
        try:
            _, (signed,) = open_note(checkpoint.note + body, [witness.verifier])
        except EvidenceError as error:
            raise AnchoringFailed(
                f"The witness {name} returned no valid cosignature: {error}."
            ) from error
        if cosigned_at(signed.time) is None:
            raise AnchoringFailed(f"The witness {name} cosigned with an invalid time.")
        lines = body.splitlines(keepends=True)
        line = next(line for line in lines if parse_cosignature(line) == signed)
        await self._keep(checkpoint, WITNESS, name, line)
        self._cosigned[log.id, name] = checkpoint.size

    async def stamp(self, log: Log, checkpoint: StoredCheckpoint, authority: str) -> None:
        """Have an authority time-stamp a checkpoint (RFC 3161), at most every five minutes."""
        now = self._clock.monotonic()
        if self._stamped.get((log.id, authority), 0) >= checkpoint.size:
            return
        if now - self._asked_at.get(authority, float("-inf")) < STAMP_SECONDS:
            return
        self._asked_at[authority] = now
        timestamps = _timestamps()
        request = timestamps.timestamp_request(checkpoint.note)
        status, media_type, body = await _post(authority, _QUERY, request)
        if status != 200 or media_type != _REPLY:
            raise AnchoringFailed(f"{authority} returned the status {status} with {media_type}.")
        try:
            timestamps.check_timestamp(body, checkpoint.note)
        except EvidenceError as error:
            raise AnchoringFailed(
                f"{authority} returned no time-stamp of the checkpoint: {error}."
            ) from error
        await self._keep(checkpoint, TIMESTAMP, authority, body)
        self._stamped[log.id, authority] = checkpoint.size

    async def _submit(
        self, witness: Witness, log: Log, old: int, checkpoint: StoredCheckpoint
    ) -> tuple[int, str, bytes]:
        path = await self._database.scan(tree_sql.consistency, log.id, old, checkpoint.size)
        lines = [f"old {old}", *(b64encode(hash_).decode("ascii") for hash_ in path), "", ""]
        url = f"{(witness.url or '').rstrip('/')}/add-checkpoint"
        return await _post(url, "text/plain", "\n".join(lines).encode() + checkpoint.note)

    async def _keep(self, checkpoint: StoredCheckpoint, kind: str, name: str, body: bytes) -> None:
        anchor = Anchor(
            log_id=checkpoint.log_id,
            size=checkpoint.size,
            kind=kind,
            name=name,
            body=body,
            at=from_ns(self._clock.time_ns()),
        )
        await self._database.write(logs_sql.add_anchor, anchor)

    async def _try(self, url: str, work: Awaitable[None]) -> None:
        try:
            await work
        except CountersignError as error:
            _log.warning("anchoring_failed", url=url, reason=error.message)


def _size(body: bytes) -> int:
    text = body.removesuffix(b"\n")
    if not text.isdigit() or len(text) > 19:
        raise AnchoringFailed("The witness returned 409 without a size.")
    return int(text)


def _timestamps() -> ModuleType:
    try:
        from countersign.log import timestamps  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InvalidConfiguration(
            "COUNTERSIGN_TIMESTAMP_URLS needs the package rfc3161-client, which is not installed."
        ) from error
    return timestamps


async def _post(url: str, media_type: str, body: bytes) -> tuple[int, str, bytes]:
    """Post to a witness or an authority, with limits; gives status, media type and body."""
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
