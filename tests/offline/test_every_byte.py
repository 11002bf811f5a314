"""No byte of a bundle can be changed without being noticed, by the step that it belongs to."""

from dataclasses import replace
from functools import cache

import pytest

from countersign_evidence.offline import verify
from tests.offline import builder

# Small, and with one signature, so that each byte can have its turn.
MATERIAL = replace(
    builder.material(), policy=f"log {builder.vkey(builder.ORIGIN)}\nquorum none\n", cosigners=()
)
FILES = builder.summed(MATERIAL.files())
# The steps that may notice a change in a file, if the container around it is in order.
NOTICED = {
    "record.json": {"record"},
    "disclosures.json": {"container", "disclosures"},
    "notice.json": {"notice"},
    "proof.tlog-proof": {"container", "signature", "record", "inclusion"},
    "policy.txt": {"container", "signature", "quorum", "files"},
}


@pytest.fixture(autouse=True)
def _signatures_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same signature over the same bytes is checked once: it is arithmetic, and slow."""
    monkeypatch.setattr(verify, "ed25519_verify", cache(verify.ed25519_verify))


def test_every_byte_of_the_container_counts() -> None:
    """Any byte of the ZIP file: the bundle is not read."""
    bundle = bytearray(MATERIAL.bundle())
    assert verify.verify_bytes(bytes(bundle)).ok
    for position in range(len(bundle)):
        bundle[position] ^= 1
        failed = verify.verify_bytes(bytes(bundle)).failed
        bundle[position] ^= 1
        assert failed is not None, position
        assert failed.name == "container", position


@pytest.mark.parametrize("name", FILES)
def test_every_byte_of_every_file_counts(name: str) -> None:
    """Packed again around a changed file, the bundle fails at a step that says what is wrong."""
    allowed = NOTICED.get(name, {"files"})
    for position in range(len(FILES[name])):
        changed = bytearray(FILES[name])
        changed[position] ^= 1 << position % 8
        failed = verify.verify_bytes(builder.zipped({**FILES, name: bytes(changed)})).failed
        assert failed is not None, position
        assert failed.name in allowed, (position, failed)


@pytest.mark.parametrize(
    "name", ["record.json", "disclosures.json", "notice.json", "proof.tlog-proof"]
)
def test_a_forger_gains_nothing_by_writing_the_sums_again(name: str) -> None:
    """SHA256SUMS agrees with the changed file, and the steps before it notice it all the same."""
    for position in range(0, len(FILES[name]), 7):
        changed = bytearray(FILES[name])
        changed[position] ^= 1
        files = builder.summed({**MATERIAL.files(), name: bytes(changed)})
        failed = verify.verify_bytes(builder.zipped(files)).failed
        assert failed is not None, position
        assert failed.name in NOTICED[name], (position, failed)
