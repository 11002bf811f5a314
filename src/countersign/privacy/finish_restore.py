"""After a restore: what was erased since the backup is written down as erased, once more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog

from countersign.access.secrets import DeploymentSecret
from countersign.errors import OnHold
from countersign.evidence.record import CBID_FIELD
from countersign.ids import FACT, timed_id
from countersign.log.append_record import Recorder
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.ports import Clock, Entropy, ErasureStore, RestoredStore
from countersign.privacy.model import ErasureReason, RecordErasure

_PAGE: Final = 500

_log: Final = structlog.get_logger("countersign.restore")


class FinishRestore:
    """Erases what was erased already: that was lost with the tail of the database."""

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
            for record in page:
                part = await self._part(record.account_id, record.mode, [record.record_id])
                # Ciphertext that a hold keeps stays, though nothing opens it.
                with suppress(OnHold):
                    await self._erasures.erase([part], None, self._cbid_index)
                    total += 1
        held = await self._erase_buyers()
        await self._restored.done(buyers_too=not held)
        return total

    async def _erase_buyers(self) -> int:
        """Erase the buyers again that were erased since the backup; gives how many a hold keeps."""
        held = 0
        for cbid in await self._restored.erased_buyers(self._cbid_index):
            buyer = await self._erasures.of_buyer(cbid)
            if buyer is None:
                continue  # went with another identifier of the same buyer
            left = [[v.record_id] for v in buyer.verifications if v.erased_at is None]
            parts = [await self._part(buyer.account_id, buyer.mode, ids) for ids in left or [[]]]
            try:
                await self._erasures.erase(parts, cbid, self._cbid_index)
            except OnHold as error:
                # The hold was released before the erasure, and the backup is from before both.
                held += 1
                _log.error("erased_buyer_on_hold", reason=error.message)
        return held

    async def _part(self, account_id: str, mode: Mode, ids: Sequence[str]) -> RecordErasure:
        erasure = await self._recorder.of_account(
            RecordType.ERASURE,
            record_id=timed_id(FACT, self._clock.time_ns(), self._entropy(8)),
            account_id=account_id,
            mode=mode,
            members={"erased": [*ids], "reason": ErasureReason.OTHER.value},
        )
        return RecordErasure(ids, erasure)

    def _cbid_index(self, account_id: str, cbid: str) -> bytes:
        return self._secret.blind_index(account_id, CBID_FIELD, cbid)
