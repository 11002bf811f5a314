"""The keys that sign checkpoints: kept sealed in the vault, opened where something is signed."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import structlog

from countersign.clock import Clock, Entropy
from countersign.db.database import Database
from countersign.errors import CountersignError, DamagedValue
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import Signer
from countersign.instant import from_ns
from countersign.log import logs_sql
from countersign.log.model import Log, LogKey
from countersign.log.sequencer import Sequencer
from countersign.mode import Mode
from countersign.vault.sealed_column import SealedColumn
from countersign.vault.vault import DEPLOYMENT, Vault

SEED_BYTES: Final = 32

_log: Final = structlog.get_logger("countersign.sealing")


def test_seed(origin: str) -> bytes:
    """The key of a test log, published on purpose: anyone can make it from the origin.

    So test evidence proves nothing, and a live policy never names such a key.
    """
    return sha256(b"countersign: the key of a test log\x00" + origin.encode()).digest()


class LogKeys:
    """Makes and opens the signing keys of logs."""

    def __init__(
        self, database: Database, sequencer: Sequencer, vault: Vault, clock: Clock, entropy: Entropy
    ) -> None:
        self._database = database
        self._sequencer = sequencer
        self._seeds = SealedColumn(vault, entropy, "log_keys", "seed")
        self._clock = clock
        self._entropy = entropy

    async def make(self, mode: Mode, origin: str, log_id: int) -> tuple[Signer, LogKey]:
        """A new key for a log: random, or the published one for test logs."""
        seed = test_seed(origin) if mode is Mode.TEST else self._entropy(SEED_BYTES)
        signer = Signer.from_seed(origin, seed)
        vkey = signer.verifier.vkey
        time_ns = self._clock.time_ns()
        sealed = await self._seeds.seal(seed, account=DEPLOYMENT, row_id=vkey, time_ns=time_ns)
        made = LogKey(
            log_id=log_id, vkey=vkey, seed=sealed, created_at=from_ns(time_ns), retires_at=None
        )
        return signer, made

    async def signers(self, log: Log) -> list[Signer]:
        """Those that sign for a log now, the newest first.

        A key that is damaged is left out: nothing but sealing needs it, and that waits if there is
        no other.
        """
        keys = await self._database.read(logs_sql.keys_of, log.id)
        opened = [(key, await self.opened(log, key)) for key in reversed(keys)]
        now = from_ns(self._clock.time_ns())
        return [
            signer
            for key, signer in opened
            if signer is not None and (key.retires_at is None or now < key.retires_at)
        ]

    async def opened(self, log: Log, key: LogKey) -> Signer | None:
        """The signer of this key; None if the key is damaged, which is logged."""
        try:
            seed = await self._seeds.open(key.seed, account=DEPLOYMENT, row_id=key.vkey)
            signer = Signer.from_seed(log.origin, seed)
            if signer.verifier.vkey == key.vkey:
                return signer
        except (DamagedValue, EvidenceError, ValueError):
            pass
        _log.error("log_key_damaged", log=log.origin, key=key.vkey)
        return None

    async def load(self) -> None:
        """Give the sequencer the keys of the newest log of each mode.

        Where they have changed and cannot be read, sealing is suspended.
        """
        # Before reading: a later change is noticed again.
        changed = frozenset(self._sequencer.unknown_keys)
        self._sequencer.unknown_keys.clear()
        try:
            logs = await self._database.read(logs_sql.all_logs)
            newest = {log.mode: log for log in logs}
            for log in newest.values():
                self._sequencer.learn(log.id, log.keys_revision, await self.signers(log))
        except CountersignError as error:
            for mode in changed:
                self._sequencer.suspend(
                    mode, f"The keys of the log have changed and cannot be read: {error.message}"
                )
            raise
