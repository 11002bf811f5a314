"""The policies that this deployment hands out: its own logs, and the witnesses of the operator.

One for each mode. Only live checkpoints are shown to witnesses, so only of live evidence can
cosignatures be asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from countersign.domain.mode import Mode
from countersign.evidence.note import Verifier
from countersign.evidence.policy import NONE, Policy, parse_policy
from countersign.ports import LogStore

_NO_WITNESSES: Final = b"quorum none\n"


class LogPolicy:
    """Writes tlog-policy files (c2sp.org/tlog-policy)."""

    def __init__(self, store: LogStore, witnesses: bytes | None) -> None:
        """`witnesses` are the witness, group and quorum lines of the operator's policy file."""
        self._store = store
        self._witnesses = witnesses or _NO_WITNESSES
        policy = parse_policy(self._witnesses)
        self._quorum = None if policy.quorum == NONE else policy

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
        return b"".join(lines) + (self._witnesses if mode is Mode.LIVE else _NO_WITNESSES)

    async def without_quorum(self, mode: Mode) -> Policy:
        """The same, read, and asking for no cosignature: those that are there have to be good."""
        return replace(parse_policy(await self.text(mode)), quorum=NONE)

    def quorum(self, mode: Mode) -> Policy | None:
        """Whose cosignatures evidence of this mode needs; None: nobody's."""
        return self._quorum if mode is Mode.LIVE else None
