"""The room of acknowledgments: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from countersign.acknowledgments.acknowledge import Acknowledge
from countersign.acknowledgments.export import ExportAcknowledgments
from countersign.acknowledgments.find import FindAcknowledgments
from countersign.acknowledgments.proof import ProveAcknowledgment
from countersign.host import Network
from countersign.notices.room import Notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgments:
    """Acknowledgments, read back and proved."""

    notices: Notices
    acknowledge: Acknowledge
    find: FindAcknowledgments
    prove: ProveAcknowledgment
    export: ExportAcknowledgments
    client_ip_header: str
    trusted_proxies: Sequence[Network]
