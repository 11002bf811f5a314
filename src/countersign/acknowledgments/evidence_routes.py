"""Evidence: proofs, certificates and bundles, and the page that checks them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Final

from countersign import offline
from countersign.acknowledgments import proof
from countersign.bootstrap import Deployment
from countersign.http.reply import NO_STORE, Call, Header, Reply
from countersign.mode import Mode

WAIT_SECONDS_MAX: Final = 10
_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,6})(?:$|[,;\s])")
_NO_POLICIES: Final = b'id="policies">{}'
_CSP: Final = re.compile(rb'http-equiv="Content-Security-Policy"\s+content="([^"]+)"')


async def get_proof(deployment: Deployment, call: Call) -> Reply:
    """The proof that the log contains the record of an acknowledgment.

    A text file in the format `c2sp.org/tlog-proof@v1`, with the record in its `extra` line. The
    file changes only when a witness or a time-stamp authority signs a later checkpoint.
    """
    file = await proof.proof(
        deployment.acknowledgments, call.principal, call.parameter, _wait(call)
    )
    return _file(file, b"text/plain; charset=utf-8", f"{call.parameter}.tlog-proof")


async def get_certificate(deployment: Deployment, call: Call) -> Reply:
    """A certificate that people can read, with the machine-readable evidence attached."""
    pdf = await proof.certificate(
        deployment.acknowledgments,
        call.principal,
        call.parameter,
        call.query.get("disclose"),
        _wait(call),
    )
    return _file(pdf, b"application/pdf", f"{call.parameter}.pdf")


async def get_bundle(deployment: Deployment, call: Call) -> Reply:
    """Record, disclosures, notice, proof, policy, certificate and verifiers in one ZIP file.

    The same request returns the same bytes, even after the log has grown or has another key. The
    bytes change when a witness cosigns or a time-stamp authority stamps a checkpoint, when fields
    are erased, when the operator changes the account's name or the witnesses, and with another
    release of the service.
    """
    bundle = await proof.bundle(
        deployment.acknowledgments,
        call.principal,
        call.parameter,
        call.query.get("disclose"),
        _wait(call),
    )
    return _file(bundle, b"application/zip", f"{call.parameter}.zip")


async def get_verify_page(deployment: Deployment, _call: Call) -> Reply:
    """The page on which a bundle or a proof is checked: in the browser, uploading nothing.

    It checks against the policies of this deployment, which it contains as data. No script is
    changed, so the digests in its content security policy hold.
    """
    before, after, policy = _verify_page()
    policies = {
        mode.value: b64encode(await deployment.log.policy.text(mode)).decode() for mode in Mode
    }
    return Reply(
        before + json.dumps(policies).encode() + after,
        (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy + b"; frame-ancestors 'none'"),
            (b"x-content-type-options", b"nosniff"),
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


def _file(body: bytes, media_type: bytes, name: str) -> Reply:
    digest = b64encode(sha256(body).digest()).decode("ascii")
    headers: tuple[Header, ...] = (
        (b"content-type", media_type),
        (b"content-disposition", f'attachment; filename="{name}"'.encode("ascii")),
        (b"content-digest", f"sha-256=:{digest}:".encode("ascii")),
        NO_STORE,
    )
    return Reply(body, headers)


def _wait(call: Call) -> float:
    """How long the caller would wait (RFC 7240 §4.3); a preference is never an error."""
    found = _WAIT.search(call.headers.get(b"prefer", b"").decode("latin-1").lower())
    return float(min(int(found[1]), WAIT_SECONDS_MAX)) if found else 0.0
