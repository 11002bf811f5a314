"""Creates sessions at three simulators and retrieves them, as each provider's page says."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from countersign_simulators import didit, onfido, veriff
from countersign_simulators.didit_created import WORKFLOW as DIDIT_WORKFLOW
from countersign_simulators.onfido_created import WORKFLOW as ONFIDO_WORKFLOW
from tests.support.providers import Playing

REFERENCE: Final = "chk_7q2mrehearsed"
_TOKEN: Final = f"Token token={onfido.TOKENS['live']}"


CLIENT: Final = httpx2.Client(trust_env=False, timeout=20, verify=False)
"""Made once: making one takes longer than a request."""


@dataclass(frozen=True)
class Made:
    """A session that was created."""

    session_id: str
    url: str
    """Of its page."""
    answers: Mapping[str, Any]
    """Everything that the creation returned."""


def signature(message: bytes, secret: str = veriff.SHARED_SECRET) -> str:
    """HMAC-SHA256 in hex, made without the simulator's code."""
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def post(url: str, body: object, **headers: str) -> httpx2.Response:
    """Send JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = json.dumps(body).encode()
    every = {"Content-Type": "application/json"} | named
    return CLIENT.post(url, content=content, headers=every)


def _get(url: str, **headers: str) -> Any:  # noqa: ANN401 - any JSON
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CLIENT.get(url, headers=named).raise_for_status().json()


def _veriff(at: str, return_url: str | None) -> Made:
    wanted = {"vendorData": REFERENCE} | ({"callback": return_url} if return_url else {})
    body = {"verification": wanted}
    signed = signature(json.dumps(body).encode())
    key = veriff.API_KEY
    reply = post(f"{at}/v1/sessions", body, x_auth_client=key, x_hmac_signature=signed)
    assert reply.status_code == 201
    answers = reply.json()["verification"]
    return Made(answers["id"], answers["url"], answers)


def _veriff_found(at: str, session_id: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = _get(
        f"{at}/v1/sessions/{session_id}/decision",
        x_auth_client=veriff.API_KEY,
        x_hmac_signature=signature(session_id.encode()),
    )["verification"]
    return found


def _didit(at: str, return_url: str | None) -> Made:
    body = {"workflow_id": DIDIT_WORKFLOW, "vendor_data": REFERENCE}
    body |= {"callback": return_url} if return_url else {}
    reply = post(f"{at}/v3/session/", body, x_api_key=didit.API_KEY)
    assert reply.status_code == 201
    answers = reply.json()
    return Made(answers["session_id"], answers["url"], answers)


def _didit_found(at: str, session_id: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] = _get(
        f"{at}/v3/session/{session_id}/decision/", x_api_key=didit.API_KEY
    )
    return found


def _onfido(at: str, return_url: str | None) -> Made:
    applicant = post(
        f"{at}/v3.6/applicants",
        {"first_name": "Anonymous", "last_name": "Buyer"},
        authorization=_TOKEN,
    )
    assert applicant.status_code == 201
    both = ("completed_redirect_url", "expired_redirect_url")
    body = {
        "applicant_id": applicant.json()["id"],
        "workflow_id": ONFIDO_WORKFLOW,
        "customer_user_id": REFERENCE,
        "link": dict.fromkeys(both, return_url) | {"language": "es_ES"},
    }
    reply = post(f"{at}/v3.6/workflow_runs", body, authorization=_TOKEN)
    assert reply.status_code == 201
    answers = reply.json()
    return Made(answers["id"], answers["link"]["url"], answers)


def _onfido_found(at: str, session_id: str) -> Mapping[str, Any] | None:
    """The run, with the output of its document check."""
    runs = f"{at}/v3.6/workflow_runs/{session_id}"
    run: dict[str, Any] = _get(runs, authorization=_TOKEN)
    tasks = _get(f"{runs}/tasks", authorization=_TOKEN)
    checks = [task["id"] for task in tasks if task["task_def_id"] == "document_check"]
    reports = [_get(f"{runs}/tasks/{each}", authorization=_TOKEN)["output"] for each in checks]
    return run | {"reports": reports}


CREATE: Final[Mapping[str, Callable[[str, str | None], Made]]] = {
    "veriff": _veriff,
    "didit": _didit,
    "onfido": _onfido,
}
FIND: Final[Mapping[str, Callable[[str, str], Mapping[str, Any] | None]]] = {
    "veriff": _veriff_found,
    "didit": _didit_found,
    "onfido": _onfido_found,
}


def create(playing: Playing, return_url: str | None = None) -> Made:
    """A new session for `REFERENCE`."""
    return CREATE[playing.name](playing.url, return_url)


def found(playing: Playing, made: Made) -> Mapping[str, Any] | None:
    """The session as its provider returns it; None: no decision yet."""
    return FIND[playing.name](playing.url, made.session_id)


def choose(made: Made, outcome: str, zip_: str = "94110") -> httpx2.Response:
    """Send the page's form, as a buyer."""
    form = {"zip": zip_, "outcome": outcome}
    return CLIENT.post(made.url, data=form)
