"""After a restore: what was erased since the backup is written down as erased, once more."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Final

from countersign.domain.erasure import ErasureReason, RecordErasure
from countersign.domain.record import RecordType
from countersign.errors import OnHold
from countersign.ids import FACT, timed_id
from countersign.ports import Clock, Entropy, ErasureStore, RestoredStore
from countersign.services.acknowledge import CBID_FIELD
from countersign.services.records import Recorder
from countersign.services.secrets import DeploymentSecret

_PAGE: Final = 500


class FinishRestore:
    """Erases what has lost its key: its erasure was lost with the tail of the database."""

    def __init__(
        self,
        *,
        restored: RestoredStore,
        erasures: ErasureStore,
        recorder: Recorder,
        secret: DeploymentSecret,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._restored = restored
        self._erasures = erasures
        self._recorder = recorder
        self._secret = secret
        self._clock = clock
        self._entropy = entropy

    async def __call__(self) -> int:
        """Write the erasures down; gives of how many records. Harmless when it is done already."""
        total, after = 0, ""
        while page := await self._restored.keyless(after, _PAGE):
            after = page[-1].record_id
            owner = attrgetter("account_id", "mode")
            for (account_id, mode), group in groupby(sorted(page, key=owner), owner):
                ids = [record.record_id for record in group]
                erasure = await self._recorder.of_account(
                    RecordType.ERASURE,
                    record_id=timed_id(FACT, self._clock.time_ns(), self._entropy(8)),
                    account_id=account_id,
                    mode=mode,
                    members={"erased": [*ids], "reason": ErasureReason.OTHER.value},
                )
                try:
                    await self._erasures.erase(
                        [RecordErasure(ids, erasure)], None, self._cbid_index
                    )
                except OnHold:
                    continue  # their ciphertext stays, though nothing opens it
                total += len(ids)
        await self._restored.done()
        return total

    def _cbid_index(self, account_id: str, cbid: str) -> bytes:
        return self._secret.blind_index(account_id, CBID_FIELD, cbid)
