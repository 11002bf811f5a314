"""The policies that this deployment hands out: its own logs, and the witnesses of the operator.

One for each mode. Witnesses see only live checkpoints, so only live evidence can require
cosignatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from countersign.base.db.database import Database
from countersign.base.errors import InvalidArgument, InvalidConfiguration
from countersign.base.values import Clock, Mode, from_ns
from countersign.core.log import logs_sql
from countersign.core.log.model import Log, LogKey
from countersign_evidence.errors import EvidenceError, refused_as
from countersign_evidence.key_history import KeyRange
from countersign_evidence.note import COSIGNATURE, ED25519, Verifier, parse_note
from countersign_evidence.policy import NONE, Policy, Witness, parse_policy

_NO_WITNESSES: Final = b"quorum none\n"
_parsed: Final = lru_cache(maxsize=8)(partial(parse_policy, any_kind=True))


def read_witnesses(file: bytes) -> tuple[bytes, Sequence[Witness]]:
    """Read the witness, group and quorum lines of the operator: what to hand out, whom to ask.

    Comments and addresses stay with the operator: they are not handed out. Witnesses often publish
    a key of kind 0x01; it is read as kind 0x04, which witnesses sign with (Tessera converts such
    keys the same way).
    """
    lines = [_line(line.replace(b"\t", b" ").split(b" ")) for line in file.split(b"\n")]
    policy = parse_policy(b"\n".join(b" ".join(items) for items in lines), any_kind=True)
    if policy.logs:
        raise InvalidArgument(
            "it has log lines; the logs of this deployment are added automatically"
        )
    handed_out = [items[:3] if items[0] == b"witness" else items for items in lines if items]
    return b"".join(b" ".join(items) + b"\n" for items in handed_out), policy.witnesses


def witnesses_in(file: Path | None) -> tuple[bytes, Sequence[Witness]]:
    """The lines of the operator's witness file; none without a file."""
    if file is None:
        return _NO_WITNESSES, ()
    what = f"COUNTERSIGN_WITNESS_POLICY_FILE: {file} cannot be used"
    with refused_as(InvalidConfiguration, what, OSError, InvalidArgument):
        return read_witnesses(file.read_bytes())


def _line(items: Sequence[bytes]) -> list[bytes]:
    """The items of a line without blanks; none of a comment."""
    found = [item for item in items if item]
    if not found or found[0].startswith(b"#"):
        return []
    if found[0] == b"witness" and len(found) > 2:
        found[2] = _cosigning(found[2])
    return found


def _cosigning(vkey: bytes) -> bytes:
    """A witness's key, of the kind that signs."""
    try:
        key = Verifier.parse(vkey.decode(), any_kind=True)
    except (EvidenceError, UnicodeDecodeError):
        return vkey  # the policy's reader reports the error and its line
    if key.kind != ED25519:
        return vkey
    return Verifier(key.name, COSIGNATURE, key.public_key).vkey.encode()


_SKEW: Final = timedelta(seconds=2)
"""More than the clocks of two servers may differ, so that they say the same of a key."""
_STILL: Final = timedelta(minutes=1) + _SKEW
"""How long a server may sign with a retired key: it reads the keys once a minute."""


class LogPolicy:
    """Writes tlog-policy files (c2sp.org/tlog-policy)."""

    def __init__(self, database: Database, witnesses: bytes, clock: Clock) -> None:
        """`witnesses` are the lines of the operator's witnesses to hand out."""
        self._database = database
        self._clock = clock
        self._witnesses = witnesses or _NO_WITNESSES
        policy = parse_policy(self._witnesses, any_kind=True)
        self._quorum = None if policy.quorum == NONE else policy
        # The size of a log before a past moment does not change.
        self._sizes: dict[tuple[int, datetime], int] = {}

    async def keys(self) -> Sequence[Verifier]:
        """The keys of every log, the oldest first."""
        return [
            Verifier.parse(key.vkey)
            for log in await self._database.read(logs_sql.all_logs)
            for key in await self._keys_of(log)
        ]

    async def text(self, mode: Mode) -> bytes:
        """The policy for one mode: test evidence never satisfies a live one.

        If a log has had several keys, a comment above each says for which sizes of checkpoints it
        counts.
        """
        lines: list[str] = []
        for log in await self._database.read(logs_sql.all_logs):
            if log.mode is mode:
                ranges = await self.ranges(log)
                for start, end, key in ranges:
                    if len(ranges) > 1:
                        to = "on" if end is None else f"to {end}"
                        lines.append(f"# sizes {start} {to}\n")
                    lines.append(f"log {key.vkey}\n")
        return "".join(lines).encode() + self._of_witnesses(mode)

    async def behind(self, log: Log, note: bytes) -> bytes:
        """The policy for one checkpoint, with those of its log's keys that signed it.

        So it stays the same when the log gets another key.
        """
        signed = {line.by for line in parse_note(note).signatures}
        keys = [Verifier.parse(key.vkey) for key in await self._keys_of(log)]
        lines = [f"log {key.vkey}\n" for key in keys if key.signs_as in signed]
        return "".join(lines).encode() + self._of_witnesses(log.mode)

    async def without_quorum(self, mode: Mode) -> Policy:
        """The same, parsed, without a quorum: existing cosignatures must still be valid."""
        return replace(_parsed(await self.text(mode)), quorum=NONE)

    def quorum(self, mode: Mode) -> Policy | None:
        """The witnesses that evidence of this mode needs; None: no cosignature is needed."""
        return self._quorum if mode is Mode.LIVE else None

    async def _keys_of(self, log: Log) -> Sequence[LogKey]:
        return await self._database.read(logs_sql.keys_of, log.id)

    def _of_witnesses(self, mode: Mode) -> bytes:
        return self._witnesses if mode is Mode.LIVE else _NO_WITNESSES

    async def ranges(self, log: Log) -> Sequence[KeyRange]:
        """The sizes for which each key counts, oldest first; the first ones from the beginning."""
        keys, ranges = await self._keys_of(log), []
        now = from_ns(self._clock.time_ns())
        for key in keys:
            start, end = 0, None
            if key.created_at != keys[0].created_at:
                start = await self._size_before(log.id, key.created_at - _SKEW) + 1
            if key.retires_at is not None and key.retires_at + 2 * _STILL <= now:
                end = await self._size_before(log.id, key.retires_at + _STILL)
            ranges.append(KeyRange(start, end, key.verifier))
        return ranges

    async def _size_before(self, log_id: int, moment: datetime) -> int:
        known = self._sizes.get((log_id, moment))
        if known is None:
            known = await self._database.scan(logs_sql.size_before, log_id, moment)
            self._sizes[log_id, moment] = known
        return known
