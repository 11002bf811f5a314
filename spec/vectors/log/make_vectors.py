"""Make the vectors of the log formats: `python spec/vectors/log/make_vectors.py`.

Nine entries, the acknowledgment `full` of `../record` among them, become a log of nine entries with
fixed keys; of it come checkpoint, tiles, proofs and bundles, and the same with one thing broken.
Nothing is drawn at random and nothing depends on the time, so a run changes nothing unless the
format has changed; and a format that is published does not change, it gets a new version.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.evidence.bundle import (
    SUMS,
    BundleContents,
    read_container,
    sums,
    write_bundle,
    write_container,
)
from countersign.evidence.canonical import Json
from countersign.evidence.checkpoint import Checkpoint, format_checkpoint, sign_checkpoint
from countersign.evidence.cosignature import ed25519_message
from countersign.evidence.entry import log_entry
from countersign.evidence.note import COSIGNATURE, Signer, Verifier
from countersign.evidence.proof import Proof, format_proof
from countersign.evidence.record import FactDraft, entropy_needed, make_facts
from countersign.evidence.tiles import TileReader, entry_bundle, tile_path
from countersign.evidence.tree import inclusion_path, leaf_hash, root_hash
from countersign.services.log_keys import test_seed

ROOT = Path(__file__).parent
FULL = ROOT.parent / "record" / "good" / "full"
ORIGIN = "evidence.example.com:8443/v1/log/test/2"
WITNESS = "witness.example.com/w1"
LOG_SEED = test_seed(ORIGIN)
WITNESS_SEED, OTHER_SEED = (bytes([n]) * 32 for n in (2, 3))
COSIGNED_AT = 1_795_210_261
AT = "2026-11-20T21:31:00.123Z"


def facts() -> dict[str, bytes]:
    """One record of each other type, by its type; members as in the text of the format."""
    log = Signer(ORIGIN, LOG_SEED).verifier.vkey
    new = Signer(ORIGIN, OTHER_SEED).verifier.vkey
    account: dict[str, Json] = {"account": "acct_01kdtvz9n8f6ywn3x2qk4c7r5a"}
    erased: list[Json] = ["ack_01m7xdxbmvex7t29vh2x05yyyq"]
    members: dict[str, dict[str, Json]] = {
        "epoch": {
            "previous_log": "evidence.example.com:8443/v1/log/test/1",
            "previous_size": 0,
            "previous_root": sha256(b"").hexdigest(),
            "previous_published": None,
            "reason": "a vector",
        },
        "verification": {**account, "provider": "sandbox", "simulated": True},
        "erasure": {**account, "erased": erased, "reason": "request"},
        "key_rotation": {
            "log": ORIGIN,
            "old_key": log,
            "new_key": new,
            "old_key_retires_at": "2026-11-27T21:31:00.123Z",
        },
        "notice_event": {
            "event": "published",
            "notice_id": "ab1263",
            "notice_version": "2026-01-01-incomplete",
            "notice_digest": sha256((FULL / "notice.json").read_bytes()).hexdigest(),
        },
    }
    personal: dict[str, list[tuple[str, object]]] = {
        "verification": [
            ("cbid", "cb_1"),
            ("provider_identity_session_id", None),
            ("result", {"status": "verified", "reasons": []}),
        ]
    }
    made = {}
    for number, (type_, own) in enumerate(members.items()):
        hidden = personal.get(type_, [])
        prefix = "ver" if type_ == "verification" else "rec"
        common: dict[str, Json] = {
            "type": type_,
            "id": f"{prefix}_01m7xdxbmvex7t29vh2x05yy{number:02}",
            "mode": "test",
            "at": AT,
        }
        entropy = bytes([number]) * entropy_needed(len(hidden))
        [written] = make_facts([FactDraft({**own, **common}, hidden, entropy)])
        made[type_] = written.body
    return made


@dataclass(frozen=True)
class Log:
    """A log of these records, and what is made of it."""

    records: tuple[bytes, ...]
    origin: str = ORIGIN
    seed: bytes = LOG_SEED

    @property
    def entries(self) -> list[bytes]:
        """The entries, in order."""
        return [log_entry(self.origin, sha256(record).digest()) for record in self.records]

    @property
    def leaves(self) -> list[bytes]:
        """Their leaf hashes."""
        return [leaf_hash(entry) for entry in self.entries]

    def checkpoint(self, *, cosigned: bool = True) -> bytes:
        """The signed checkpoint."""
        checkpoint = Checkpoint(self.origin, len(self.records), root_hash(self.leaves))
        note = sign_checkpoint(checkpoint, [Signer(self.origin, self.seed)])
        return note + cosignature(format_checkpoint(checkpoint)) if cosigned else note

    def proof(self, index: int) -> Proof:
        """The proof of one record."""
        leaves = self.leaves

        def tile(tiles: object) -> list[bytes]:
            del tiles
            return [b"".join(leaves)]

        path = inclusion_path(index, len(leaves), TileReader(tile, len(leaves)))
        return Proof(self.records[index], index, tuple(path), self.checkpoint())


def cosignature(text: bytes) -> bytes:
    """The line of the witness."""
    key = Ed25519PrivateKey.from_private_bytes(WITNESS_SEED)
    signature = key.sign(ed25519_message(COSIGNED_AT, text))
    signed = _witness().key_id + COSIGNED_AT.to_bytes(8, "big") + signature
    return f"\u2014 {WITNESS} {b64encode(signed).decode()}\n".encode()


def _witness() -> Verifier:
    key = Ed25519PrivateKey.from_private_bytes(WITNESS_SEED).public_key().public_bytes_raw()
    return Verifier(WITNESS, COSIGNATURE, key)


def policy(seed: bytes = LOG_SEED) -> bytes:
    """The policy that all vectors are judged by."""
    log = Signer(ORIGIN, seed).verifier.vkey
    witness = f"witness w1 {_witness().vkey}\ngroup all-of-them all w1\n"
    return f"log {log}\n{witness}quorum all-of-them\n".encode()


def bundle(log: Log, index: int, *, shown: bool = True) -> BundleContents:
    """The bundle of the acknowledgment; certificate and tools are stand-ins, to stay small."""
    disclosures = json.loads((FULL / "disclosures.json").read_bytes())
    return BundleContents(
        record=log.records[index],
        disclosures=tuple(disclosures) if shown else (),
        notice=(FULL / "notice.json").read_bytes(),
        proof=format_proof(log.proof(index)),
        policy=policy(),
        certificate=b"%PDF-1.7 stand-in\n",
        verify_py=b"# stand-in\n",
        verify_html=b"<!doctype html><title>stand-in</title>\n",
        readme=b"A stand-in.\n",
    )


def generated_files() -> dict[str, bytes]:
    """Every file that is made, by its path here."""
    other = facts()
    acknowledgment = (FULL / "record.json").read_bytes()
    types = {"acknowledgment": acknowledgment, **other}
    log = Log((*other.values(), acknowledgment, b"filler 1", b"filler 2", b"filler 3"))
    at = {type_: log.records.index(record) for type_, record in types.items()}
    files = {
        "good/checkpoint": log.checkpoint(),
        "good/policy.txt": policy(),
        f"good/tile/{tile_path(0, 0, 9)}": b"".join(log.leaves),
        f"good/tile/{tile_path('entries', 0, 9)}": entry_bundle(log.entries),
        "good/shown.zip": write_bundle(bundle(log, at["acknowledgment"])),
        "good/erased.zip": write_bundle(bundle(log, at["acknowledgment"], shown=False)),
    }
    for type_, index in at.items():
        files[f"good/{type_}.tlog-proof"] = format_proof(log.proof(index))
    cases = broken(log, at["acknowledgment"])
    for name, (_, _, data) in cases.items():
        files[f"broken/{name}"] = data
    expected = {name: {"change": what, "step": step} for name, (what, step, _) in cases.items()}
    text = json.dumps(expected, ensure_ascii=False, indent=2, sort_keys=True)
    return {**files, "broken/expected.json": text.encode() + b"\n"}


def broken(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """By name of the file: what was changed, the step that has to fail, and the bytes."""
    proof, good = log.proof(index), bundle(log, index)
    text = format_proof(proof)
    path = proof.path
    forged = Log(log.records, seed=OTHER_SEED)
    rewritten = Log((b"another record", *log.records[1:]))
    unknown = replace(proof, extra=log.records[-1])

    def proved(change: Proof) -> bytes:
        return format_proof(change)

    def packed(change: BundleContents) -> bytes:
        return write_bundle(change)

    files = read_container(write_bundle(good))

    def resummed(name: str, data: bytes, *, summed: bool = True) -> bytes:
        changed = {n: d for n, d in {**files, name: data}.items() if n != SUMS}
        return write_container({**changed, SUMS: sums(changed) if summed else files[SUMS]})

    shown = good.disclosures
    return {
        "index-leading-zero.tlog-proof": (
            "a leading zero in the index",
            "container",
            text.replace(b"index 5", b"index 05"),
        ),
        "hash-short.tlog-proof": (
            "a hash of 31 bytes in the path",
            "container",
            proved(replace(proof, path=(path[0][:-1], *path[1:]))),
        ),
        "path-of-64.tlog-proof": (
            "more hashes than any tree is high",
            "container",
            proved(replace(proof, path=path[:1] * 64)),
        ),
        "no-newline.tlog-proof": ("the last newline is missing", "container", text[:-1]),
        "checkpoint-one-bit.tlog-proof": (
            "another size in the checkpoint",
            "signature",
            text.replace(b"/test/2\n9\n", b"/test/2\n8\n"),
        ),
        "other-key.tlog-proof": (
            "signed by a key of the same name that the policy does not list",
            "signature",
            proved(forged.proof(index)),
        ),
        "not-cosigned.tlog-proof": (
            "the cosignature of the witness is missing",
            "quorum",
            proved(replace(proof, checkpoint=log.checkpoint(cosigned=False))),
        ),
        "not-a-record.tlog-proof": (
            "what is sealed is no record",
            "record",
            proved(log.proof(len(log.records) - 1)),
        ),
        "other-record.tlog-proof": (
            "another entry of the log as the record",
            "record",
            proved(unknown),
        ),
        "record-one-bit.tlog-proof": (
            "the second of the acceptance, changed in the record",
            "inclusion",
            proved(
                replace(proof, extra=log.records[index].replace(b"21:31:00.123", b"21:31:01.123"))
            ),
        ),
        "other-index.tlog-proof": (
            "the index of the neighbour",
            "inclusion",
            proved(replace(proof, index=index - 1)),
        ),
        "path-cut.tlog-proof": (
            "the last hash of the path is missing",
            "inclusion",
            proved(replace(proof, path=path[:-1])),
        ),
        "path-longer.tlog-proof": (
            "one hash more than the way to the root",
            "inclusion",
            proved(replace(proof, path=(*path, path[0]))),
        ),
        "other-tree.tlog-proof": (
            "a path of a log in which the first entry was replaced",
            "inclusion",
            proved(replace(proof, path=rewritten.proof(index).path)),
        ),
        "longer.zip": ("a byte after the end", "container", write_bundle(good) + b"\n"),
        "cut.zip": ("the last byte is missing", "container", write_bundle(good)[:-1]),
        "other-order.zip": (
            "the same files in another order",
            "container",
            write_container(dict(reversed(files.items()))),
        ),
        "more-files.zip": (
            "a file that no bundle holds",
            "container",
            write_container({"more.txt": b"", **files}),
        ),
        "record-other.zip": (
            "record.json is not the record that the proof holds",
            "record",
            packed(replace(good, record=good.record.replace(b"21:31:00", b"21:31:01"))),
        ),
        "fact.zip": (
            "a bundle about an erasure",
            "record",
            packed(replace(good, record=log.records[2], proof=format_proof(log.proof(2)))),
        ),
        "disclosure-other.zip": (
            "a disclosure of another record",
            "disclosures",
            packed(replace(good, disclosures=("WyJhIiwiY2JpZCIsIngiXQ",))),
        ),
        "disclosure-twice.zip": (
            "a disclosure shown twice",
            "disclosures",
            packed(replace(good, disclosures=(*shown, shown[0]))),
        ),
        "notice-other.zip": (
            "other words on the first line of the notice",
            "notice",
            packed(
                replace(good, notice=good.notice.replace(b"more than three", b"more than four"))
            ),
        ),
        "certificate-other.zip": (
            "another certificate, and SHA256SUMS as it was",
            "files",
            resummed("certificate.pdf", b"%PDF-1.7 another\n", summed=False),
        ),
        "policy-other.zip": (
            "the policy lists another key",
            "signature",
            resummed("policy.txt", policy(OTHER_SEED)),
        ),
    }


def main() -> None:
    """Write the files, and say which of them changed."""
    for name, data in generated_files().items():
        path = ROOT / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"written: {name}")


if __name__ == "__main__":
    main()
