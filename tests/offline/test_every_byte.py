"""No byte of a dossier can be changed without being noticed, by the step that it belongs to.

`make test` changes every third, CI each.
"""

from dataclasses import replace
from functools import cache

import pytest

from countersign_evidence.offline import verify
from tests.offline import builder
from tests.support.depth import some

# Small, and with one signature, so that every byte can be tried.
MATERIAL = replace(
    builder.material(), policy=f"log {builder.vkey(builder.ORIGIN)}\nquorum none\n", cosigners=()
)
FILES = builder.summed(MATERIAL.files())
# The steps that may notice a change in a file, if the container around it is in order.
NOTICED = {
    builder.RECORD: {"record"},
    builder.DISCLOSURES: {"container", "disclosures"},
    "notice.json": {"notice"},
    builder.PROOF: {"container", "signature", "record", "inclusion"},
    "policy.txt": {"container", "signature", "quorum", "files"},
}


@pytest.fixture(autouse=True)
def _signatures_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same signature over the same bytes is checked once: it is arithmetic, and slow."""
    monkeypatch.setattr(verify, "ed25519_verify", cache(verify.ed25519_verify))


def test_every_byte_of_the_container_counts() -> None:
    """Any byte of the ZIP file: the dossier is not read."""
    dossier = bytearray(MATERIAL.dossier())
    assert verify.verify_bytes(bytes(dossier)).ok
    for position in some(range(len(dossier))):
        dossier[position] ^= 1
        failed = verify.verify_bytes(bytes(dossier)).failed
        dossier[position] ^= 1
        assert failed is not None, position
        assert failed.name == "container", position


@pytest.mark.parametrize("name", FILES)
def test_every_byte_of_every_file_counts(name: str) -> None:
    """Packed again around a changed file, the dossier fails at the right step."""
    allowed = NOTICED.get(name, {"files"})
    for position in some(range(len(FILES[name]))):
        changed = bytearray(FILES[name])
        changed[position] ^= 1 << position % 8
        failed = verify.verify_bytes(builder.zipped({**FILES, name: bytes(changed)})).failed
        assert failed is not None, position
        assert failed.name in allowed, (position, failed)


@pytest.mark.parametrize(
    "name", [builder.RECORD, builder.DISCLOSURES, builder.PROOF, "notice.json"]
)
def test_a_forger_gains_nothing_by_recomputing_the_sums(name: str) -> None:
    """SHA256SUMS agrees with the changed file, and the steps before it notice it all the same."""
    for position in some(range(0, len(FILES[name]), 7)):
        changed = bytearray(FILES[name])
        changed[position] ^= 1
        files = builder.summed({**MATERIAL.files(), name: bytes(changed)})
        failed = verify.verify_bytes(builder.zipped(files)).failed
        assert failed is not None, position
        assert failed.name in NOTICED[name], (position, failed)
