"""Dossiers: the evidence of one order, by its acknowledgment or its clearance."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.access.key import Scope
from countersign.acknowledgments.evidence_routes import (
    FILE_RESPONSE_HEADERS,
    PREFER_WAIT,
    file_reply,
    wait_of,
)
from countersign.acknowledgments.room import Acknowledgments
from countersign.dossiers.dossier import dossier
from countersign.dossiers.schemas import DossierQuery
from countersign.errors import EvidenceDamaged, EvidencePending, NotFound
from countersign.http.reply import Call, Reply
from countersign.http.route import Route, grouped
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, is_id


async def get_acknowledgment_dossier(room: Acknowledgments, call: Call) -> Reply:
    """As that of its clearance; of several clearances, the newest that was granted."""
    return await _dossier(room, call, ACKNOWLEDGMENT)


async def get_clearance_dossier(room: Acknowledgments, call: Call) -> Reply:
    """All records of one order in one ZIP file, under one checkpoint, with their proofs.

    These are the acknowledgment, the identity check that the decision relied on, the clearance,
    reports of fulfilment, events of the notice, erasures, and the records of operator, account and
    capture process that these name. Readers say what joins them, and what is missing.

    The same request returns the same bytes for the same `size`. They change when a witness cosigns
    or a time-stamp authority stamps that checkpoint, when fields are erased, when the operator
    changes the witnesses, and with another release of the service, its fonts or its tools. Without
    `size` the checkpoint is the first one that holds all the records: a new record of the order
    changes the bytes too.
    """
    return await _dossier(room, call, CLEARANCE)


async def _dossier(room: Acknowledgments, call: Call, prefix: str) -> Reply:
    if not is_id(prefix, call.parameter):
        raise NotFound("The record was not found.")
    made = await dossier(room, call.principal, call.parameter, call.query, wait_of(call))
    return file_reply(made, b"application/zip", f"{call.parameter}-dossier.zip")


_dossier_route: Final = partial(
    Route,
    scope=Scope.EVIDENCE_READ,
    query=DossierQuery,
    media_type="application/zip",
    refusals=(NotFound, EvidencePending, EvidenceDamaged),
    request_headers=PREFER_WAIT,
    response_headers=FILE_RESPONSE_HEADERS,
)

ROUTES: Final = grouped(
    "Evidence",
    Acknowledgments,
    _dossier_route(
        address="GET /v1/acknowledgments/{ack_id}/dossier",
        handler=get_acknowledgment_dossier,
        operation="getAcknowledgmentDossier",
        summary="Get the evidence of the order of an acknowledgment, as a ZIP file",
    ),
    _dossier_route(
        address="GET /v1/clearances/{clearance_id}/dossier",
        handler=get_clearance_dossier,
        operation="getClearanceDossier",
        summary="Get the evidence of a cleared or refused order, as a ZIP file",
    ),
)
