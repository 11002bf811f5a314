"""Odd dossiers, each with the step at which every reader must refuse it; None: no step.

Readers in other languages and libraries are known to judge these differently: invalid text, invalid
numbers, nesting, keys that anyone can sign for, kinds of keys that not every reader can check, and
duplicate signatures.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from tests.evidence.keys import MLDSA_NAME, mldsa_line, mldsa_vkey
from tests.offline import builder
from tests.offline.builder import ORIGIN, OTHER_SEED, WITNESS, WITNESS_SEED, signature_line, vkey

P = 2**255 - 19
ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
WEAK = [0, 1, P - 1, ORDER_8, P - ORDER_8]
LOG = f"log {vkey(ORIGIN)}\n"
REKOR = b64encode(bytes([2]) + bytes(91)).decode()
"""A key of kind 0x02, whose id is computed differently."""
ONE = f"witness w1 {vkey(WITNESS, 4, WITNESS_SEED)}\n"


def key_id(name: str, kind: int, key: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + key).digest()[:4]


def any_vkey(name: str, kind: int, key: bytes) -> str:
    """A verifier key of any claimed kind."""
    encoded = b64encode(bytes([kind]) + key).decode()
    return f"{name}+{key_id(name, kind, key).hex()}+{encoded}"


def point(y: int, sign: int = 0) -> bytes:
    """The 32 bytes of an Ed25519 key (RFC 8032 §5.1.2), whether or not such a point exists."""
    return (y | sign << 255).to_bytes(32, "little")


def with_policy(policy: str) -> bytes:
    return replace(builder.material(), policy=policy).dossier()


def with_lines(*lines: str, policy: str | None = None, before: bool = False) -> bytes:
    """Further signature lines in the proof, after the present ones or before them."""
    plain = builder.material() if policy is None else replace(builder.material(), policy=policy)
    more = "".join(lines).encode()
    text, _, own = plain.note().rpartition(b"\n\n")
    note = text + b"\n\n" + (more + own if before else own + more)
    proof = plain.proof().removesuffix(plain.note()) + note
    return builder.zipped(builder.summed({**plain.files(), builder.PROOF: proof}))


def checkpoint() -> bytes:
    return builder.material().note().rpartition(b"\n\n")[0] + b"\n"


def root() -> bytes:
    return builder.tree_root(builder.material()._leaves())


def wrong(line: str) -> str:
    """The same line with another signature."""
    start, _, encoded = line.rpartition(" ")
    return f"{start} {encoded[:40]}{'A' if encoded[40] != 'A' else 'B'}{encoded[41:]}"


def cut(line: str) -> str:
    """The same line with the first bytes of the signature alone."""
    start, _, encoded = line.rpartition(" ")
    return f"{start} {encoded[:40]}\n"


LOG_LINE = signature_line(ORIGIN, 1, builder.LOG_SEED, checkpoint())
WITNESS_LINE = signature_line(WITNESS, 4, WITNESS_SEED, checkpoint())
ML_DSA_LINE = mldsa_line(ORIGIN, 7, root(), 1_800_000_000)
ML_DSA_LOG_LINE = mldsa_line(ORIGIN, 7, root(), 1_800_000_000, ORIGIN)
ML_DSA_WITNESS = f"{LOG}witness q {mldsa_vkey()}\nquorum q\n"
MANY = "".join(f"witness n{n} {any_vkey(f'n{n}', 7, n.to_bytes(32, 'big'))}\n" for n in range(998))

POLICIES: Mapping[str, tuple[str, str | None]] = {
    **{
        f"log of small order {n}": (
            f"{LOG}log {any_vkey('a', 1, point(y))}\nquorum none\n",
            "container",
        )
        for n, y in enumerate(WEAK)
    },
    "log of small order, other sign": (
        f"{LOG}log {any_vkey('a', 1, point(ORDER_8, 1))}\nquorum none\n",
        "container",
    ),
    "witness of small order": (
        f"{LOG}witness a {any_vkey('a', 4, point(ORDER_8))}\nquorum none\n",
        "container",
    ),
    "log key not canonical": (
        f"{LOG}log {any_vkey('a', 1, point(P + 2))}\nquorum none\n",
        "container",
    ),
    "no point, and no signature": (f"{LOG}log {any_vkey('a', 1, point(2))}\nquorum none\n", None),
    "log key too short": (f"{LOG}log {any_vkey('a', 1, bytes(31))}\nquorum none\n", "container"),
    "ML-DSA key too short": (
        f"{LOG}log {any_vkey('a', 6, bytes(1311))}\nquorum none\n",
        "container",
    ),
    "ML-DSA witness not needed": (f"{LOG}{ONE}witness q {mldsa_vkey()}\nquorum w1\n", None),
    "ML-DSA witness one of two": (
        f"{LOG}{ONE}witness q {mldsa_vkey()}\ngroup g any q w1\nquorum g\n",
        None,
    ),
    "ML-DSA witness that did not sign": (f"{LOG}witness q {mldsa_vkey()}\nquorum q\n", "quorum"),
    "ML-DSA log beside the log": (f"{LOG}log {mldsa_vkey()}\nquorum none\n", None),
    "kinds whose ids are made in another way": (
        f"{LOG}log rekor.example+c0d23d6a+{REKOR}\n{ONE}witness q q+00000000+{REKOR}\nquorum w1\n",
        None,
    ),
    "an id of such a kind that is none": (
        f"{LOG}log rekor.example+c0d23d+{REKOR}\nquorum none\n",
        "container",
    ),
    "an id in capital letters": (
        f"{LOG}log rekor.example+C0D23D6A+{REKOR}\nquorum none\n",
        "container",
    ),
    "wrong id of a known kind": (
        f"{LOG}log {vkey('a').replace('a+', 'b+', 1)}\nquorum none\n",
        "container",
    ),
    "no newline at the end": (f"{LOG}quorum none", "container"),
    "kind to come, not needed": (
        f"{LOG}{ONE}witness q {any_vkey('q', 200, b'key')}\nquorum w1\n",
        None,
    ),
    "kind to come, needed": (
        f"{LOG}{ONE}witness q {any_vkey('q', 200, b'key')}\nquorum q\n",
        "quorum",
    ),
    "kind to come as the log": (f"log {any_vkey(ORIGIN, 200, b'key')}\nquorum none\n", "signature"),
    "witness that signs as a log": (f"{LOG}witness a {vkey('a')}\nquorum none\n", "container"),
    "log that signs as a witness": (f"log {vkey(ORIGIN, 4)}\nquorum none\n", "signature"),
    "log beside it that signs as a witness": (
        f"{LOG}log {vkey(ORIGIN, 4, OTHER_SEED)}\nquorum none\n",
        None,
    ),
    "key of a log and of a witness": (
        f"{LOG}log {vkey(WITNESS, 4, WITNESS_SEED)}\n{ONE}quorum w1\n",
        None,
    ),
    "999 definitions": (f"{LOG}{MANY}quorum none\n", None),
    "1000 definitions": (f"{LOG}{MANY}{ONE}quorum none\n", "container"),
}
DOSSIERS: Mapping[str, tuple[bytes, str | None]] = {
    **{f"policy: {name}": (with_policy(p), step) for name, (p, step) in POLICIES.items()},
    "policy: a name that is not UTF-8": (
        builder.with_file(
            "policy.txt",
            f"{LOG}witness q q\udcff+00000000+{REKOR}\nquorum none\n".encode(
                errors="surrogateescape"
            ),
        ),
        "container",
    ),
    "a first name that begins like that of a bundle": (
        builder.zipped({"record.jsonX": b"", **builder.material().files()}),
        "container",
    ),
    "no point that signed": (
        with_lines(
            f"\u2014 a {b64encode(key_id('a', 1, point(2)) + bytes(64)).decode()}\n",
            policy=f"{LOG}log {any_vkey('a', 1, point(2))}\nquorum none\n",
        ),
        "signature",
    ),
    "the log signed twice": (with_lines(LOG_LINE), None),
    "the witness cosigned twice": (with_lines(WITNESS_LINE), None),
    "a second signature by the log is wrong": (with_lines(wrong(LOG_LINE)), "signature"),
    "the first signature by the log is wrong": (
        with_lines(wrong(LOG_LINE), before=True),
        "signature",
    ),
    "a second signature by the witness is wrong": (with_lines(wrong(WITNESS_LINE)), "signature"),
    "a stranger's signature is wrong": (
        with_lines(wrong(signature_line("a", 1, OTHER_SEED, b"?\n"))),
        None,
    ),
    "ML-DSA cosignature beside the quorum": (
        with_lines(ML_DSA_LINE, policy=f"{LOG}{ONE}witness q {mldsa_vkey()}\nquorum w1\n"),
        None,
    ),
    "ML-DSA cosignature for the quorum": (with_lines(ML_DSA_LINE, policy=ML_DSA_WITNESS), None),
    "ML-DSA cosignature of no time": (
        with_lines(mldsa_line(ORIGIN, 7, root(), 0), policy=ML_DSA_WITNESS),
        None,
    ),
    "ML-DSA cosignature of a time from 2^63 on": (
        with_lines(mldsa_line(ORIGIN, 7, root(), 2**63), policy=ML_DSA_WITNESS),
        "signature",
    ),
    "ML-DSA cosignature of another size": (
        with_lines(mldsa_line(ORIGIN, 8, root(), 0), policy=ML_DSA_WITNESS),
        "signature",
    ),
    "ML-DSA cosignature that is wrong": (
        with_lines(wrong(ML_DSA_LINE), policy=ML_DSA_WITNESS),
        "signature",
    ),
    "ML-DSA cosignature that is cut": (
        with_lines(cut(ML_DSA_LINE), policy=ML_DSA_WITNESS),
        "signature",
    ),
    "the log signed by ML-DSA alone": (
        with_lines(ML_DSA_LOG_LINE, policy=f"log {mldsa_vkey(ORIGIN)}\nquorum none\n"),
        None,
    ),
    "the log signed by Ed25519 and ML-DSA": (
        with_lines(ML_DSA_LOG_LINE, policy=f"{LOG}log {mldsa_vkey(ORIGIN)}\nquorum none\n"),
        None,
    ),
    "the log signed by ML-DSA, wrong": (
        with_lines(wrong(ML_DSA_LOG_LINE), policy=f"{LOG}log {mldsa_vkey(ORIGIN)}\nquorum none\n"),
        "signature",
    ),
}


def of_a_kind_to_come(name: str) -> str:
    """A signature line by a key of kind 200."""
    return f"\u2014 {name} {b64encode(key_id(name, 200, b'key') + bytes(64)).decode()}\n"


NOT_CHECKABLE: Mapping[str, tuple[bytes, str]] = {
    "cosigned by a kind to come": (
        with_lines(
            of_a_kind_to_come("q"),
            policy=(
                f"{LOG}{ONE}witness q {any_vkey('q', 200, b'key')}\ngroup g all w1 q\nquorum g\n"
            ),
        ),
        "quorum",
    ),
    "signed by a kind to come": (
        with_lines(
            of_a_kind_to_come(ORIGIN),
            policy=f"log {any_vkey(ORIGIN, 200, b'key')}\nquorum none\n",
        ),
        "signature",
    ),
}
"""Signed as the policy asks, if a signature holds that no reader here can check."""

__all__ = ["DOSSIERS", "MLDSA_NAME"]
