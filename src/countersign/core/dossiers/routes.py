"""Dossiers: the evidence of one order, by its acknowledgment or its clearance."""

from __future__ import annotations

from typing import Final

from countersign.base.errors import NotFound
from countersign.base.values import ACKNOWLEDGMENT, CLEARANCE, is_id
from countersign.core.acknowledgments.evidence_routes import evidence_acts, file_reply, wait_of
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.dossiers.dossier import DossierQuery, dossier, pdf_of
from countersign.core.gate.route import Call, Reply

EVIDENCE: Final = evidence_acts(personal=True)


@EVIDENCE.act(
    "GET /v1/acknowledgments/{ack_id}/dossier",
    "Get everything needed to verify an acknowledgment and its order, as a ZIP file",
    media_type="application/zip",
)
async def get_acknowledgment_dossier(
    room: Acknowledgments, call: Call, query: DossierQuery
) -> Reply:
    """As that of its clearance; of several, that of the shipment, else the newest."""
    return _zip(call, await _made(room, call, query, ACKNOWLEDGMENT))


@EVIDENCE.act(
    "GET /v1/acknowledgments/{ack_id}/certificate",
    "Get the certificate of an acknowledgment for people, as a PDF",
    media_type="application/pdf",
)
async def get_acknowledgment_certificate(
    room: Acknowledgments, call: Call, query: DossierQuery
) -> Reply:
    """The PDF of the dossier, `dossier.pdf`, with the evidence attached.

    The PDF alone is for people: what can be verified is the dossier.
    """
    made = await _made(room, call, query, ACKNOWLEDGMENT)
    return file_reply(pdf_of(made), b"application/pdf", f"{call.parameter}.pdf")


@EVIDENCE.act(
    "GET /v1/clearances/{clearance_id}/dossier",
    "Get the evidence of a cleared or refused order, as a ZIP file",
    media_type="application/zip",
)
async def get_clearance_dossier(room: Acknowledgments, call: Call, query: DossierQuery) -> Reply:
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
    return _zip(call, await _made(room, call, query, CLEARANCE))


def _zip(call: Call, made: bytes) -> Reply:
    return file_reply(made, b"application/zip", f"{call.parameter}-dossier.zip")


async def _made(room: Acknowledgments, call: Call, query: DossierQuery, prefix: str) -> bytes:
    if not is_id(prefix, call.parameter):
        raise NotFound("The record was not found.")
    return await dossier(room, call.principal, call.parameter, query, wait_of(call))


ROUTES: Final = EVIDENCE.routes
