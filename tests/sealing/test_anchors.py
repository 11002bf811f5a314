"""Witnesses and time-stamp authorities: real ones, on this machine, over HTTP."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from rfc3161_client import decode_timestamp_response

from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Verifier
from countersign_evidence.timestamp import is_about, read_timestamp
from countersign_evidence.timestamp_signer import (
    check_timestamp,
    timestamp_check,
    timestamp_request,
)
from countersign_evidence.verification import verify_file
from tests.certificate.reader import words_of
from tests.sealing.acts import get, policy_of
from tests.sealing.authority import stamp
from tests.sealing.live import acknowledge_live, open_for_live
from tests.sealing.witness import NAME, Witness, served, wait_for
from tests.support.service import Deployment, running_server


def test_a_witness_cosigns_and_a_quorum_can_require_it(
    embedded: Deployment, tmp_path: Path
) -> None:
    """The cosignature is in the proof; a policy that asks for another witness is not satisfied."""
    client, live = open_for_live(embedded, tmp_path)
    # A server asks its witnesses at its start, then every ten seconds.
    with running_server(live) as server, server.client(client) as vendor:
        first = acknowledge_live(vendor)
        get(vendor, first, "proof")
    witness = Witness(lambda: list(policy_of(embedded, "live").logs))
    with served(witness) as url:
        policy_file = tmp_path / "witnesses.policy"
        policy_file.write_text(f"witness W {witness.verifier.vkey} {url}\nquorum W\n")
        with running_server(live, WITNESS_POLICY_FILE=str(policy_file)) as server:
            with server.client(client) as vendor:
                wait_for(lambda: bool(witness.seen))
                wait_for(lambda: NAME.encode() in get(vendor, first, "proof"))
                proof = get(vendor, first, "proof")
                certificate = get(vendor, first, "certificate")
            with server.client() as no_one:
                policy = no_one.get("/v1/log/policy").content
    (tmp_path / "policy").write_bytes(policy)
    (tmp_path / "proof").write_bytes(proof)
    said = embedded.run("verify", str(tmp_path / "proof"), "--policy", str(tmp_path / "policy"))
    assert "\n\nOK " in said.stdout
    assert "cosigned by W" in said.stderr
    assert certificate.startswith(b"%PDF")
    other = Verifier("other.example", 4, bytes(31) + b"\x01").vkey
    wrong = policy.replace(witness.verifier.vkey.encode(), other.encode())
    (tmp_path / "wrong").write_bytes(wrong)
    done = embedded.run(
        "verify", str(tmp_path / "proof"), "--policy", str(tmp_path / "wrong"), check=False
    )
    assert done.returncode == 1
    assert "(quorum)" in done.stdout


@pytest.mark.openssl
def test_a_time_stamp_goes_along_in_the_dossier_and_is_checked(
    embedded: Deployment, tmp_path: Path, authority: Path
) -> None:
    """Under the authority's root it is signed; under another it fails at its own step."""
    key, live = open_for_live(embedded, tmp_path)

    def answer(query: bytes) -> tuple[int, str, bytes]:
        return 200, "application/timestamp-reply", stamp(authority, query)

    with running_server(live) as server, server.client(key) as vendor:
        ack_id = acknowledge_live(vendor)
    # A server asks as soon as it starts, then every five minutes.
    with (
        served(answer) as url,
        running_server(live, TIMESTAMP_URLS=url) as server,
        server.client(key) as vendor,
    ):
        wait_for(lambda: b"timestamps/1.tsr" in get(vendor, ack_id, "dossier"))
        made = get(vendor, ack_id, "dossier")
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        words = words_of(archive.read("dossier.pdf"))
    found = re.search(r"/1.tsr, [0-9-]{10} [0-9:]{8} UTC = [0-9-]{10} [0-9:]{8} P[SD]T", words)
    assert found, "its time is read"
    policy = policy_of(embedded, "live")
    roots = (authority / "ca.pem").read_bytes()
    verdict = verify_file(made, policy, timestamp_check(roots))
    assert verdict.ok, verdict.line()
    assert "signed by a trusted authority" in verdict.facts["timestamps"][0]
    assert "not checked" in verify_file(made, policy, check_timestamp).facts["timestamps"][0]
    stranger = (authority / "tsa.pem").read_bytes()
    refused = verify_file(made, policy, timestamp_check(stranger))
    assert (refused.ok, refused.name) == (False, "timestamps")


@pytest.mark.openssl
def test_a_response_with_unordered_certificates_is_read(authority: Path) -> None:
    """OpenSSL sends them unsorted (CMS allows BER); its signature is checked all the same."""
    over = b"a checkpoint"
    token = stamp(authority, timestamp_request(over), "-chain", "ca.pem")
    with pytest.raises(ValueError, match="InvalidSetOrdering"):
        decode_timestamp_response(token)
    roots = timestamp_check((authority / "ca.pem").read_bytes())
    assert "signed by a trusted authority" in roots(token, over)
    assert is_about(read_timestamp(token), over)
    with pytest.raises(EvidenceError, match="does not cover"):
        roots(token, b"another checkpoint")


@pytest.mark.openssl
def test_an_invalid_time_stamp_is_refused_with_its_cause(authority: Path) -> None:
    """A log line has the cause: a refusal with the authority's words, or the defect."""
    refusal = stamp(authority, b"no request")
    with pytest.raises(EvidenceError, match=r"status 2.*Bad request format"):
        check_timestamp(refusal, b"a checkpoint")
    token = stamp(authority, timestamp_request(b"a checkpoint"), "-chain", "ca.pem")
    for broken in (b"", b"0", b"0\x80", b"<html>", token[:-1], token[:300], token + b"0"):
        with pytest.raises(EvidenceError, match="not an RFC 3161 response"):
            check_timestamp(broken, b"a checkpoint")
        with pytest.raises(EvidenceError):
            read_timestamp(broken)


def test_an_unreachable_anchor_delays_nothing(embedded: Deployment, tmp_path: Path) -> None:
    """Acknowledging and proving continue, and missing anchors are shown as missing."""
    key, live = open_for_live(embedded, tmp_path)
    witness = Witness(list)
    policy_file = tmp_path / "witnesses.policy"
    policy_file.write_text(f"witness W {witness.verifier.vkey} http://127.0.0.1:9\nquorum none\n")
    settings = {"WITNESS_POLICY_FILE": str(policy_file), "TIMESTAMP_URLS": "http://127.0.0.1:9/tsr"}
    with running_server(live, **settings) as server, server.client(key) as vendor:
        proof = get(vendor, acknowledge_live(vendor), "proof")
    verdict = verify_file(proof, policy_of(embedded, "live"))
    assert verdict.ok, verdict.line()
    assert verdict.facts["cosigned"] == []
