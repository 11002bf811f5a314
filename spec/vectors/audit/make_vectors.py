"""Make the vectors of an exported audit: `python spec/vectors/audit/make_vectors.py`.

A chain of entries, two of whose heads a live log sealed, and the same with one thing broken. Each
is a directory as `countersign audit export --with-chain` writes it. Nothing is drawn at random.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from msgspec.structs import replace

from countersign_evidence.audit import (
    CHAIN,
    FIRST,
    HEADS,
    PROOF_ENDING,
    ChainedEntry,
    Entry,
    entry_digest,
)
from countersign_evidence.canonical import canonical_json
from countersign_evidence.proof import format_proof

ROOT = Path(__file__).parent


def _dossier_vectors() -> ModuleType:
    """The script that makes the vectors of dossiers: its live log is that of here."""
    name = "make_dossier_vectors_for_audits"
    spec = spec_from_file_location(name, ROOT.parent / "dossier" / "make_vectors.py")
    assert spec  # noqa: S101 - it is there
    assert spec.loader  # noqa: S101
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up by name while it is made
    spec.loader.exec_module(module)
    return module


DOSSIER = _dossier_vectors()


def entry(number: int, at: str, action: str = "account_renamed") -> Entry:
    """An act on an account."""
    return Entry(
        id=f"aud_01km9x4v8gen3rr1p6q1s2t3{number:02}",
        at=f"2026-11-28T{at}Z",
        actor="root",
        action=action,
        subject="acct_01km9x4v8gen3rr1p6q1s2t3v4",
        details="{}",
    )


ENTRIES = (
    entry(1, "07:00:00.000", "account_created"),
    entry(2, "07:00:05.000"),
    entry(3, "07:00:04.250"),  # its act took longer
    entry(4, "08:30:00.000"),
    entry(5, "09:10:00.000", "hold_placed"),
)


def chained(entries: Sequence[Entry]) -> list[ChainedEntry]:
    """The entries with their salts, each after the one before it."""
    links, before = [], FIRST
    for number, one in enumerate(entries):
        salt = bytes([number]) * 16
        before = entry_digest(salt, before, one)
        links.append(ChainedEntry(digest=before.hex(), entry=one, salt=salt.hex()))
    return links


def export(
    links: Sequence[ChainedEntry], heads: Sequence[str], kind: str = "audit_head"
) -> dict[str, bytes]:
    """The files of a directory; `heads` are what records of the live log seal, in this order."""
    records = [
        DOSSIER.made(kind, 80 + n, head=head).changed(mode="live") for n, head in enumerate(heads)
    ]
    bodies = (*(record.body for record in records), *DOSSIER.FILLERS)
    log = DOSSIER.LOG.Log(bodies, origin=DOSSIER.LIVE, seed=DOSSIER.LIVE_SEED)
    lines = b"".join(canonical_json(link) + b"\n" for link in links)
    proofs = {
        f"{HEADS}/{record.id}{PROOF_ENDING}": format_proof(log.proof(place))
        for place, record in enumerate(records)
    }
    return {CHAIN: lines, "policy.txt": DOSSIER.live_policy(), **proofs}


def cases() -> dict[str, tuple[str, int, int, dict[str, bytes]]]:
    """What each is, how many findings and remarks a reader has, and the files."""
    links = chained(ENTRIES)
    heads = [links[2].digest, links[3].digest]
    without = chained([one for one in ENTRIES if one is not ENTRIES[1]])
    back = chained([*ENTRIES[:4], entry(5, "07:30:00.000", "hold_placed")])
    changed = [*links]
    changed[1] = replace(links[1], entry=entry(2, "07:00:05.000", "erased"))
    files = export(links, heads)
    moved = {
        name: next(
            data for other, data in files.items() if other.startswith(HEADS) and other != name
        )
        if name.startswith(HEADS)
        else data
        for name, data in files.items()
    }
    return {
        "good": ("the last entry is not sealed yet; the third is late by a second", 0, 1, files),
        "none-sealed": ("no head is there: nothing is shown", 0, 1, export(links, [])),
        "entry-changed": ("an entry has another action", 1, 0, export(changed, heads)),
        "entry-taken-out": ("chained again without an entry", 2, 0, export(without, heads)),
        "dated-back": ("the last entry is an hour earlier", 1, 1, export(back, heads)),
        "cut-off": ("no entries after the first head", 1, 1, export(links[:3], heads)),
        "other-order": ("the later head covers fewer entries", 1, 1, export(links, heads[::-1])),
        "proofs-swapped": ("each proof has the name of the other", 2, 1, moved),
        "not-a-head": ("a record of another type", 1, 1, export(links, heads[:1], "epoch")),
        "not-an-entry": ("a line that is no entry", 1, 0, {**files, CHAIN: b"{}\n"}),
    }


def generated_files() -> dict[str, bytes]:
    """Every file that is made, by its path here."""
    made = cases()
    files = {
        f"{case}/{name}": data for case, (*_, own) in made.items() for name, data in own.items()
    }
    expected = {
        case: {"change": what, "findings": findings, "remarks": remarks}
        for case, (what, findings, remarks, _) in made.items()
    }
    text = json.dumps(expected, indent=2, sort_keys=True)
    return {**files, "expected.json": text.encode() + b"\n"}


def main() -> None:
    """Write the files, and say how many there are."""
    files = generated_files()
    for name, data in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
