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
from countersign.dossiers.dossier import dossier, pdf_of
from countersign.dossiers.schemas import DossierQuery
from countersign.errors import EvidenceDamaged, EvidencePending, NotFound
from countersign.http.reply import Call, Reply
from countersign.http.route import Route, grouped
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, is_id


async def get_acknowledgment_dossier(room: Acknowledgments, call: Call) -> Reply:
    """As that of its clearance; of several clearances, the newest that was granted."""
    return await _dossier(room, call, ACKNOWLEDGMENT)


async def get_certificate(room: Acknowledgments, call: Call) -> Reply:
    """The PDF of the dossier, `dossier.pdf`, with the evidence attached.

    The PDF alone is for people: what can be verified is the dossier.
    """
    made = await _made(room, call, ACKNOWLEDGMENT)
    return file_reply(pdf_of(made), b"application/pdf", f"{call.parameter}.pdf")


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
    made = await _made(room, call, prefix)
    return file_reply(made, b"application/zip", f"{call.parameter}-dossier.zip")


async def _made(room: Acknowledgments, call: Call, prefix: str) -> bytes:
    if not is_id(prefix, call.parameter):
        raise NotFound("The record was not found.")
    return await dossier(room, call.principal, call.parameter, call.query, wait_of(call))


_dossier_route: Final = partial(
    Route,
    scope=Scope.EVIDENCE_READ,
    query=DossierQuery,
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
        personal=True,
        summary="Get everything needed to verify an acknowledgment and its order, as a ZIP file",
        media_type="application/zip",
    ),
    _dossier_route(
        address="GET /v1/acknowledgments/{ack_id}/certificate",
        handler=get_certificate,
        operation="getAcknowledgmentCertificate",
        personal=True,
        summary="Get the certificate of an acknowledgment for people, as a PDF",
        media_type="application/pdf",
    ),
    _dossier_route(
        address="GET /v1/clearances/{clearance_id}/dossier",
        handler=get_clearance_dossier,
        operation="getClearanceDossier",
        personal=True,
        summary="Get the evidence of a cleared or refused order, as a ZIP file",
        media_type="application/zip",
    ),
)
