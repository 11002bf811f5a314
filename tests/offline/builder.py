"""Makes dossiers of one record, and proofs, good and broken, by the specification alone.

It uses nothing of ours but the text of README.txt, which is the same in each.

The signatures are made by `cryptography`, the container by `zipfile`, the tree by the recursion of
RFC 6962 §2.1 word for word.
"""

import io
import json
import re
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256, sha384, sha512
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign_evidence.offline import verify

ORIGIN = "evidence.example.com:8443/v1/log/live/1"
WITNESS = "witness.example.com/w1"
LOG_SEED = bytes(range(32))
WITNESS_SEED = bytes(range(1, 33))
OTHER_SEED = bytes(range(2, 34))
COSIGNED_AT = 1795210260
HASH_SIZE = 32
ID = "ack_01m7xdxbmvex7t29vh2x05yyyq"
README = (Path(verify.__file__).parents[1] / "dossier_readme.txt").read_bytes()
"""Every dossier has the same: it is compared with its digest, and has to be this one."""
_NAMED = re.compile(rb'"id":"(ack_[0-7][0-9a-hjkmnp-tv-z]{25})"')


def canonical(value: object) -> bytes:
    """Canonical JSON of values that hold no floats."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def b64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def tree_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 §2.1, over leaf hashes."""
    if len(leaves) == 1:
        return leaves[0]
    k = _split(len(leaves))
    return sha256(b"\x01" + tree_root(leaves[:k]) + tree_root(leaves[k:])).digest()


def tree_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962 §2.1.1, over leaf hashes."""
    if len(leaves) == 1:
        return []
    k = _split(len(leaves))
    if index < k:
        return [*tree_path(index, leaves[:k]), tree_root(leaves[k:])]
    return [*tree_path(index - k, leaves[k:]), tree_root(leaves[:k])]


def _split(size: int) -> int:
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def public_key(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def key_id(name: str, kind: int, seed: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([kind]) + public_key(seed)).digest()[:4]


def vkey(name: str, kind: int = 1, seed: bytes = LOG_SEED) -> str:
    encoded = b64encode(bytes([kind]) + public_key(seed)).decode()
    return f"{name}+{key_id(name, kind, seed).hex()}+{encoded}"


def signature_line(name: str, kind: int, seed: bytes, text: bytes) -> str:
    """The line below a note's text: of a log (kind 1), or of a witness (kind 4)."""
    before = b""
    if kind == 4:
        before = COSIGNED_AT.to_bytes(8, "big")
        text = f"cosignature/v1\ntime {COSIGNED_AT}\n".encode() + text
    signature = Ed25519PrivateKey.from_private_bytes(seed).sign(text)
    return f"\u2014 {name} {b64encode(key_id(name, kind, seed) + before + signature).decode()}\n"


@dataclass(frozen=True, kw_only=True)
class Material:
    """The parts of a dossier of one record; each field may be replaced by a wrong one."""

    record: bytes
    extra: bytes
    disclosures: list[str]
    notice: bytes
    origin: str = ORIGIN
    size: int = 7
    index: int = 5
    proof_index: int | None = None
    log_seed: bytes = LOG_SEED
    cosigners: tuple[bytes, ...] = (WITNESS_SEED,)
    policy: str = (
        f"log {vkey(ORIGIN)}\nwitness w1 {vkey(WITNESS, 4, WITNESS_SEED)}\n"
        "group all-of-them all w1\nquorum all-of-them\n"
    )
    path_change: Callable[[list[bytes]], list[bytes]] = list
    root: bytes | None = None
    timestamps: Mapping[str, bytes] = field(default_factory=dict)
    pdf: bytes = b"%PDF-1.7 a certificate"
    verify_py: bytes = b"# verify.py\n"
    verify_html: bytes = b"<!doctype html>"
    readme: bytes = README

    def note(self) -> bytes:
        """The signed checkpoint."""
        text = f"{self.origin}\n{self.size}\n{b64encode(self.root or self._root()).decode()}\n"
        lines = signature_line(self.origin, 1, self.log_seed, text.encode())
        for seed in self.cosigners:
            lines += signature_line(WITNESS, 4, seed, text.encode())
        return f"{text}\n{lines}".encode()

    def _leaves(self) -> list[bytes]:
        leaves = [sha256(bytes([n])).digest() for n in range(self.size)]
        entry = f"{self.origin.split('/', 1)[0]}/entry/v1\n".encode()
        entry += b64encode(sha256(self.extra).digest()) + b"\n"
        leaves[self.index] = sha256(b"\x00" + entry).digest()
        return leaves

    def _root(self) -> bytes:
        return tree_root(self._leaves())

    def proof(self) -> bytes:
        """The proof file."""
        path = self.path_change(tree_path(self.index, self._leaves()))
        index = self.index if self.proof_index is None else self.proof_index
        lines = ["c2sp.org/tlog-proof@v1", f"extra {b64encode(self.extra).decode()}"]
        lines += [f"index {index}", *(b64encode(hash_).decode() for hash_ in path), "", ""]
        return "\n".join(lines).encode() + self.note()

    def name(self, ending: str) -> str:
        """The name of a file of the record; for a record without an id, that of the good one."""
        named = _NAMED.search(self.record)
        return f"records/{named[1].decode() if named else ID}.{ending}"

    def files(self) -> dict[str, bytes]:
        """The files of the dossier but SHA256SUMS, in their order."""
        return {
            self.name("json"): self.record,
            self.name("disclosures.json"): canonical(self.disclosures),
            self.name("tlog-proof"): self.proof(),
            "notice.json": self.notice,
            "policy.txt": self.policy.encode(),
            **dict(sorted(self.timestamps.items())),
            "dossier.pdf": self.pdf,
            "verify.py": self.verify_py,
            "verify.html": self.verify_html,
            "README.txt": self.readme,
        }

    def dossier(self) -> bytes:
        """The ZIP file."""
        return zipped(summed(self.files()))


def summed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with SHA256SUMS of them as the last."""
    lines = "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    return {**files, "SHA256SUMS": lines.encode()}


def zipped(files: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A ZIP file in the form of dossiers."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = compression
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)
    return target.getvalue()


def unpacked(files: Mapping[str, bytes], folder: Path) -> Path:
    """Write these files into a folder; gives the folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


SHA256, SHA384, SHA512 = (bytes.fromhex(f"60864801650304020{n}") for n in (1, 2, 3))


def der(tag: int, *parts: bytes) -> bytes:
    """A DER value (X.690)."""
    content = b"".join(parts)
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes(1 if len(content) < 256 else 2, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def stamp(digest: bytes, algorithm: bytes = SHA256, time: bytes = b"20261120213105Z") -> bytes:
    """A TimeStampResp (RFC 3161 §2.4.2) that no one signed."""
    number = der(2, b"\1")
    imprint = der(0x30, der(0x30, der(6, algorithm), der(5)), der(4, digest))
    info = der(0x30, number, der(6, b"\x2a\x03"), imprint, number, der(0x18, time))
    content = der(0x30, der(6, bytes.fromhex("2a864886f70d0109100104")), der(0xA0, der(4, info)))
    data = der(0x30, number, der(0x31), content, der(0x31))
    signed = der(0x30, der(6, bytes.fromhex("2a864886f70d010702")), der(0xA0, data))
    return der(0x30, der(0x30, der(2, b"\0")), signed)


def stamped(*responses: bytes) -> "Material":
    """A good dossier with these time-stamps."""
    names = [f"timestamps/{n}.tsr" for n in range(1, len(responses) + 1)]
    return replace(material(), timestamps=dict(zip(names, responses, strict=True)))


def over() -> bytes:
    """The content of a time-stamp in the good dossier: the note with the log's own signature."""
    return replace(material(), cosigners=()).note()


def incomplete() -> "Material":
    """A good dossier about a notice with known gaps, whose version the vendor did not name."""
    words = {"text_gaps": ["(E) and later"], "source_law": "Cal. Civ. Code \u00a7 3273.51"}
    notice = canonical({**json.loads(material().notice), **words})
    said = material(notice_digest=sha256(notice).hexdigest(), notice_version_source="assumed")
    return replace(said, notice=notice)


RECORD, DISCLOSURES, PROOF = (
    f"records/{ID}.{e}" for e in ("json", "disclosures.json", "tlog-proof")
)
"""The files of the good record."""
INITIALS = ["JD", "J.D."]
LINES = [
    "Manufacturing more than three firearms.",
    "Zeile <b>zwei</b> & \u00a7 27510 \u2014 caf\u00e9",
]


def members() -> dict[str, Any]:
    """The members of a good record, without those of disclosures and notice."""
    return {
        "v": 1,
        "type": "acknowledgment",
        "id": ID,
        "account": "acct_01kdtvz9n8f6ywn3x2qk4c7r5a",
        "mode": "live",
        "notice_id": "ab1263",
        "notice_version": "2026-01-01",
        "notice_version_source": "asserted",
        "capture": "vendor_api",
        "credential": "secret_key",
        "accepted_at": "2026-11-20T21:31:00.123Z",
        "nonce": b64url(bytes(16)),
        "_sd_alg": "sha-256",
    }


def disclosure(number: int, name: str, value: object) -> str:
    return b64url(canonical([b64url(bytes([number] * 16)), name, value]))


def material(**changes: object) -> Material:
    """Everything good; `changes` to members of the record are made before it is sealed."""
    notice = canonical(
        {
            "id": "ab1263",
            "version": "2026-01-01",
            "title": "Notice",
            "heading": "Read and initial each line",
            "bullets": [{"id": "AB"[n], "text": text} for n, text in enumerate(LINES)],
            "attestation_text": "I understand.",
        }
    )
    disclosures = [
        disclosure(1, "initials_per_line", INITIALS),
        disclosure(2, "session_id", "sess_1"),
        disclosure(3, "cbid", None),
    ]
    record = canonical(
        {
            **members(),
            "_sd": sorted(b64url(sha256(item.encode()).digest()) for item in disclosures),
            "notice_digest": sha256(notice).hexdigest(),
            "bullets": [
                {"id": "AB"[n], "digest": sha256(text.encode()).hexdigest()}
                for n, text in enumerate(LINES)
            ],
            **changes,
        }
    )
    return Material(record=record, extra=record, disclosures=disclosures[:2], notice=notice)


def with_file(name: str, data: bytes) -> bytes:
    """A good dossier with one file replaced, and new SHA256SUMS."""
    return zipped(summed({**material().files(), name: data}))


def _sealed(record: bytes) -> Material:
    """A dossier about other record bytes, sealed as they are."""
    return replace(material(), record=record, extra=record)


def good() -> dict[str, bytes]:
    """Dossiers that verify against their own policy."""
    plain = material()
    many = "".join(
        f"witness w{n} {vkey(f'example.com/{n}', 4, bytes([n]) * 32)}\n" for n in range(2, 5)
    )
    return {
        "full": plain.dossier(),
        "nothing-shown": replace(plain, disclosures=[]).dossier(),
        "one-entry": replace(plain, size=1, index=0).dossier(),
        "no-quorum": replace(
            plain, policy=f"log {vkey(ORIGIN)}\nquorum none\n", cosigners=()
        ).dossier(),
        "quorum-of-groups": replace(
            plain,
            policy=(
                f"# two of these\n\nlog {vkey(ORIGIN)} https://{ORIGIN}\n"
                f"witness\tw1 {vkey(WITNESS, 4, WITNESS_SEED)} https://w.example.com\n{many}"
                "group a any w1 w2\ngroup b 1 w3\ngroup q 1 a b w4\nquorum q\n"
            ),
        ).dossier(),
        "renewed": stamped(
            stamp(sha256(over()).digest()),
            stamp(sha512(stamp(sha256(over()).digest())).digest(), SHA512),
        ).dossier(),
        "stamped-unknown": stamped(
            stamp(bytes(20), b"\x2b\x0e\x03\x02\x1a"),
            stamp(sha256(stamp(bytes(20), b"\x2b\x0e\x03\x02\x1a")).digest()),
        ).dossier(),
        "stamped": stamped(
            stamp(sha256(over()).digest()),
            stamp(sha384(over()).digest(), SHA384),
            stamp(sha512(over()).digest(), SHA512, b"20261120213105.25Z"),
            stamp(bytes(20), b"\x2b\x0e\x03\x02\x1a"),
        ).dossier(),
        "test-mode": replace(
            _sealed(material(mode="test").record),
            origin="evidence.example.com/v1/log/test/1",
            policy=f"log {vkey('evidence.example.com/v1/log/test/1')}\nquorum none\n",
        ).dossier(),
    }


def broken() -> dict[str, tuple[str, bytes]]:
    """By error: the step that must fail, and the dossier."""
    plain = material()
    files = summed(plain.files())
    duplicate = plain.record.replace(b'"v":1', b'"v":1,"v":1')
    return {
        "empty": ("container", b""),
        "noise": ("container", b"PK\x03\x04" + bytes(100)),
        "cut": ("container", plain.dossier()[:-1]),
        "longer": ("container", plain.dossier() + b"\n"),
        "compressed": ("container", zipped(files, zipfile.ZIP_DEFLATED)),
        "lacks-notice": (
            "container",
            zipped(summed({n: d for n, d in plain.files().items() if n != "notice.json"})),
        ),
        "two-names-in-one": (
            "container",
            zipped(
                summed(
                    {
                        ("verify.py\nverify.html" if n == "verify.py" else n): d
                        for n, d in plain.files().items()
                        if n != "verify.html"
                    }
                )
            ),
        ),
        "unknown-file": ("container", zipped(summed({**plain.files(), "more.txt": b""}))),
        "other-order": ("container", zipped(dict(reversed(files.items())))),
        "disclosures-spaced": ("container", with_file(DISCLOSURES, b"[ ]")),
        "disclosures-no-texts": ("container", with_file(DISCLOSURES, b"[1]")),
        "proof-malformed": ("container", with_file(PROOF, b"proof\n\nnote\n")),
        "policy-malformed": ("container", with_file("policy.txt", b"log x\nquorum none\n")),
        "policy-cycle": ("container", with_file("policy.txt", b"group a any a\nquorum a\n")),
        "hash-not-canonical": (
            "container",
            with_file(PROOF, plain.proof().replace(b"=\n\n", b"\n\n")),
        ),
        "other-key": ("signature", replace(plain, log_seed=OTHER_SEED).dossier()),
        "checkpoint-changed": (
            "signature",
            with_file(PROOF, plain.proof().replace(b"live/1\n7\n", b"live/1\n8\n")),
        ),
        "other-origin": ("signature", replace(plain, origin=ORIGIN[:-1] + "2").dossier()),
        "witness-missing": ("quorum", replace(plain, cosigners=()).dossier()),
        "witness-unknown": ("quorum", replace(plain, cosigners=(OTHER_SEED,)).dossier()),
        "two-of-two": (
            "quorum",
            replace(
                plain,
                policy=plain.policy.replace(
                    "group all-of-them all w1",
                    f"witness w2 {vkey('w2', 4, OTHER_SEED)}\ngroup all-of-them 2 w1 w2",
                ),
            ).dossier(),
        ),
        "record-changed": (
            "record",
            with_file(RECORD, plain.record.replace(b"21:31:00", b"21:31:01")),
        ),
        "record-spaced": ("record", _sealed(plain.record.replace(b",", b", ", 1)).dossier()),
        "record-repeats": ("record", _sealed(duplicate).dossier()),
        "record-float": ("record", _sealed(plain.record.replace(b'"v":1', b'"v":1.0')).dossier()),
        "record-v2": ("record", _sealed(material(v=2).record).dossier()),
        "record-unknown": ("record", _sealed(material(type="other").record).dossier()),
        "record-no-act": ("record", _sealed(material(type="erasure").record).dossier()),
        "record-mode": ("record", _sealed(material(mode="test").record).dossier()),
        "not-included": ("inclusion", replace(plain, root=bytes(HASH_SIZE)).dossier()),
        "index-changed": ("inclusion", replace(plain, proof_index=4).dossier()),
        "index-outside": ("inclusion", replace(plain, proof_index=7).dossier()),
        "path-short": ("inclusion", replace(plain, path_change=lambda p: p[:-1]).dossier()),
        "path-long": ("inclusion", replace(plain, path_change=lambda p: [*p, p[0]]).dossier()),
        "disclosure-changed": (
            "disclosures",
            replace(
                plain, disclosures=[disclosure(1, "initials_per_line", ["XX", "XX"])]
            ).dossier(),
        ),
        "disclosure-twice": (
            "disclosures",
            replace(plain, disclosures=plain.disclosures[:1] * 2).dossier(),
        ),
        "notice-changed": (
            "notice",
            with_file("notice.json", plain.notice.replace(b"three", b"thre3")),
        ),
        "stamp-other": ("timestamps", stamped(stamp(sha256(plain.note()).digest())).dossier()),
        "renewal-other": (
            "timestamps",
            stamped(stamp(sha256(over()).digest()), stamp(sha256(b"other").digest())).dossier(),
        ),
        "stamp-none": ("timestamps", stamped(b"\x30\x03\x02\x01\x00").dossier()),
        "stamp-cut": ("timestamps", stamped(stamp(sha256(over()).digest())[:-1]).dossier()),
        "bullets-disagree": ("notice", _sealed(material(bullets=[]).record).dossier()),
        "sums-wrong": ("files", zipped({**files, "SHA256SUMS": files["SHA256SUMS"].upper()})),
        "pdf-changed": ("files", zipped({**files, "dossier.pdf": b"%PDF-1.7 changed"})),
    }
