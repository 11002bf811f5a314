"""Anchor checkpoints outside: cosignatures of witnesses, and RFC 3161 time-stamps.

Only what others say keeps an operator from writing a log anew. Both are optional; what is absent
is shown as absent, and the local clock never stands in for either.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from countersign.errors import AnchoringFailed, CountersignError, EvidencePending
from countersign.evidence.cosignature import cosigned_at
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import open_note, parse_cosignature
from countersign.evidence.policy import Witness
from countersign.instant import from_ns
from countersign.log.model import TIMESTAMP, WITNESS, Anchor, Log, StoredCheckpoint
from countersign.log.seal import SealLog
from countersign.loops import forever
from countersign.mode import Mode
from countersign.ports import AnchorPost, Clock, LogStore

PERIOD_SECONDS: Final = 10.0
"""Witnesses are asked at most this often (c2sp.org/tlog-witness)."""
STAMP_SECONDS: Final = 300.0
"""Authorities are asked at most this often, whether they answered the last time or not."""
_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"
_SIZE: Final = "text/x.tlog.size"

_log: Final = structlog.get_logger("countersign.anchoring")


class AnchorLog:
    """Has the newest live checkpoint vouched for, now and then."""

    def __init__(
        self,
        *,
        store: LogStore,
        seal_log: SealLog,
        post: AnchorPost,
        witnesses: Sequence[Witness],
        authorities: Sequence[str],
        request: Callable[[bytes], bytes],
        check: Callable[[bytes, bytes], str],
        clock: Clock,
    ) -> None:
        """`request` and `check` make and check RFC 3161 messages; see `log.timestamps`."""
        self._store = store
        self._seal_log = seal_log
        self._post = post
        self._witnesses = [w for w in witnesses if w.url and w.verifier.checkable]
        self._authorities = authorities
        self._request = request
        self._check = check
        self._clock = clock
        # Of each log, which may be another after a new epoch: the size that was last vouched for.
        self._cosigned: dict[tuple[int, str], int] = {}
        self._stamped: dict[tuple[int, str], int] = {}
        self._asked_at: dict[str, float] = {}

    async def run(self) -> None:
        """Anchor until cancelled; nothing to do where neither is configured."""
        await forever("anchoring", self.anchor, PERIOD_SECONDS)

    async def anchor(self) -> None:
        """One round. Whoever cannot be reached is asked again in the next; nothing is raised."""
        if not (self._witnesses or self._authorities):
            return
        try:
            log = (await self._seal_log.current())[Mode.LIVE]
            checkpoint = await self._store.latest(log.id)
            if checkpoint is None or checkpoint.size == 0:
                return
            await self._seal_log.release(log, checkpoint)
        except (CountersignError, KeyError) as error:
            if not isinstance(error, EvidencePending):
                _log.warning("anchoring_postponed", kind=type(error).__name__)
            return
        for witness in self._witnesses:
            await self._try(witness.url or "", self.cosign(log, checkpoint, witness))
        for authority in self._authorities:
            await self._try(authority, self.stamp(log, checkpoint, authority))

    async def cosign(self, log: Log, checkpoint: StoredCheckpoint, witness: Witness) -> None:
        """Ask a witness to cosign a checkpoint (c2sp.org/tlog-witness), and keep what it gives.

        Raises:
            AnchoringFailed: it did not, or gave a cosignature that does not verify.
        """
        name = witness.key_name
        old = self._cosigned.get((log.id, name), 0)
        if old >= checkpoint.size:
            return
        url = f"{(witness.url or '').rstrip('/')}/add-checkpoint"
        answer = await self._post(url, "text/plain", await self._submission(log, old, checkpoint))
        if answer.status == 409 and answer.media_type == _SIZE:
            old = _size(answer.body)
            if old > checkpoint.size:
                msg = (
                    f"The witness {name} has seen a larger tree ({old} entries) than this "
                    "database has."
                )
                raise AnchoringFailed(msg)
            body = await self._submission(log, old, checkpoint)
            answer = await self._post(url, "text/plain", body)
        if answer.status != 200:
            msg = f"The witness {name} returned the status {answer.status}."
            raise AnchoringFailed(msg)
        try:
            open_note(checkpoint.note + answer.body, [witness.verifier])
        except EvidenceError as error:
            msg = f"The witness {name} returned no valid cosignature: {error}."
            raise AnchoringFailed(msg) from error
        line = next(
            line
            for line in answer.body.splitlines(keepends=True)
            if _is_by(checkpoint.note + line, witness)
        )
        if cosigned_at(parse_cosignature(line).time) is None:
            msg = f"The witness {name} cosigned with an invalid time."
            raise AnchoringFailed(msg)
        await self._keep(checkpoint, WITNESS, name, line)
        self._cosigned[log.id, name] = checkpoint.size

    async def stamp(self, log: Log, checkpoint: StoredCheckpoint, authority: str) -> None:
        """Have an authority time-stamp a checkpoint (RFC 3161), at most every five minutes.

        Raises:
            AnchoringFailed: it did not.
        """
        now = self._clock.monotonic()
        if self._stamped.get((log.id, authority), 0) >= checkpoint.size:
            return
        if now - self._asked_at.get(authority, float("-inf")) < STAMP_SECONDS:
            return
        self._asked_at[authority] = now
        answer = await self._post(authority, _QUERY, self._request(checkpoint.note))
        if answer.status != 200 or answer.media_type != _REPLY:
            msg = f"{authority} returned the status {answer.status} with {answer.media_type}."
            raise AnchoringFailed(msg)
        try:
            self._check(answer.body, checkpoint.note)
        except EvidenceError as error:
            msg = f"{authority} returned no time-stamp of the checkpoint: {error}."
            raise AnchoringFailed(msg) from error
        await self._keep(checkpoint, TIMESTAMP, authority, answer.body)
        self._stamped[log.id, authority] = checkpoint.size

    async def _submission(self, log: Log, old: int, checkpoint: StoredCheckpoint) -> bytes:
        path = []
        if 0 < old < checkpoint.size:
            path = list(await self._store.consistency(log.id, old, checkpoint.size))
        lines = [f"old {old}", *(b64encode(hash_).decode("ascii") for hash_ in path), "", ""]
        return "\n".join(lines).encode() + checkpoint.note

    async def _keep(self, checkpoint: StoredCheckpoint, kind: str, name: str, body: bytes) -> None:
        await self._store.add_anchor(
            Anchor(
                log_id=checkpoint.log_id,
                size=checkpoint.size,
                kind=kind,
                name=name,
                body=body,
                at=from_ns(self._clock.time_ns()),
            )
        )

    async def _try(self, whom: str, work: Awaitable[None]) -> None:
        try:
            await work
        except CountersignError as error:
            _log.warning("anchoring_failed", whom=whom, reason=error.message)


def _is_by(note: bytes, witness: Witness) -> bool:
    try:
        open_note(note, [witness.verifier])
    except EvidenceError:
        return False
    return True


def _size(body: bytes) -> int:
    text = body.removesuffix(b"\n")
    if not text.isdigit() or len(text) > 19:
        msg = "The witness returned 409 without a size."
        raise AnchoringFailed(msg)
    return int(text)
