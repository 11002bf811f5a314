"""Evidence: proofs, and the page on which evidence is checked."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from typing import Final

from countersign.base.errors import EvidenceDamaged, EvidencePending, NotFound
from countersign.base.values import Mode
from countersign.core.access.key import Principal, Scope
from countersign.core.acknowledgments.find import refusing_damage, stored
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.gate.act import Acts
from countersign.core.gate.route import NO_STORE, Call, Header, Reply, Route
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.model import cosignatures
from countersign.core.log.seal import with_cosignatures
from countersign_evidence import offline
from countersign_evidence.errors import EvidenceError
from countersign_evidence.proof import Proof, format_proof
from countersign_evidence.verification import verify_file

# Prove an acknowledgment: a proof that anyone can check.
#
# Evidence is verified before it is handed out, as its reader would: a database that was changed
# behind the service's back, or that a disk has damaged, must not make it hand out what fails in
# court.


async def proof(room: Acknowledgments, who: Principal, ack_id: str, wait: float = 0.0) -> bytes:
    """The proof that the log holds the record (c2sp.org/tlog-proof).

    `wait` is how many seconds to wait for sealing, and for the cosignatures that a quorum asks for.
    """
    database, seal = room.log.database, room.log.seal
    with refusing_damage(ack_id), room.checkpoints.patience(who.account_id, wait) as seconds:
        found = await stored(room, who, ack_id)
        deadline = asyncio.get_running_loop().time() + seconds
        log_id, index = await seal.sealed(ack_id, seconds)
        log = next(log for log in await database.read(logs_sql.all_logs) if log.id == log_id)
        checkpoint = await room.checkpoints.over(log, index, deadline)
        anchors = await database.read(logs_sql.anchors_of, log.id, checkpoint.size)
        note = await seal.release(log, checkpoint)
        path = await database.scan(tree_sql.inclusion, log_id, index, checkpoint.size)
        signed = with_cosignatures(note, cosignatures(anchors))
        written = format_proof(Proof(found.record, index, tuple(path), signed))
        verdict = verify_file(written, await room.log.policy.without_quorum(log.mode))
        if not verdict.ok:
            raise EvidenceError(verdict.line())
        return written


WAIT_SECONDS_MAX: Final = 10
_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,6})(?:$|[,;\s])")
_NO_POLICIES: Final = b'id="policies">{}'
_CSP: Final = re.compile(rb'http-equiv="Content-Security-Policy"\s+content="([^"]+)"')


_PROOF: Final = """\
c2sp.org/tlog-proof@v1
extra eyJfc2QiOlsi…
index 812
wLUEo/sPK9jOB705DFJ+9w6XvQzodvrVdmAocIyWW3c=

evidence.example.com/v1/log/test/1
815
cF1PqiisCigZpguJ8gu1oSE3FMFDDzWqMo1Fr0xILvc=

— evidence.example.com/v1/log/test/1 G0vEBk7Bej1zBbURuczWTG8sE7FssgwZe3Dk…
"""

FILE_RESPONSE_HEADERS: Final = {"Content-Digest": "The SHA-256 of the content (RFC 9530)."}
evidence_acts: Final = partial(
    Acts,
    "Evidence",
    Acknowledgments,
    scope=Scope.EVIDENCE_READ,
    refusals=(NotFound, EvidencePending, EvidenceDamaged),
    request_headers={
        "Prefer": f"`wait=N` waits up to N seconds (at most {WAIT_SECONDS_MAX}) for sealing "
        "(RFC 7240)."
    },
    response_headers=FILE_RESPONSE_HEADERS,
)
EVIDENCE: Final = evidence_acts()


@EVIDENCE.act(
    "GET /v1/acknowledgments/{ack_id}/proof",
    "Get the proof that the log contains the record",
    media_type="text/plain; charset=utf-8",
    response_examples={"a proof": _PROOF},
)
async def get_acknowledgment_proof(room: Acknowledgments, call: Call) -> Reply:
    """The proof that the log contains the record of an acknowledgment.

    A text file in the format `c2sp.org/tlog-proof@v1`, with the record in its `extra` line. The
    file changes only when a witness or a time-stamp authority signs a later checkpoint.
    """
    file = await proof(room, call.principal, call.parameter, wait_of(call))
    return file_reply(file, b"text/plain; charset=utf-8", f"{call.parameter}.tlog-proof")


async def get_verify_page(room: Acknowledgments, _call: Call) -> Reply:
    """The page that checks a dossier or a proof: in the browser, uploading nothing.

    It checks against the policies of this deployment, which it contains as data. No script is
    changed, so the digests in its content security policy hold.
    """
    before, after, policy = _verify_page()
    policies = {
        mode.value: b64encode(await room.notices.log.policy.text(mode)).decode() for mode in Mode
    }
    return Reply(
        before + json.dumps(policies).encode() + after,
        (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy + b"; frame-ancestors 'none'"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-cache"),
        ),
    )


@cache
def _verify_page() -> tuple[bytes, bytes, bytes]:
    """The page before and after the policies, and the content security policy that it names."""
    page = (resources.files(offline) / "verify.html").read_bytes()
    found, (before, after) = _CSP.search(page), page.split(_NO_POLICIES)
    assert found is not None  # noqa: S101 - our own page
    return before + _NO_POLICIES[:-2], after, found[1]


def file_reply(body: bytes, media_type: bytes, name: str) -> Reply:
    """A file to save, with its digest."""
    digest = b64encode(sha256(body).digest()).decode("ascii")
    headers: tuple[Header, ...] = (
        (b"content-type", media_type),
        (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii")),
        (b"content-digest", f"sha-256=:{digest}:".encode("ascii")),
        NO_STORE,
    )
    return Reply(body, headers)


def wait_of(call: Call) -> float:
    """How long the caller would wait (RFC 7240 §4.3); a preference is never an error."""
    found = _WAIT.search(call.headers.get(b"prefer", b"").decode("latin-1").lower())
    return float(min(int(found[1]), WAIT_SECONDS_MAX)) if found else 0.0


ROUTES: Final = (
    *EVIDENCE.routes,
    Route(address="GET /verify", handler=get_verify_page, room=Acknowledgments),
)
