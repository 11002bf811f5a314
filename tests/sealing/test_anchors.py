"""Witnesses and time-stamp authorities: real ones, on this machine, over HTTP."""

from __future__ import annotations

import subprocess
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.evidence.checkpoint import parse_checkpoint
from countersign.evidence.note import Verifier, open_note
from countersign.evidence.tree import EMPTY_ROOT, verify_consistency
from countersign.evidence.verification import verify_file
from countersign.providers.timestamps import check_timestamp, timestamp_check
from tests.sealing.acts import get, policy_of
from tests.sealing.live import acknowledge_live, open_for_live
from tests.support.service import Deployment, running_server

SEED = bytes(range(32))
NAME = "witness.example/w1"


class Witness:
    """A witness by c2sp.org/tlog-witness, written from the specification."""

    def __init__(self, keys: Callable[[], list[Verifier]]) -> None:
        self._keys = keys
        self._key = Ed25519PrivateKey.from_private_bytes(SEED)
        self.verifier = Verifier(NAME, 4, self._key.public_key().public_bytes_raw())
        self.size, self.root = 0, EMPTY_ROOT
        self.refusals = 0

    def __call__(self, body: bytes) -> tuple[int, str, bytes]:
        head, _, note = body.partition(b"\n\n")
        first, *lines = head.decode().split("\n")
        text, _ = open_note(note, self._keys())
        checkpoint = parse_checkpoint(text)
        if int(first.removeprefix("old ")) != self.size:
            self.refusals += 1
            return 409, "text/x.tlog.size", f"{self.size}\n".encode()
        path = [b64decode(line) for line in lines]
        if self.size:
            verify_consistency(self.size, checkpoint.size, path, self.root, checkpoint.root)
        self.size, self.root = checkpoint.size, checkpoint.root
        now = int(time.time())
        signature = self._key.sign(f"cosignature/v1\ntime {now}\n".encode() + text)
        encoded = b64encode(self.verifier.key_id + now.to_bytes(8, "big") + signature)
        return 200, "text/plain", f"\u2014 {NAME} {encoded.decode()}\n".encode()


@contextmanager
def served(answer: Callable[[bytes], tuple[int, str, bytes]]) -> Iterator[str]:
    """Serve POST requests on loopback; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, media_type, content = answer(body)
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(what: Callable[[], bool]) -> None:
    """Until it is so; the test's own time-out bounds it."""
    while not what():
        time.sleep(0.2)


def test_a_witness_cosigns_and_a_quorum_can_ask_for_it(
    embedded: Deployment, tmp_path: Path
) -> None:
    """The cosignature is in the proof; a policy that asks for another witness is not satisfied."""
    client, live = open_for_live(embedded, tmp_path)
    witness = Witness(lambda: list(policy_of(embedded, "live").logs))
    with served(witness) as url:
        policy_file = tmp_path / "witnesses.policy"
        policy_file.write_text(f"witness W {witness.verifier.vkey} {url}\nquorum W\n")
        with running_server(live, WITNESS_POLICY_FILE=str(policy_file)) as server:
            with server.client(client) as vendor:
                first = acknowledge_live(vendor)
                wait_for(lambda: witness.size > 0)
                proof = get(vendor, first, "proof")
                wait_for(lambda: NAME.encode() in get(vendor, first, "proof"))
                proof = get(vendor, first, "proof")
                certificate = get(vendor, first, "certificate")
            with server.client() as nobody:
                policy = nobody.get("/v1/log/policy").content
    (tmp_path / "policy").write_bytes(policy)
    (tmp_path / "proof").write_bytes(proof)
    said = embedded.run("verify", str(tmp_path / "proof"), "--policy", str(tmp_path / "policy"))
    assert said.stdout.startswith("OK ")
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


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a time-stamp authority of OpenSSL's: a root, and a certificate for stamping."""
    place = tmp_path_factory.mktemp("authority")
    (place / "ca.cnf").write_text(
        "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=Test root\n"
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
        "subjectKeyIdentifier=hash\n"
        "[tsa]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\n"
        "authorityKeyIdentifier=keyid\n"
        "[tsa1]\nserial=serial\ncrypto_device=builtin\nsigner_digest=sha256\n"
        "default_policy=1.2.3.4.1\ndigests=sha256,sha512\naccuracy=secs:1\n"
        "ess_cert_id_alg=sha256\ntsa_name=no\nordering=no\n"
    )
    (place / "serial").write_text("01\n")
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl(place, "req", "-x509", *ec, "-days", "30", "-config", "ca.cnf", "-extensions", "ca",
            "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    openssl(place, "req", *ec, "-config", "ca.cnf", "-subj", "/CN=Test TSA",
            "-keyout", "tsa.key", "-out", "tsa.csr")  # fmt: skip
    openssl(place, "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-set_serial", "2", "-days", "30", "-extfile", "ca.cnf", "-extensions", "tsa",
            "-out", "tsa.pem")  # fmt: skip
    return place


def openssl(place: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)


def stamp(place: Path, query: bytes) -> bytes:
    (place / "query").write_bytes(query)
    openssl(place, "ts", "-reply", "-config", "ca.cnf", "-section", "tsa1", "-queryfile", "query",
            "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "reply")  # fmt: skip
    return (place / "reply").read_bytes()


@pytest.mark.openssl
def test_a_time_stamp_goes_along_in_the_bundle_and_is_checked(
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
        wait_for(lambda: b"timestamps/1.tsr" in get(vendor, ack_id, "bundle"))
        bundle = get(vendor, ack_id, "bundle")
    policy = policy_of(embedded, "live")
    roots = (authority / "ca.pem").read_bytes()
    verdict = verify_file(bundle, policy, timestamp_check(roots))
    assert verdict.ok, verdict.line()
    assert "signed by a trusted authority" in verdict.facts["timestamps"][0]
    assert "not checked" in verify_file(bundle, policy, check_timestamp).facts["timestamps"][0]
    stranger = (authority / "tsa.pem").read_bytes()
    refused = verify_file(bundle, policy, timestamp_check(stranger))
    assert (refused.ok, refused.name) == (False, "timestamps")


def test_whoever_cannot_be_reached_holds_nothing_up(embedded: Deployment, tmp_path: Path) -> None:
    """No witness, no authority: acknowledging and proving go on, and absent is shown as absent."""
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
