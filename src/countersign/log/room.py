"""The room of the log: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.log.anchor import AnchorLog
from countersign.log.append_record import Recorder
from countersign.log.begin import BeginLog
from countersign.log.check import CheckLog
from countersign.log.journal import Journal
from countersign.log.policy import LogPolicy
from countersign.log.recover import RecoverLog
from countersign.log.seal import SealLog
from countersign.log.sql import LogRecords
from countersign.vault.room import VaultRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRoom:
    """Records, the logs they become entries of, and what others say of these."""

    access: Access
    vault: VaultRoom
    store: LogRecords
    journal: Journal
    recorder: Recorder
    seal: SealLog
    begin: BeginLog
    recover: RecoverLog
    policy: LogPolicy
    check: CheckLog
    anchor: AnchorLog
