"""Verifying: the first step that fails is named, and no bytes make it raise."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from countersign_evidence.errors import EvidenceError
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import STEPS, Verdict, verify_file
from tests.offline import builder
from tests.support import depth
from tests.support.every import every

MATERIAL = builder.material()
POLICY = parse_policy(MATERIAL.policy.encode())
SMALL = replace(MATERIAL, policy=f"log {builder.vkey(builder.ORIGIN)}\nquorum none\n", cosigners=())
NO_EXTRA = [line for line in MATERIAL.proof().split(b"\n") if not line.startswith(b"extra")]


def _sealed(record: bytes) -> bytes:
    return replace(MATERIAL, record=record, extra=record).proof()


def test_a_good_dossier_reports_its_findings() -> None:
    """The signer, the place, the witnesses with times, the shown fields; and whose keys count."""
    verdict = verify_file(MATERIAL.dossier(), POLICY)
    assert verdict.ok
    assert (verdict.step, verdict.name) == (None, None)
    assert verdict.facts == {
        "policy": "given",
        "log": builder.ORIGIN,
        "size": 7,
        "key": builder.vkey(builder.ORIGIN),
        "key_fingerprint": sha256(builder.public_key(builder.LOG_SEED)).hexdigest(),
        "quorum": "all-of-them",
        "cosigned": [{"name": "w1", "time": builder.COSIGNED_AT}],
        "timestamps": [],
    }
    assert verdict.shown == {"initials_per_line": builder.INITIALS, "session_id": "sess_1"}
    assert verdict.record["id"] == "ack_01m7xdxbmvex7t29vh2x05yyyq"
    assert verdict.line() == (
        f"OK  one order, ack_01m7xdxbmvex7t29vh2x05yyyq, sealed in {builder.ORIGIN}, "
        "checkpoint of size 7; missing: 5; cosigned by w1 (quorum all-of-them), 0 time-stamp(s)"
    )


def test_a_verdict_by_the_dossiers_own_policy_says_so() -> None:
    """With the fingerprint of the key, so that it can be compared with one from elsewhere."""
    verdict = verify_file(MATERIAL.dossier())
    fingerprint = sha256(builder.public_key(builder.LOG_SEED)).hexdigest()
    assert verdict.ok
    assert verdict.facts["policy"] == "own"
    assert f"the key that came in this dossier, {fingerprint}" in verdict.line()


def test_a_dossier_of_another_key_fails_by_the_given_policy() -> None:
    """Though it agrees with itself."""
    forged = replace(
        MATERIAL,
        log_seed=builder.OTHER_SEED,
        policy=f"log {builder.vkey(builder.ORIGIN, 1, builder.OTHER_SEED)}\nquorum none\n",
    ).dossier()
    assert verify_file(forged).ok
    verdict = verify_file(forged, POLICY)
    assert (verdict.ok, verdict.step, verdict.name) == (False, 2, "signature")


def test_a_dossier_whose_proof_lacks_the_record_fails_at_the_first_step() -> None:
    """As a proof alone does: its form is another."""
    files = {**MATERIAL.files(), builder.PROOF: b"\n".join(NO_EXTRA)}
    assert verify_file(builder.zipped(builder.summed(files))).name == "container"


def _without(record: bytes, member: str) -> bytes:
    return builder.canonical({k: v for k, v in json.loads(record).items() if k != member})


@every(
    ("name", "proof"),
    [
        ("container", b"hello"),
        ("container", MATERIAL.proof().replace(b"index 5", b"index 05")),
        ("container", MATERIAL.proof()[:-1]),
        ("container", b"\n".join(NO_EXTRA)),
        ("signature", replace(MATERIAL, log_seed=builder.OTHER_SEED).proof()),
        ("quorum", replace(MATERIAL, cosigners=()).proof()),
        ("record", _sealed(b"not JSON")),
        ("record", _sealed(b"[]")),
        ("record", _sealed(b"[" * 100_000)),
        ("record", _sealed(MATERIAL.record + b"\n")),
        ("record", _sealed(builder.material(v=True).record)),
        ("record", _sealed(builder.material(v=10**30).record)),
        ("record", _sealed(builder.material(type=["acknowledgment"]).record)),
        ("record", _sealed(builder.material(mode="test").record)),
        ("record", _sealed(_without(MATERIAL.record, "id"))),
        ("record", _sealed(_without(MATERIAL.record, "_sd"))),
        ("inclusion", MATERIAL.proof().replace(b"index 5", b"index 6")),
        ("inclusion", replace(MATERIAL, root=bytes(32)).proof()),
    ],
)  # fmt: skip
def test_a_broken_proof_fails_at_its_step(name: str, proof: bytes) -> None:
    """Steps 1 to 5, in their order."""
    verdict = verify_file(proof, POLICY)
    assert (verdict.ok, verdict.name) == (False, name)


def test_time_stamps_are_named_or_checked_where_a_checker_is_given() -> None:
    """Their subject is checked; if their signer cannot be checked, the result says so."""
    note = builder.over()
    token = builder.stamp(sha256(note).digest())
    dossier = builder.stamped(token).dossier()
    assert verify_file(dossier).facts["timestamps"] == [
        "2026-11-20T21:31:05Z, for this checkpoint; its signer was not checked"
    ]
    seen: list[tuple[bytes, bytes]] = []

    def check(token: bytes, over: bytes) -> str:
        seen.append((token, over))
        return "by an authority"

    assert verify_file(dossier, None, check).facts["timestamps"] == [
        "2026-11-20T21:31:05Z, for this checkpoint; by an authority"
    ]
    assert seen == [(token, note)]

    def refuse(token: bytes, over: bytes) -> str:
        del token, over
        msg = "over something else"
        raise EvidenceError(msg)

    verdict = verify_file(dossier, None, refuse)
    assert (verdict.step, verdict.name) == (9, "timestamps")
    assert "over something else" in verdict.line()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


def _never_raises(data: bytes) -> None:
    for policy in (None, POLICY):
        verdict = verify_file(data, policy)
        assert isinstance(verdict, Verdict)
        assert verdict.ok or verdict.name in STEPS
        assert verdict.line()


@settings(max_examples=depth.drawn(80))
@given(st.binary(max_size=200), st.integers(0, 6000), st.integers(0, 40))
def test_no_bytes_make_it_raise(data: bytes, at: int, cut: int) -> None:
    """Noise, which never passes, and noise inside of good dossiers and proofs."""
    for good in (SMALL.dossier(), SMALL.proof()):
        _never_raises(good[:at] + data + good[at + cut :])
    for start in (b"", b"PK", b"PK\x03\x04", b"c2sp.org/tlog-proof@v1\n"):
        _never_raises(start + data)
        assert not verify_file(start + data, POLICY).ok


@settings(max_examples=depth.drawn(80))
@given(JSON, st.dictionaries(st.sampled_from(sorted(json.loads(MATERIAL.record))), JSON))
def test_no_record_makes_it_raise(anything: object, changes: Mapping[str, object]) -> None:
    """Sealed and signed in good order, with members of other types, or no object at all."""
    for value in (anything, {**json.loads(MATERIAL.record), **changes}):
        record = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        sealed = replace(SMALL, record=record.encode(), extra=record.encode())
        _never_raises(sealed.dossier())
        _never_raises(sealed.proof())


@settings(max_examples=depth.drawn(80))
@given(JSON, st.text(max_size=8), st.binary(max_size=20))
def test_no_disclosure_or_notice_can_make_it_raise(value: object, name: str, noise: bytes) -> None:
    """A record may bind anything, too."""
    text = json.dumps(["salt", name, value]).encode()
    for content in (text, noise, json.dumps(value).encode()):
        encoded = builder.b64url(content)
        digest = builder.b64url(sha256(encoded.encode()).digest())
        record = builder.material(_sd=[digest], notice_digest=sha256(content).hexdigest()).record
        made = replace(SMALL, record=record, extra=record, disclosures=[encoded], notice=content)
        _never_raises(made.dossier())


def test_a_log_of_another_form_is_refused_at_the_record() -> None:
    """A key named like something else may sign, but no mode can be read from its name."""
    origin = "example.com/other"
    text = f"{origin}\n1\n{b64encode(sha256(b'x').digest()).decode()}\n"
    line = builder.signature_line(origin, 1, builder.LOG_SEED, text.encode())
    proof = b"c2sp.org/tlog-proof@v1\nextra " + b64encode(MATERIAL.record) + b"\nindex 0\n\n"
    policy = parse_policy(f"log {builder.vkey(origin)}\nquorum none\n".encode())
    assert verify_file(proof + f"{text}\n{line}".encode(), policy).name == "record"
