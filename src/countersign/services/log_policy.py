"""The policy that this deployment hands out: its own logs, and the witnesses of the operator."""

from __future__ import annotations

from collections.abc import Sequence

from countersign.domain.mode import Mode
from countersign.evidence.note import Verifier
from countersign.ports import LogStore


class LogPolicy:
    """Writes tlog-policy files (c2sp.org/tlog-policy)."""

    def __init__(self, store: LogStore, witnesses: bytes | None) -> None:
        """`witnesses` are the witness, group and quorum lines of the operator's policy file."""
        self._store = store
        self._witnesses = witnesses or b"quorum none\n"

    async def keys(self, mode: Mode | None = None) -> Sequence[Verifier]:
        """The keys of every log, or of those of one mode, the oldest first."""
        return [
            Verifier.parse(key.vkey)
            for log in await self._store.logs()
            if mode is None or log.mode is mode
            for key in await self._store.keys(log.id)
        ]

    async def text(self, mode: Mode) -> bytes:
        """The policy for one mode: test evidence never satisfies a live one."""
        lines = [f"log {verifier.vkey}\n".encode() for verifier in await self.keys(mode)]
        return b"".join(lines) + self._witnesses
