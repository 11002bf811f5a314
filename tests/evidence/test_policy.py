"""Policies (C2SP tlog-policy), with the cases of transparency-dev/formats, tlog_policy_test.go."""

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.encoding import NotCheckable
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Verifier
from countersign_evidence.policy import NoQuorum, parse_policy
from tests.evidence.keys import MLDSA_NAME, mldsa_line, mldsa_vkey
from tests.offline.builder import signature_line, vkey
from tests.support.quorum import checked

ORIGIN = "example.com/log"
LOG_SEED, OTHER_SEED = bytes(32), b"\x09" * 32
SEEDS = {f"w{n}": bytes([n]) * 32 for n in range(1, 7)}
LOG = vkey(ORIGIN, 1, LOG_SEED)
W = {name: vkey(name.upper(), 4, seed) for name, seed in SEEDS.items()}
ROOT = sha256(b"root").digest()
CHECKPOINT = f"{ORIGIN}\n42\n{b64encode(ROOT).decode()}\n"
DEFINED = "".join(f"witness {name} {key}\n" for name, key in W.items())


def _signed(*witnesses: str, log: str = ORIGIN, seed: bytes = LOG_SEED) -> bytes:
    text = CHECKPOINT.encode()
    lines = signature_line(log, 1, seed, text)
    lines += "".join(signature_line(w.upper(), 4, SEEDS[w], text) for w in witnesses)
    return text + b"\n" + lines.encode()


def test_the_example_of_the_specification_is_read() -> None:
    """Two levels of groups."""
    policy = parse_policy(
        (
            f"log {LOG}\n\nwitness X1 {W['w1']}\nwitness X2 {W['w2']}\nwitness X3 {W['w3']}\n"
            f"group X-witnesses 2 X1 X2 X3\n\nwitness Y1 {W['w4']}\nwitness Y2 {W['w5']}\n"
            f"witness Y3 {W['w6']}\ngroup Y-witnesses any Y1 Y2 Y3\n\n"
            "group X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n"
        ).encode()
    )
    assert [key.vkey for key in policy.logs] == [LOG]
    assert [witness.verifier.vkey for witness in policy.witnesses] == list(W.values())
    assert policy.groups == {
        "X-witnesses": (2, ["X1", "X2", "X3"]),
        "Y-witnesses": (1, ["Y1", "Y2", "Y3"]),
        "X-and-Y": (2, ["X-witnesses", "Y-witnesses"]),
    }
    assert policy.quorum == "X-and-Y"


@pytest.mark.parametrize(
    "policy",
    [
        b"quorum none\n",
        b"quorum none",
        f"\n# comment\n\t # another\n\twitness \t w1  {W['w1']}   https://w1.example.com/  \n\n"
        "  quorum\tw1".encode(),
        f"log {LOG} https://log.example.com/\nwitness w1 {W['w1']}\nquorum w1\n".encode(),
        b"witness KKlvin-w\x80 " + W["w1"].encode() + b"\nquorum KKlvin-w\x80\n",
        f"witness all {W['w1']}\nwitness any {W['w2']}\ngroup group 2 all any\n"
        "quorum group\n".encode(),
        b"# \xff\xfe any bytes in a comment\nquorum none\n",
        f"witness w1 {mldsa_vkey()}\nquorum w1\n".encode(),
        f"log {mldsa_vkey()}\nquorum none\n".encode(),
        f"{DEFINED}group g 3 w1 w2 w3 w4\nquorum w6\n".encode(),
    ],
)
def test_a_good_policy_is_read(policy: bytes) -> None:
    """White space, comments, opaque names, words as names, both kinds of cosignatures."""
    assert parse_policy(policy).quorum


@pytest.mark.parametrize(
    "policy",
    [
        "quorum none\n\x01", "quorum none\r\n", "quorum none\x7f\n", "quibble w1\nquorum none\n",
        "witness w1 {w1} https://w1.example.com/ # comment\nquorum w1\n",
        "log\nquorum none\n", "log garbage\nquorum none\n", "log {unknown}\nquorum none\n",
        "log {log}\nlog {log} https://log.example.com/\nquorum none\n",
        "log {log}\nlog {renamed_log}\nquorum none\n",
        "witness w1\nquorum none\n", "witness w1 {ecdsa}\nquorum w1\n",
        "witness w1 {log}\nquorum w1\n", "witness none {w1}\nquorum none\n",
        "witness w1 {w1}\nwitness w1 {w2}\nquorum w1\n",
        "witness w1 {w1}\ngroup w1 any w1\nquorum w1\n",
        "witness w1 {w1}\nwitness w2 {renamed}\nquorum w1\n",
        "witness w1 {w1}\ngroup g1 1\nquorum w1\n",
        "witness w1 {w1}\ngroup none any w1\nquorum none\n",
        "witness w1 {w1}\ngroup g1 0 w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 -1 w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 2 w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 +1 w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 \u0661 w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 any w2\nquorum g1\n",
        "group g1 any w1\nwitness w1 {w1}\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 any none w1\nquorum g1\n",
        "witness w1 {w1}\ngroup g1 all w1 w1\nquorum g1\n", "group g1 any g1\nquorum g1\n",
        "witness w1 {w1}\nwitness w2 {w2}\ngroup g1 any w1 w2\ngroup g2 any w1\nquorum g1\n",
        "witness w1 {w1}\n", "witness w1 {w1}\nquorum w1\nquorum w1\n", "quorum unknown\n",
        "quorum w1\nwitness w1 {w1}\n", "quorum\n", "quorum none none\n", "", "quorum\u00a0none\n",
    ],
)  # fmt: skip
def test_a_policy_that_could_be_misread_is_refused(policy: str) -> None:
    """Every case of the published tests, and the digits and spaces of other scripts."""
    unknown = b"\x63" + bytes(32)
    names = {
        **W,
        "log": LOG,
        "renamed_log": vkey("other.example.com", 1, LOG_SEED),
        "renamed": vkey("impostor.example.com", 4, SEEDS["w1"]),
        "ecdsa": _any_vkey("ecdsa.example.com", b"\x02\x01\x02\x03"),
        "unknown": _any_vkey("unknown.example.com", unknown),
    }
    with pytest.raises(EvidenceError):
        parse_policy(policy.format(**names).encode())


def _any_vkey(name: str, key: bytes) -> str:
    key_id = sha256(name.encode() + b"\n" + key).digest()[:4]
    return f"{name}+{key_id.hex()}+{b64encode(key).decode()}"


def test_a_kind_of_key_that_cannot_be_checked_is_named() -> None:
    """The message names what the policy requires."""
    with pytest.raises(EvidenceError, match=r"a key of kind 5"):
        parse_policy(f"log {_any_vkey('ct.example', bytes([5]) * 33)}\nquorum none\n".encode())


def test_a_witness_that_cannot_be_checked_matters_only_if_the_quorum_needs_it() -> None:
    """If requested: for a reader with a policy of a later release."""
    new = _any_vkey("new.example", bytes([200]) * 20)
    lines = f"log {LOG}\n{DEFINED}witness new {new}\ngroup any any w1 new\n"
    note = _signed("w1") + f"\u2014 new.example {b64encode(bytes(80)).decode()}\n".encode()
    for quorum in ("none", "w1", "any"):
        text = f"{lines}quorum {quorum}\n".encode()
        policy = parse_policy(text, any_kind=True)
        assert [*checked(policy, note).cosigned] == ["w1"]
        with pytest.raises(EvidenceError, match="of kind"):
            parse_policy(text)
    with pytest.raises(NoQuorum, match=r"cosigned by: w1$"):
        checked(parse_policy(f"{lines}quorum new\n".encode(), any_kind=True), note)
    key_id = Verifier.parse(new, any_kind=True).key_id
    by_new = f"\u2014 new.example {b64encode(key_id + bytes(80)).decode()}\n".encode()
    with pytest.raises(NotCheckable, match=r"cannot be checked here: new$"):
        checked(parse_policy(f"{lines}quorum new\n".encode(), any_kind=True), note + by_new)


NO_CHECKPOINT = b"text\n\n" + signature_line(ORIGIN, 1, LOG_SEED, b"text\n").encode()
NESTED = f"log {LOG}\n{DEFINED}group inner any w2 w3\ngroup outer all w1 inner\nquorum outer\n"


@pytest.mark.parametrize(
    ("witnesses", "enough"),
    [
        (("w1", "w2", "w3"), True),
        (("w1", "w3"), True),
        (("w1",), False),
        (("w2", "w3"), False),
        ((), False),
        (("w4", "w5", "w6"), False),
        (("w1", "w1"), False),
    ],
)
def test_a_quorum_of_groups_counts_as_specified(witnesses: tuple[str, ...], enough: bool) -> None:
    """The cases of TestSatisfied, and witnesses that no group names."""
    policy = parse_policy(NESTED.encode())
    note = _signed(*witnesses)
    if enough:
        found = checked(policy, note)
        assert {*found.cosigned} == {*witnesses}
        assert found.checkpoint.size == 42
        assert found.key.vkey == LOG
    else:
        with pytest.raises(NoQuorum):
            checked(policy, note)


@pytest.mark.parametrize(
    ("policy", "note"),
    [
        ("log {other}\nwitness w1 {w1}\nquorum w1\n", _signed("w1")),
        ("log {other}\nquorum none\n", _signed(log="other.example.com/log", seed=OTHER_SEED)),
        ("witness w1 {w1}\nquorum w1\n", _signed("w1")),
        ("quorum none\n", _signed()),
        ("log {log}\nquorum none\n", _signed(seed=OTHER_SEED)),
        ("log {log}\nquorum none\n", b"nobbled"),
        ("log {log}\nquorum none\n", NO_CHECKPOINT),
    ],
)  # fmt: skip
def test_a_checkpoint_that_no_log_of_the_policy_signed_is_refused(policy: str, note: bytes) -> None:
    """The cases of TestVerify: the name of the key has to be the origin, too."""
    other = vkey("other.example.com/log", 1, OTHER_SEED)
    read = parse_policy(policy.format(log=LOG, other=other, **W).encode())
    with pytest.raises(EvidenceError):
        checked(read, note)


def test_any_one_of_the_logs_is_enough() -> None:
    """And the verdict says which one it was."""
    other = vkey("other.example.com/log", 1, OTHER_SEED)
    policy = parse_policy(f"log {other}\nlog {LOG}\nquorum none\n".encode())
    assert checked(policy, _signed()).key.vkey == LOG


def test_one_bad_signature_by_a_known_key_spoils_the_note() -> None:
    """As in signed-note, even if the quorum is met without that witness."""
    policy = parse_policy(f"log {LOG}\n{DEFINED}quorum w1\n".encode())
    lines = _signed("w1", "w2").decode().splitlines(keepends=True)
    damaged = "".join([*lines[:-1], lines[-1][:40] + "AAAA" + lines[-1][44:]])
    with pytest.raises(EvidenceError, match="is wrong"):
        checked(policy, damaged.encode())


def test_names_of_witnesses_are_compared_by_their_bytes() -> None:
    """Two names that no text can show apart are two witnesses."""
    policy = parse_policy(
        f"log {LOG}\n".encode()
        + b"witness w\x80 " + W["w1"].encode() + b"\nwitness w\x81 " + W["w2"].encode()
        + b"\nquorum w\x81\n"
    )  # fmt: skip
    assert checked(policy, _signed("w2"))
    with pytest.raises(NoQuorum):
        checked(policy, _signed("w1"))


def test_a_quorum_of_an_ml_dsa_witness_is_met_by_its_cosignature() -> None:
    """And by nothing less."""
    policy = parse_policy(f"log {LOG}\nwitness w1 {mldsa_vkey()}\nquorum w1\n".encode())
    line = mldsa_line(ORIGIN, 42, ROOT, 1_800_000_000)
    found = checked(policy, _signed() + line.encode())
    assert found.cosigned == {"w1": 1_800_000_000}
    with pytest.raises(NoQuorum):
        checked(policy, _signed())


def test_a_log_may_sign_by_ml_dsa() -> None:
    """tlog-checkpoint recommends it; one key may be listed as log and as witness."""
    key = mldsa_vkey()
    text = f"{MLDSA_NAME}\n42\n{b64encode(ROOT).decode()}\n"
    note = f"{text}\n{mldsa_line(MLDSA_NAME, 42, ROOT, 0)}".encode()
    policy = parse_policy(f"log {key}\nwitness w1 {key}\nquorum w1\n".encode())
    assert checked(policy, note).key.vkey == key


@given(st.binary(max_size=60), st.integers(0, 400))
def test_any_bytes_are_a_policy_or_refused(data: bytes, at: int) -> None:
    """Also inside a valid one; only EvidenceError is raised."""
    good = NESTED.encode()
    for text in (data, good[:at] + data + good[at:], good + data):
        try:
            policy = parse_policy(text)
        except EvidenceError:
            continue
        try:
            checked(policy, _NOTE)
        except EvidenceError:
            continue


_NOTE = _signed("w1", "w2")
