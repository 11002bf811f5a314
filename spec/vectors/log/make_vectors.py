"""Make the vectors of the log formats: `python spec/vectors/log/make_vectors.py`.

Nine entries, the acknowledgment `full` of `../record` among them, become a log of nine entries with
fixed keys; of it come checkpoint, tiles, proofs and dossiers, and the same with one thing broken.
Nothing is drawn at random and nothing depends on the time, so a run changes nothing unless the
format has changed; and a format that is published does not change, it gets a new version.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.core.log.keys import test_seed
from countersign_evidence.approval import ROTATE, SET_APPROVERS, Proposal, sign_proposal
from countersign_evidence.canonical import Json, canonical_json
from countersign_evidence.disclosure import b64url
from countersign_evidence.dossier import (
    SUMS,
    DossierContents,
    RecordFiles,
    read_container,
    sums,
    write_container,
    write_dossier,
)
from countersign_evidence.entry import log_entry
from countersign_evidence.note import (
    COSIGNATURE,
    MLDSA_COSIGNATURE,
    Checkpoint,
    Signer,
    Verifier,
    format_checkpoint,
    parse_note,
    sign_checkpoint,
)
from countersign_evidence.proof import Proof, format_proof
from countersign_evidence.record import Record, bullet_digests, entropy_needed, make_records
from countersign_evidence.tiles import GrowingTree, TileReader, entry_bundle, tile_path
from countersign_evidence.tree import inclusion_path, leaf_hash

ROOT = Path(__file__).parent
RECORDS = ROOT.parent / "record"
FULL, HOSTED = (RECORDS / "good" / name for name in ("full", "hosted"))
PARTIES = ("parties", "parties-none", "parties-hosted")
ORIGIN = "evidence.example.com:8443/v1/log/test/2"
WITNESS = "witness.example.com/w1"
LOG_SEED = test_seed(ORIGIN)
WITNESS_SEED, OTHER_SEED = (bytes([n]) * 32 for n in (2, 3))
COSIGNED_AT = 1_795_210_261
AT = "2026-11-20T21:31:00.123Z"
_ID = re.compile(rb'"id":"(ack_[0-9a-hjkmnp-tv-z]{26})"')


def facts() -> dict[str, bytes]:
    """One record of each other type, by its type; members as in the text of the format."""
    log = Signer.from_seed(ORIGIN, LOG_SEED).verifier.vkey
    new = Signer.from_seed(ORIGIN, OTHER_SEED).verifier.vkey
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
    return {
        type_: _fact(type_, number, own, personal.get(type_, ()))
        for number, (type_, own) in enumerate(members.items())
    }


def with_parties() -> dict[str, bytes]:
    """The records of three parties, and one of each type that binds them in version 2."""
    account: dict[str, Json] = {"account": "acct_01kdtvz9n8f6ywn3x2qk4c7r5a"}
    parties: dict[str, dict[str, Json]] = {
        "operator": {
            "legal_name": "Evidence Example Inc.",
            "address": "1 Example Way, Sacramento, CA 95814",
            "licence": None,
            "contact": "evidence@example.com",
            "previous": None,
        },
        "account": {
            **account,
            "name": "parts-example",
            "legal_name": "Parts Example LLC",
            "address": "2 Example Way, Reno, NV 89501",
            "licence": "1-23-456-78-9A-01234",
            "contact": None,
            "previous": sha256(b"an earlier record of the account").hexdigest(),
        },
        "capture_process": {
            **account,
            "version": 2,
            "statement": "The shop shows each line with a field of its own.\nNothing is filled in.",
            "previous": sha256(b"an earlier statement").hexdigest(),
        },
    }
    made = {type_: _fact(type_, 32 + n, own) for n, (type_, own) in enumerate(parties.items())}
    operator, own_account, _ = (sha256(record).hexdigest() for record in made.values())
    bound = {**account, "v": 2, "operator_record": operator, "account_record": own_account}
    result: list[tuple[str, object]] = [
        ("cbid", "cb_1"),
        ("provider_identity_session_id", None),
        ("result", {"status": "verified", "reasons": []}),
    ]
    checked = _fact("verification", 35, {**bound, "provider": "sandbox", "simulated": True}, result)
    members: dict[str, Json] = {
        **bound,
        "ack_id": "ack_01m7xdxbmvex7t29vh2x05yyyq",
        "cleared": True,
        "reasons": [],
        "obligations": [{"type": "compared", "what": "zip"}],
        "expires_at": "2026-11-21T21:31:05Z",
    }
    order: list[tuple[str, object]] = [
        ("cbid", "cb_1"),
        ("session_id", "order-1"),
        ("shipping", {"zip": "95814", "address": None, "product_class": "accessory"}),
        ("verification", json.loads(checked)["id"]),
    ]
    cleared = _fact("clearance", 36, members, order)
    reported: dict[str, Json] = {
        **bound,
        "clearance_id": json.loads(cleared)["id"],
        "adult_signature_obtained": True,
        "shipped_at": "2026-11-21T16:05:00Z",
        "delivered_at": None,
    }
    sent: list[tuple[str, object]] = [("carrier", "a carrier"), ("tracking_number", None)]
    return {
        **made,
        "verification-2": checked,
        "clearance-2": cleared,
        "fulfilment-2": _fact("fulfilment", 37, reported, sent),
    }


def with_approvals() -> dict[str, bytes]:
    """Two persons are registered, then approve a new key, then one takes the place of the other."""
    ann, bo, cy = (
        Signer.from_seed(name, bytes([n]) * 32) for n, name in ((5, "ann"), (6, "bo"), (7, "cy"))
    )
    old, new = (Signer.from_seed(ORIGIN, seed).verifier.vkey for seed in (LOG_SEED, OTHER_SEED))
    both, later = ([signer.verifier.vkey for signer in pair] for pair in ((ann, bo), (bo, cy)))

    def approved(number: int, act: str, *lines: tuple[str, str]) -> dict[str, Json]:
        id_, until = f"prp_01m7xdxbmvex7t29vh2x05yy{number:02}", datetime(2026, 11, 27, tzinfo=UTC)
        text = Proposal(id=id_, origin=ORIGIN, until=until, act=act, lines=lines).text()
        notes = [parse_note(sign_proposal(text, signer)).signatures for signer in (ann, bo)]
        signed = text + b"\n" + b"".join(line.text() for lines_ in notes for line in lines_)
        return {"log": ORIGIN, "threshold": 2, "approval": signed.decode()}

    rotation = approved(52, ROTATE, ("overlap", "604800"), ("old", old), ("new", new))
    change = approved(
        53, SET_APPROVERS, ("threshold", "2"), *(("approver", vkey) for vkey in later)
    )
    keys: dict[str, Json] = {"old_key": old, "new_key": new}
    retires: dict[str, Json] = {"old_key_retires_at": "2026-11-27T21:31:00.123Z"}
    members: dict[str, tuple[str, dict[str, Json]]] = {
        "approvers": ("approvers", {"log": ORIGIN, "new_threshold": 2, "approvers": [*both]}),
        "key_rotation-2": ("key_rotation", {**rotation, **keys, **retires}),
        "approvers-2": ("approvers", {**change, "new_threshold": 2, "approvers": [*later]}),
    }
    return {
        name: _fact(type_, 54 + n, own) for n, (name, (type_, own)) in enumerate(members.items())
    }


_PREFIXES = {"verification": "ver", "clearance": "clr", "fulfilment": "ful"}


def _fact(
    type_: str,
    number: int,
    own: dict[str, Json],
    hidden: Sequence[tuple[str, object]] = (),
) -> bytes:
    common: dict[str, Json] = {
        "type": type_,
        "id": f"{_PREFIXES.get(type_, 'rec')}_01m7xdxbmvex7t29vh2x05yy{number:02}",
        "mode": "test",
        "at": AT,
    }
    entropy = bytes([number]) * entropy_needed(len(hidden))
    record = Record({**own, **common}, hidden, entropy)
    make_records([record])
    return record.body


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
        tree = GrowingTree()
        tree.extend(self.leaves)
        checkpoint = Checkpoint(self.origin, tree.size, tree.root())
        note = sign_checkpoint(checkpoint, [Signer.from_seed(self.origin, self.seed)])
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
    signature = key.sign(_witness().message(text, COSIGNED_AT))
    signed = _witness().key_id + COSIGNED_AT.to_bytes(8, "big") + signature
    return f"\u2014 {WITNESS} {b64encode(signed).decode()}\n".encode()


def _witness() -> Verifier:
    key = Ed25519PrivateKey.from_private_bytes(WITNESS_SEED).public_key().public_bytes_raw()
    return Verifier(WITNESS, COSIGNATURE, key)


def policy(seed: bytes = LOG_SEED) -> bytes:
    """The policy that all vectors are judged by."""
    log = Signer.from_seed(ORIGIN, seed).verifier.vkey
    witness = f"witness w1 {_witness().vkey}\ngroup all-of-them all w1\n"
    return f"log {log}\n{witness}quorum all-of-them\n".encode()


@dataclass(frozen=True, kw_only=True)
class Alone:
    """A dossier of one record, of which each part may be replaced."""

    id: str
    record: bytes
    disclosures: tuple[str, ...]
    notice: bytes
    proof: bytes
    policy: bytes
    timestamps: Mapping[str, bytes] = field(default_factory=dict)

    def name(self, ending: str) -> str:
        """The name of a file of the record."""
        return f"records/{self.id}.{ending}"


def alone(log: Log, index: int, *, shown: bool = True) -> Alone:
    """The dossier of the acknowledgment."""
    disclosures = json.loads((FULL / "disclosures.json").read_bytes())
    found = _ID.search(log.records[index])
    return Alone(
        id=found[1].decode() if found else ODD_ID,
        record=log.records[index],
        disclosures=tuple(disclosures) if shown else (),
        notice=(FULL / "notice.json").read_bytes(),
        proof=format_proof(log.proof(index)),
        policy=policy(),
    )


def packed(one: Alone) -> bytes:
    """The file; PDF and tools are stand-ins, to stay small."""
    return write_dossier(
        DossierContents(
            records={one.id: RecordFiles(one.record, one.disclosures, one.proof)},
            notice=one.notice,
            policy=one.policy,
            timestamps=one.timestamps,
            pdf=b"%PDF-1.7 stand-in\n",
            verify_py=b"# stand-in\n",
            verify_html=b"<!doctype html><title>stand-in</title>\n",
        )
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
        "good/shown.zip": packed(alone(log, at["acknowledgment"])),
        "good/erased.zip": packed(alone(log, at["acknowledgment"], shown=False)),
    }
    good = odd_and_good(log, at["acknowledgment"]) | hosted_and_good(log, at["acknowledgment"])
    good |= parties_and_good(log, at["acknowledgment"])
    good |= {
        name: data
        for name, (_, step, data) in ml_dsa(log, at["acknowledgment"]).items()
        if not step
    }
    named = odd(log, at["acknowledgment"])
    good |= {name: data for name, (_, data) in named.items()}
    for name, data in good.items():
        files[f"good/{name}"] = data
    files["good/named.json"] = _pretty({name: words for name, (words, _) in named.items()})
    for type_, index in at.items():
        files[f"good/{type_}.tlog-proof"] = format_proof(log.proof(index))
    for own in (with_parties(), with_approvals()):
        for index, name in enumerate(own):
            files[f"good/{name}.tlog-proof"] = format_proof(Log(tuple(own.values())).proof(index))
    files["unchecked/signature.zip"], files["unchecked/quorum.zip"] = unchecked(
        log, at["acknowledgment"]
    )
    cases = broken(log, at["acknowledgment"]) | odd_and_broken(log, at["acknowledgment"])
    cases |= hosted_and_broken(log, at["acknowledgment"])
    cases |= contradictory(log, at["acknowledgment"])
    cases |= parties_and_broken(log, at["acknowledgment"])
    cases |= {name: case for name, case in ml_dsa(log, at["acknowledgment"]).items() if case[1]}
    for name, (_, _, data) in cases.items():
        files[f"broken/{name}"] = data
    expected = {name: {"change": what, "step": step} for name, (what, step, _) in cases.items()}
    return {**files, "broken/expected.json": _pretty(expected)}


def _pretty(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).encode() + b"\n"


def ml_dsa(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """Dossiers whose checkpoint the log signed by ML-DSA-44 too; a good one has no step.

    Such signatures differ each time: `ml-dsa.line` was made once, by `ml_dsa_line`.
    """
    good, line = alone(log, index), (ROOT / "ml-dsa.line").read_bytes()
    ed25519, second = (f"log {key.vkey}\n".encode() for key in (log_key(), ml_dsa_key().verifier))
    both, second_only = ed25519 + second + b"quorum none\n", second + b"quorum none\n"
    signature = parse_note(b"x\n\n" + line).signatures[0]
    wrong = signature.signature[:-1] + bytes([signature.signature[-1] ^ 1])
    later = signature.signature[:7] + bytes([signature.signature[7] ^ 1]) + signature.signature[8:]

    def made(policy_: bytes, added: bytes) -> bytes:
        return packed(replace(good, proof=good.proof + added, policy=policy_))

    return {
        "ml-dsa.zip": ("", "", made(both, line)),
        "ml-dsa-alone.zip": ("", "", made(second_only, line)),
        "ml-dsa-one-bit.zip": (
            "the ML-DSA-44 signature of the log has one bit changed",
            "signature",
            made(both, signature._replace(signature=wrong).text()),
        ),
        "ml-dsa-other-time.zip": (
            "the time in the ML-DSA-44 signature is another",
            "signature",
            made(both, signature._replace(signature=later).text()),
        ),
        "ml-dsa-missing.zip": (
            "the policy names only the ML-DSA-44 key, and there is no such signature",
            "signature",
            made(second_only, b""),
        ),
    }


def log_key() -> Verifier:
    """The log's key by Ed25519."""
    return Signer.from_seed(ORIGIN, LOG_SEED).verifier


def ml_dsa_key() -> Signer:
    """The log's second key."""
    return Signer.from_seed(ORIGIN, bytes([4]) * 32, MLDSA_COSIGNATURE)


def ml_dsa_line(log: Log) -> bytes:
    """A signature line by the second key."""
    return ml_dsa_key().sign(parse_note(log.checkpoint()).text, COSIGNED_AT)


def stamps(*names: str) -> dict[str, bytes]:
    """Time-stamps of `timestamps/`, by their names in a dossier."""
    return {f"timestamps/{n}.tsr": (ROOT / "timestamps" / f"{n}.tsr").read_bytes() for n in names}


def vkey(name: str, kind: int, key: bytes, key_id: str | None = None) -> str:
    """A verifier key of any kind, also with an id that is made in another way."""
    made = Verifier(name, kind, key)
    return made.vkey if key_id is None else made.vkey.replace(made.key_id.hex(), key_id)


def changed(log: Log, index: int, **members: object) -> Alone:
    """The dossier of another record, sealed in good order; None leaves a member out."""
    record = {**json.loads(log.records[index]), **members}
    return sealed(log, index, canonical_json({n: v for n, v in record.items() if v is not None}))


def sealed(log: Log, index: int, record: bytes) -> Alone:
    """The dossier of this record in the place of the acknowledgment."""
    other = replace(log, records=(*log.records[:index], record, *log.records[index + 1 :]))
    return alone(other, index)


def hosted(log: Log, index: int, record: bytes, disclosures: Sequence[str]) -> bytes:
    """The dossier of a hosted acknowledgment, of the same notice."""
    return packed(replace(sealed(log, index, record), disclosures=tuple(disclosures)))


def hosted_and_good(log: Log, index: int) -> dict[str, bytes]:
    """A hosted acknowledgment, and the same with its process withheld."""
    record = (HOSTED / "record.json").read_bytes()
    shown = json.loads((HOSTED / "disclosures.json").read_bytes())
    return {
        "hosted.zip": hosted(log, index, record, shown),
        "hosted-withheld.zip": hosted(log, index, record, shown[:-1]),
    }


def hosted_and_broken(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """What the vectors of the record format break in a process; as `broken`."""
    cases = {}
    for path in sorted((RECORDS / "broken").glob("process-*.json")):
        case = json.loads(path.read_bytes())
        step = "notice" if case["findings"] == ["process_lines_mismatch"] else "disclosures"
        data = hosted(log, index, b64decode(case["record_base64"]), case["disclosures"])
        cases[f"{path.stem}.zip"] = (case["change"], step, data)
    return cases


def parties_and_good(log: Log, index: int) -> dict[str, bytes]:
    """The acknowledgments of version 2."""
    return {f"{name}.zip": hosted(log, index, *_parties(name)) for name in PARTIES}


def _parties(name: str) -> tuple[bytes, list[str]]:
    folder = RECORDS / "good" / name
    shown: list[str] = json.loads((folder / "disclosures.json").read_bytes())
    return (folder / "record.json").read_bytes(), shown


def parties_and_broken(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """Records that do not bind or describe their parties; as `broken`."""
    by_vendor, by_page = (json.loads(_parties(n)[0]) for n in ("parties", "parties-hosted"))
    facts_ = {name: json.loads(record) for name, record in (facts() | with_parties()).items()}

    def unshown(record: dict[str, Json]) -> bytes:
        return packed(replace(sealed(log, index, canonical_json(record)), disclosures=()))

    def without(record: dict[str, Json], name: str) -> dict[str, Json]:
        return {n: value for n, value in record.items() if n != name}

    def fact(name: str, /, **members: Json) -> dict[str, Json]:
        return {**facts_[name], **members}

    upper = {**by_vendor, "account_record": by_vendor["account_record"].upper()}
    extra = {**by_page, "capture_process": None}
    others = {
        "version-3": ("a version that is unknown", {**by_vendor, "v": 3}),
        "no-operator-record": (
            "version 2 without the operator's record",
            without(by_vendor, "operator_record"),
        ),
        "no-account-record": (
            "a hosted one of version 2 without the account's record",
            without(by_page, "account_record"),
        ),
        "no-capture-process": (
            "version 2 by the vendor without its capture process",
            without(by_vendor, "capture_process"),
        ),
        "hosted-capture-process": ("a hosted one with a capture process of the vendor", extra),
        "digest-upper-case": ("a digest with capital letters", upper),
        "digest-newline": (
            "a newline after a digest",
            {**by_vendor, "operator_record": by_vendor["operator_record"] + "\n"},
        ),
    }
    alone = {
        "erasure-2": ("version 2 of a type that has none", fact("erasure", v=2)),
        "operator-2": ("version 2 of the operator's record", fact("operator", v=2)),
        "clearance-2-no-account": (
            "version 2 of a clearance without the account's record",
            without(facts_["clearance-2"], "account_record"),
        ),
        "fulfilment-2-number": ("a number as a digest", fact("fulfilment-2", operator_record=1)),
        "operator-no-previous": (
            "an operator's record that does not say what it follows",
            without(facts_["operator"], "previous"),
        ),
        "operator-no-contact": (
            "an operator's record without a member that may be null",
            without(facts_["operator"], "contact"),
        ),
        "account-name": ("an account's record without its name", fact("account", name=None)),
        "capture-version": ("version 0 of a statement", fact("capture_process", version=0)),
        "capture-version-true": (
            "a boolean as the version of a statement",
            fact("capture_process", version=True),
        ),
        "capture-statement": (
            "a statement that is no string",
            fact("capture_process", statement=["a"]),
        ),
    }
    proofs = {
        f"parties-{name}.tlog-proof": (
            what,
            "record",
            format_proof(Log((*log.records, canonical_json(record))).proof(len(log.records))),
        )
        for name, (what, record) in alone.items()
    }
    zips = {
        f"parties-{name}.zip": (what, "record", unshown(record))
        for name, (what, record) in others.items()
    }
    return zips | proofs


def disclosing(log: Log, index: int, text: bytes) -> Alone:
    """The dossier of a record that binds one disclosure, of this JSON text."""
    encoded = b64url(text)
    digest = b64url(sha256(encoded.encode()).digest())
    return replace(changed(log, index, _sd=[digest]), disclosures=(encoded,))


def about(log: Log, index: int, notice: dict[str, Json]) -> Alone:
    """The dossier of a record about another notice."""
    body = canonical_json(notice)
    lines = msgspec.json.decode(bullet_digests([(b["id"], b["text"]) for b in notice["bullets"]]))
    made = changed(log, index, notice_digest=sha256(body).hexdigest(), bullets=lines)
    return replace(made, notice=body, disclosures=())


def odd_and_good(log: Log, index: int) -> dict[str, bytes]:
    """What readers are known to judge differently, and have to accept."""
    good = alone(log, index)
    kinds = (
        f"log {vkey('rekor.example.com', 2, bytes(91), 'c0d23d6a')}\n"
        f"log {vkey('cosigning.example.com', 4, _witness().public_key)}\n"
        f"log {vkey('no-point.example.com', 1, (2).to_bytes(32, 'little'))}\n"
        f"witness pq {vkey('pq.example.com', 6, bytes(1312))}\n"
    )
    return {
        "stamped.zip": packed(replace(good, timestamps=stamps("sha256", "sha384", "sha512"))),
        "other-kinds.zip": packed(
            replace(good, policy=f"# kinds that nobody needs\n{kinds}".encode() + policy())
        ),
        "disclosure-spaced.zip": packed(
            disclosing(
                log, index, b'[ "c2FsdA" , "b", {"a": ' + b"[" * 63 + b"-1" + b"]" * 63 + b"}]"
            )
        ),
    }


def unchecked(log: Log, index: int) -> tuple[bytes, bytes]:
    """Dossiers that rest on a signature of kind 200: by the log, and by a witness."""
    good, key = alone(log, index), Verifier("k", 200, b"of a kind to come")
    made = []
    for name, lines in (
        (ORIGIN, "log {}\nquorum none\n"),
        (
            "new.example.com",
            f"log {Signer.from_seed(ORIGIN, LOG_SEED).verifier.vkey}\nwitness n {{}}\nquorum n\n",
        ),
    ):
        new = Verifier(name, key.kind, key.public_key)
        signature = b64encode(new.key_id + bytes(64)).decode()
        proof = good.proof + f"\u2014 {name} {signature}\n".encode()
        made.append(packed(replace(good, proof=proof, policy=lines.format(new.vkey).encode())))
    return made[0], made[1]


ODD_ID = "ack_01m7xdxbmvex7t29vh2x05yyyq"


def odd(log: Log, index: int) -> dict[str, tuple[list[str], bytes]]:
    """Dossiers that verify, and what a reader has to name in each, in the words of this release."""
    hosted_record = json.loads((HOSTED / "record.json").read_bytes())
    hosted_shown = json.loads((HOSTED / "disclosures.json").read_bytes())
    hosted_id, later = hosted_record["id"], "after its acceptance"
    unknown, earlier = "that this reader does not know", "2026-01-02T21:31:00.123Z"
    apart, next_ms = -322 * 86_400_000, "2026-11-20T21:31:00.124Z"
    notice = json.loads(alone(log, index).notice)
    by_key = canonical_json({**hosted_record, "credential": "secret_key"})
    clocked = {**hosted_record, "test_clock": "2026-11-20T21:00:00.000Z"}

    def initials(*typed: str) -> bytes:
        disclosed = canonical_json(["c2FsdA", "initials_per_line", list(typed)])
        return packed(disclosing(log, index, disclosed))

    def shown(name: str, value: Json) -> bytes:
        return packed(disclosing(log, index, canonical_json(["c2FsdA", name, value])))

    ip: dict[str, Json] = dict.fromkeys(("ip", "source", "peer_ip", "forwarded"))
    return {
        "initials-to-be-seen.zip": (
            [],
            initials("J\u0301", "\U0001f44b\U0001f3fb", "J" * 32, " \u200b-"),
        ),
        "accepted-at-elsewhere.zip": (
            [f"accepted_at of {ODD_ID} is {earlier}, {apart} ms from the time in its identifier"],
            packed(changed(log, index, accepted_at=earlier)),
        ),
        "accepted-at-one-millisecond.zip": (
            [
                f"accepted_at of {ODD_ID} is {next_ms}, 1 ms from the time in its identifier",
            ],
            packed(changed(log, index, accepted_at=next_ms)),
        ),
        "unknown-members.zip": (
            [f"{ODD_ID} has a member {unknown}: {name}" for name in ("10", "2", "more")],
            packed(changed(log, index, more=[{"v": 1}], **{"10": 1, "2": 1})),
        ),
        "unknown-disclosure.zip": (
            [f"{ODD_ID} has a disclosure {unknown}: favourite"],
            shown("favourite", {"colour": "red"}),
        ),
        "unknown-inside.zip": (
            [f"{ODD_ID} has a member {unknown}: ip.port"],
            shown("ip", {**ip, "truncated": False, "port": 443}),
        ),
        "two-clients.zip": (
            [f"{ODD_ID}: initials and agreement came from two clients"],
            shown("ip", {**ip, "truncated": False, "initials_from": ["203.0.113.9", None]}),
        ),
        "unknown-of-notice.zip": (
            [
                f"the notice has a member {unknown}: bullets.more",
                f"the notice has a member {unknown}: extra",
            ],
            packed(
                about(
                    log,
                    index,
                    {
                        **notice,
                        "bullets": [{**one, "more": 1} for one in notice["bullets"]],
                        "extra": None,
                    },
                )
            ),
        ),
        "hosted-by-secret-key.zip": (
            [f"{hosted_id} is captured by hosted, with a secret_key"],
            hosted(log, index, by_key, hosted_shown),
        ),
        "process-after-acceptance.zip": (
            [f"{hosted_id} has a time in its process that is {later}"],
            hosted(log, index, canonical_json(clocked), hosted_shown),
        ),
        "process-by-vendor.zip": (
            [f"{hosted_id} is captured by vendor_api, and has a process"],
            hosted(
                log,
                index,
                canonical_json(
                    {**hosted_record, "capture": "vendor_api", "credential": "secret_key"}
                ),
                hosted_shown,
            ),
        ),
    }


def contradictory(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """Words and times that there are not, and values of wrong types; as `broken`."""
    records: dict[str, tuple[str, dict[str, Json]]] = {
        "capture-unknown": ("captured in a way that there is not", {"capture": "attested"}),
        "credential-unknown": ("a credential that there is not", {"credential": "passport"}),
        "accepted-at-month-13": ("a month 13", {"accepted_at": "2026-13-01T00:00:00.000Z"}),
        "accepted-at-february-30": (
            "a 30th of February",
            {"accepted_at": "2026-02-30T00:00:00.000Z"},
        ),
        "accepted-at-february-29": (
            "a 29th of February in a year without",
            {"accepted_at": "2100-02-29T00:00:00.000Z"},
        ),
        "accepted-at-second-60": ("a second 60", {"accepted_at": "2026-06-30T23:59:60.000Z"}),
        "accepted-at-hour-24": ("an hour 24", {"accepted_at": "2026-06-30T24:00:00.000Z"}),
        "test-clock-form": ("a test clock that is no time", {"test_clock": "tomorrow"}),
    }
    address: Json = {"ip": None, "source": None, "peer_ip": None, "forwarded": None}
    values: dict[str, tuple[str, str, Json]] = {
        "cbid-number": ("a number as the buyer", "cbid", 7),
        "session-id-array": ("an array as the session", "session_id", ["sess_8c1f"]),
        "ip-text": ("a string as all about the address", "ip", "203.0.113.7"),
        "ip-lacks-truncated": ("the address without a member", "ip", address),
        "user-agent-null": ("null as all about the user agent", "user_agent", None),
    }
    found = {
        f"{name}.zip": (what, "record", packed(changed(log, index, **members)))
        for name, (what, members) in records.items()
    }
    for name, (what, member, value) in values.items():
        text = canonical_json(["c2FsdA", member, value])
        found[f"{name}.zip"] = (
            what,
            "disclosures",
            packed(disclosing(log, index, text)),
        )
    for path in sorted((RECORDS / "broken").glob("initials-*.json")):
        case = json.loads(path.read_bytes())
        data = hosted(log, index, b64decode(case["record_base64"]), case["disclosures"])
        found[f"{path.stem}.zip"] = (case["change"], "notice", data)
    return found


def odd_and_broken(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """What readers are known to judge differently, and have to refuse; as `broken`."""
    good = alone(log, index)
    notice = json.loads(good.notice)
    log_line = f"log {Signer.from_seed(ORIGIN, LOG_SEED).verifier.vkey}\n"
    files = read_container(packed(good))
    spaced = {**files, good.name("disclosures.json"): b"[ ]"}
    rights = packed(good)
    epoch = replace(log, origin=ORIGIN[:-1] + "02")
    signer = Signer.from_seed(epoch.origin, LOG_SEED).verifier.vkey
    of_epoch = alone(epoch, index)
    other_id = vkey("a.example.com", 1, _witness().public_key, "00000000")
    first, _, rest = format_proof(log.proof(index)).split(b"\n", 2)
    no_extra = first + b"\n" + rest

    def disclosed(text: bytes) -> bytes:
        return packed(disclosing(log, index, text))

    def initials(*typed: object) -> bytes:
        return disclosed(canonical_json(["c2FsdA", "initials_per_line", list(typed)]))

    def by(text: str) -> bytes:
        return packed(replace(good, policy=text.encode()))

    def resummed(changes: dict[str, bytes]) -> bytes:
        kept = {n: d for n, d in changes.items() if n != SUMS}
        return write_container({**kept, SUMS: sums(kept)})

    return {
        "rights.zip": (
            "rights 0644 without the type of a file",
            "container",
            rights.replace(
                (0o100644 << 16).to_bytes(4, "little"), (0o644 << 16).to_bytes(4, "little")
            ),
        ),
        "disclosures-spaced.zip": (
            "disclosures.json is not canonical JSON",
            "container",
            resummed(spaced),
        ),
        "no-extra.zip": (
            "the proof does not hold the record",
            "container",
            resummed({**files, good.name("tlog-proof"): no_extra}),
        ),
        "stamp-name.zip": (
            "a time-stamp has a name with a space",
            "container",
            packed(replace(good, timestamps={"timestamps/a b.tsr": b""})),
        ),
        "policy-no-newline.zip": (
            "the last line of policy.txt has no newline",
            "container",
            by(policy().decode().removesuffix("\n")),
        ),
        "policy-small-order.zip": (
            "a key by which anyone can sign",
            "container",
            by(f"log {vkey('weak.example.com', 1, bytes(32))}\n{policy().decode()}"),
        ),
        "policy-key-id.zip": (
            "the id of an Ed25519 key is another",
            "container",
            by(f"log {other_id}\n{log_line}quorum none\n"),
        ),
        "sd-missing.zip": (
            "a record without _sd",
            "record",
            packed(changed(log, index, _sd=None)),
        ),
        "accepted-at-missing.zip": (
            "a record that does not say when it was accepted",
            "record",
            packed(changed(log, index, accepted_at=None)),
        ),
        "epoch-leading-zero.zip": (
            "an origin whose epoch has a leading zero",
            "record",
            packed(replace(of_epoch, policy=f"log {signer}\nquorum none\n".encode())),
        ),
        "sd-alg.zip": (
            "another algorithm of digests",
            "disclosures",
            packed(changed(log, index, _sd_alg="sha-512")),
        ),
        "disclosure-member-twice.zip": (
            "a member that is there twice",
            "disclosures",
            disclosed(b'["c2FsdA","b",{"a":1,"a":2}]'),
        ),
        "disclosure-minus-zero.zip": (
            "the number -0",
            "disclosures",
            disclosed(b'["c2FsdA","b",-0]'),
        ),
        "disclosure-of-65.zip": (
            "65 arrays in each other",
            "disclosures",
            disclosed(b'["c2FsdA","b",' + b"[" * 65 + b"]" * 65 + b"]"),
        ),
        "initials-null.zip": (
            "an entry of initials that is no string",
            "disclosures",
            initials("JD", None, "JD", "JD"),
        ),
        "initials-too-few.zip": (
            "one entry of initials for four lines",
            "notice",
            initials("JD"),
        ),
        "initials-too-many.zip": (
            "five entries of initials for four lines",
            "notice",
            initials(*["JD"] * 5),
        ),
        "notice-no-lines.zip": (
            "a notice without lines",
            "notice",
            packed(about(log, index, {**notice, "bullets": []})),
        ),
        "notice-no-title.zip": (
            "a notice without a title",
            "notice",
            packed(about(log, index, {n: v for n, v in notice.items() if n != "title"})),
        ),
        "notice-version.zip": (
            "a notice of another version than the record says",
            "notice",
            packed(changed(log, index, notice_version="2027-01-01")),
        ),
        "stamp-other.zip": (
            "a time-stamp over something else",
            "timestamps",
            packed(replace(good, timestamps=stamps("other"))),
        ),
        "stamp-none.zip": (
            "a file that is no time-stamp",
            "timestamps",
            packed(replace(good, timestamps={"timestamps/1.tsr": b"0\x03\x02\x01\x00"})),
        ),
    }


def broken(log: Log, index: int) -> dict[str, tuple[str, str, bytes]]:
    """By name of the file: what was changed, the step that has to fail, and the bytes."""
    proof, good = log.proof(index), alone(log, index)
    text = format_proof(proof)
    path = proof.path
    forged = Log(log.records, seed=OTHER_SEED)
    rewritten = Log((b"another record", *log.records[1:]))
    unknown = replace(proof, extra=log.records[-1])

    def proved(change: Proof) -> bytes:
        return format_proof(change)

    files = read_container(packed(good))

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
        "longer.zip": ("a byte after the end", "container", packed(good) + b"\n"),
        "cut.zip": ("the last byte is missing", "container", packed(good)[:-1]),
        "other-order.zip": (
            "the same files in another order",
            "container",
            write_container(dict(reversed(files.items()))),
        ),
        "more-files.zip": (
            "a file that no dossier holds",
            "container",
            write_container({"more.txt": b"", **files}),
        ),
        "record-other.zip": (
            "the file of the record is not the record that the proof holds",
            "record",
            packed(replace(good, record=good.record.replace(b"21:31:00", b"21:31:01"))),
        ),
        "fact.zip": (
            "an erasure as the acknowledgment",
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
            "another PDF, and SHA256SUMS as it was",
            "files",
            resummed("dossier.pdf", b"%PDF-1.7 another\n", summed=False),
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
