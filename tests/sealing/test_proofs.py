"""Proofs, dossiers and certificates over HTTP, checked with only the policy."""

from __future__ import annotations

import io
import json
import re
import zipfile
from base64 import b64decode, b64encode
from hashlib import sha256

import httpx2
import pytest

from countersign_evidence.proof import parse_proof
from countersign_evidence.verification import verify_file
from tests.sealing.acts import INITIALS, acknowledge, evidence_of, get, policy_of, shown
from tests.support.service import Deployment, Server


def test_a_proof_verifies_with_the_policy_alone(
    client: httpx2.Client, deployment: Deployment
) -> None:
    """The record is inside, with the acknowledgment."""
    ack_id = acknowledge(client, session_id="cs_1")
    verdict = verify_file(get(client, ack_id, "proof"), policy_of(deployment))
    assert verdict.ok, verdict.line()
    assert verdict.record["id"] == ack_id
    assert evidence_of(client, ack_id) == {
        "status": "sealed",
        "log": verdict.facts["log"],
        "index": verdict.facts["index"],
    }


def test_test_evidence_never_satisfies_a_live_policy(
    client: httpx2.Client, deployment: Deployment
) -> None:
    """The logs have other origins and other keys."""
    proof = get(client, acknowledge(client), "proof")
    verdict = verify_file(proof, policy_of(deployment, "live"))
    assert (verdict.ok, verdict.name) == (False, "signature")


def test_a_dossier_shows_all_fields_and_verifies(
    client: httpx2.Client, deployment: Deployment
) -> None:
    """By its own key and by the policy."""
    ack_id = acknowledge(client, session_id="cs_1", ip="203.0.113.9", user_agent="Agent/1")
    made = get(client, ack_id, "dossier")
    for policy in (None, policy_of(deployment)):
        verdict = verify_file(made, policy)
        assert verdict.ok, verdict.line()
        assert shown(verdict)["initials_per_line"] == INITIALS
        assert shown(verdict)["session_id"] == "cs_1"
        assert shown(verdict)["ip"]["ip"] == "203.0.113.9"
        assert shown(verdict)["user_agent"]["user_agent"] == "Agent/1"


def test_the_same_dossier_has_the_same_bytes_although_the_log_has_grown(
    client: httpx2.Client,
) -> None:
    """A second request can be compared."""
    ack_id = acknowledge(client)
    first = get(client, ack_id, "dossier")
    for _ in range(3):
        acknowledge(client)
    assert get(client, ack_id, "dossier") == first


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?disclose=none", set()),
        ("?disclose=initials_per_line", {"initials_per_line"}),
        ("?disclose=session_id,cbid", {"session_id", "cbid"}),
    ],
)
def test_only_requested_fields_are_in_a_dossier(
    client: httpx2.Client, query: str, names: set[str]
) -> None:
    """Withheld data is nowhere in the file, the certificate included."""
    ack_id = acknowledge(
        client, session_id="cs_planted_1", user_agent="PlantedAgent/9", ip="198.51.100.77"
    )
    made = get(client, ack_id, "dossier", query)
    verdict = verify_file(made)
    assert verdict.ok, verdict.line()
    assert set(shown(verdict)) == names
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"PlantedAgent" not in everything
    assert b64encode(b"PlantedAgent")[:12] not in everything
    assert (b"cs_planted_1" in everything) is False


def test_two_acknowledgments_of_one_buyer_share_nothing_when_linking_fields_are_withheld(
    client: httpx2.Client,
) -> None:
    """No digest, salt or identifier occurs in both records."""
    given = {"session_id": "cs_same", "cbid": "cbid_same", "user_agent": "Same/1"}
    records = []
    for _ in range(2):
        proof = parse_proof(get(client, acknowledge(client, **given), "proof"))
        assert proof.extra is not None
        records.append(json.loads(proof.extra))
    one, two = records
    same = {name for name in one if one[name] == two[name]}
    own = {"id", "accepted_at", "nonce", "_sd"}
    assert same == set(one) - own, "what is equal is of the account and the notice"
    assert not set(one["_sd"]) & set(two["_sd"])


def test_an_unknown_field_to_disclose_is_refused(client: httpx2.Client) -> None:
    """It names the fields that there are."""
    ack_id = acknowledge(client)
    answer = client.get(f"/v1/acknowledgments/{ack_id}/dossier?disclose=initials")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_request"
    assert "initials_per_line" in answer.json()["error"]["message"]


@pytest.mark.parametrize("what", ["proof", "certificate", "dossier"])
def test_evidence_of_another_account_is_not_found(
    client: httpx2.Client, server: Server, deployment: Deployment, what: str
) -> None:
    """Nor that of the other mode."""
    ack_id = acknowledge(client)
    stranger = deployment.account(f"stranger to {what} {ack_id}")
    for mode in ("test", "live"):
        with server.client(deployment.key(stranger, mode)) as other:
            answer = other.get(f"/v1/acknowledgments/{ack_id}/{what}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("what", "media_type", "begins"),
    [
        ("proof", "text/plain; charset=utf-8", b"c2sp.org/tlog-proof@v1\n"),
        ("certificate", "application/pdf", b"%PDF-"),
        ("dossier", "application/zip", b"PK"),
    ],
)
def test_each_download_has_its_type(
    client: httpx2.Client, what: str, media_type: str, begins: bytes
) -> None:
    """Type, name, digest (RFC 9530), and never to be stored by a cache."""
    ack_id = acknowledge(client)
    get(client, ack_id, "proof")
    answer = client.get(f"/v1/acknowledgments/{ack_id}/{what}")
    assert answer.content.startswith(begins)
    assert answer.headers["content-type"] == media_type
    assert ack_id in answer.headers["content-disposition"]
    digest = b64encode(sha256(answer.content).digest()).decode()
    assert answer.headers["content-digest"] == f"sha-256=:{digest}:"
    assert answer.headers["cache-control"] == "no-store"


def test_a_key_without_the_scope_gets_no_evidence(
    client: httpx2.Client, server: Server, deployment: Deployment, account: str
) -> None:
    """It needs evidence:read."""
    ack_id = acknowledge(client)
    with server.client(deployment.key(account, "test", "--scope", "acks:read")) as other:
        answer = other.get(f"/v1/acknowledgments/{ack_id}/proof")
    assert answer.status_code == 403
    assert "evidence:read" in answer.headers["www-authenticate"]


def test_the_verify_page_is_served_with_the_policy_that_it_names(server: Server) -> None:
    """The header has the enforced policy as well; the page judges by this deployment's keys."""
    with server.client() as no_one:
        answer = no_one.get("/verify")
        policies = {
            mode: no_one.get("/v1/log/policy", params={"mode": mode}).content
            for mode in ("live", "test")
        }
    assert answer.status_code == 200
    (block,) = re.findall(r'type="application/json" id="policies">([^<]*)</script>', answer.text)
    found = json.loads(block)
    assert {mode: b64decode(text) for mode, text in found.items()} == policies
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src https: http://127.0.0.1:* http://localhost:*" in policy
