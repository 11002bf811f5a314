"""The room of clearances: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass, field

from countersign.access.audit import Audit
from countersign.access.room import Access
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clocks import TestClocks
from countersign.buyers.rules import VerificationRules
from countersign.clearances.keys import ClearanceKeys
from countersign.clock import Clock, Entropy
from countersign.db.database import Database
from countersign.log.append_record import Recorder
from countersign.log.journal import Journal
from countersign.log.room import LogRoom
from countersign.notices.model import NoticeEdition
from countersign.notices.obligations import KNOWN_CLASSES, Following, following
from countersign.notices.registry import AllVersions, Registry
from countersign.vault.vault import Vault


class NoticeDuties:
    """What follows from notice versions, worked out once for each."""

    def __init__(self) -> None:
        self._following: dict[str, Following] = {}
        self._classes: tuple[AllVersions, frozenset[str]] = ({}, KNOWN_CLASSES)

    def of(self, version: NoticeEdition) -> Following:
        """What follows from a version."""
        known = self._following.get(version.digest)
        if known is None:
            known = self._following[version.digest] = following(version.content.obligations)
        return known

    def classes(self, notices: AllVersions) -> frozenset[str]:
        """The product classes that an order may name."""
        if self._classes[0] is not notices:
            named = [self.of(version).classes for all_ in notices.values() for version in all_]
            self._classes = notices, KNOWN_CLASSES.union(*named)
        return self._classes[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearances:
    """Clearances, their tokens and fulfilments."""

    database: Database
    clock: Clock
    entropy: Entropy
    secret: DeploymentSecret
    access: Access
    audit: Audit
    test_clocks: TestClocks
    vault: Vault
    recorder: Recorder
    journal: Journal
    registry: Registry
    keys: ClearanceKeys
    floor: VerificationRules
    """What the deployment asks of every verification."""
    public_url: str
    duties: NoticeDuties = field(default_factory=NoticeDuties)


def open_clearances(
    log: LogRoom, registry: Registry, floor: VerificationRules, public_url: str
) -> Clearances:
    """The room above an open log."""
    access, vault = log.access, log.vault.vault
    return Clearances(
        database=access.database,
        clock=access.clock,
        entropy=access.entropy,
        secret=access.secret,
        access=access,
        audit=access.audit,
        test_clocks=access.test_clocks,
        vault=vault,
        recorder=log.recorder,
        journal=log.journal,
        registry=registry,
        keys=ClearanceKeys(access.database, vault, access.audit, access.clock, access.entropy),
        floor=floor,
        public_url=public_url,
    )
