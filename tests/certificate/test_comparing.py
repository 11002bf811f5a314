"""A certificate in a bundle is made again and compared, if this release made it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.acknowledgments.certificate import compare_certificate, make_certificate, readme
from countersign.acknowledgments.certificate_facts import CertificateFacts, Review
from countersign.evidence.bundle import GUIDE
from countersign.evidence.checkpoint import cosigned_at
from countersign.evidence.errors import EvidenceError
from tests.certificate.facts import notice_bytes, party
from tests.offline import builder
from tests.support.service import Deployment

AT = datetime(2026, 11, 20, 21, 31, 1, 123456, tzinfo=UTC)


def of(evidence: builder.Material) -> CertificateFacts:
    """What the service makes a certificate of this evidence from."""
    return CertificateFacts(
        record=evidence.record,
        parties=(),
        shown=tuple(evidence.disclosures),
        erased_at=None,
        notice=evidence.notice,
        review=Review(by="Counsel", against="https://example.com/law", at=AT),
        account_name="My shop",
        proof=evidence.proof(),
        origin=evidence.origin,
        index=evidence.index,
        size=evidence.size,
        root=builder.tree_root(evidence._leaves()),
        checkpoint_at=AT,
        key_fingerprint=sha256(builder.public_key(builder.LOG_SEED)).hexdigest(),
        witnesses=((builder.WITNESS, cosigned_at(builder.COSIGNED_AT)),),
        timestamps=(),
        verify_url="https://log.example/verify",
    )


def evidence() -> builder.Material:
    """Good evidence about a notice with all members that the service writes."""
    notice = notice_bytes(list(zip("AB", builder.LINES, strict=True)))
    record = builder.material(notice_digest=sha256(notice).hexdigest()).record
    return replace(builder.material(), record=record, extra=record, notice=notice)


FACTS = of(evidence())
SOUND = replace(evidence(), certificate=make_certificate(FACTS), readme=readme(FACTS))
OF_ANOTHER = replace(SOUND, certificate=make_certificate(replace(FACTS, account_name="Another")))


def test_the_certificate_of_this_release_is_made_again() -> None:
    """And what it says besides the evidence is shown as the operator's word."""
    said = compare_certificate(SOUND.bundle(), 1)
    assert said.startswith("certificate.pdf is the one that this release makes. ")
    assert '"account_name":"My shop"' in said


def test_another_certificate_fails(tmp_path: Path) -> None:
    """At the last step, though SHA256SUMS agrees with it."""
    with pytest.raises(EvidenceError, match=r"certificate\.pdf differs"):
        compare_certificate(OF_ANOTHER.bundle(), 1)
    (tmp_path / "bundle.zip").write_bytes(OF_ANOTHER.bundle())
    nothing = Deployment(data_dir=tmp_path / "none")
    done = nothing.run("verify", str(tmp_path / "bundle.zip"), "--own-key", check=False)
    assert (done.returncode, done.stdout[:26]) == (1, "FAILED at step 9 (files): ")


def test_facts_that_make_no_certificate_fail() -> None:
    """Of this release there is none whose facts cannot be read."""
    broken = replace(SOUND, readme=SOUND.readme.replace(b"checkpoint_at", b"checkpoint-at"))
    with pytest.raises(EvidenceError, match="cannot be made again"):
        compare_certificate(broken.bundle(), 1)


@pytest.mark.parametrize(
    "changed", [GUIDE, SOUND.readme.replace(b"Countersign 0", b"Countersign 1")]
)
def test_the_certificate_of_another_release_is_not_compared(changed: bytes) -> None:
    """Its bytes may differ for good reasons: that is said, and is no failure."""
    other = replace(OF_ANOTHER, readme=changed)
    assert compare_certificate(other.bundle(), 1).startswith("certificate.pdf was not compared")


OVER = replace(SOUND, cosigners=()).note()
"""What a time-stamp of it is over."""


def doctored(**told: object) -> builder.Material:
    """What anyone can make of a bundle, without a key: README.txt says more, the PDF too."""
    facts = replace(FACTS, **told)  # type: ignore[arg-type]
    return replace(SOUND, certificate=make_certificate(facts), readme=readme(facts))


@pytest.mark.parametrize(
    ("stamps", "named"),
    [
        ([], [("https://tsa.example", AT)]),
        ([], [("https://tsa.example", None)]),
        ([builder.stamp(sha256(OVER).digest())], [("https://tsa.example", AT)]),
        ([builder.stamp(sha256(OVER).digest())], []),
    ],
)
def test_a_certificate_of_other_time_stamps_than_the_bundle_has_fails(
    stamps: list[bytes], named: list[tuple[str, datetime | None]]
) -> None:
    """Another number of them, or another time."""
    made = doctored(timestamps=tuple(named))
    made = replace(made, timestamps={f"timestamps/{n}.tsr": s for n, s in enumerate(stamps)})
    with pytest.raises(EvidenceError, match=r"certificate\.pdf differs"):
        compare_certificate(made.bundle(), 1)


def test_the_certificate_may_name_the_time_stamps_of_the_bundle() -> None:
    """With the time in the token."""
    token = builder.stamp(sha256(OVER).digest(), time=b"20261120213101.5Z")
    made = replace(
        doctored(timestamps=(("https://tsa.example", AT),)), timestamps={"timestamps/1.tsr": token}
    )
    assert compare_certificate(made.bundle(), 1).startswith(
        "certificate.pdf is the one that this release"
    )


def test_a_certificate_of_parties_that_the_record_does_not_name_fails() -> None:
    """Anyone can write such a record; the acknowledgment has the digests of its own."""
    made = doctored(parties=(party("operator", legal_name="Another"),))
    with pytest.raises(EvidenceError, match=r"certificate\.pdf differs"):
        compare_certificate(made.bundle(), 1)


def test_cosignatures_that_no_one_checked_are_named() -> None:
    """Anyone can add a line to a checkpoint; readers pass over it, and the certificate names it."""
    said = compare_certificate(SOUND.bundle(), 0)
    assert "but 1 of the cosignatures that it names were not checked" in said


def test_a_readme_at_no_date_makes_no_certificate() -> None:
    """Whatever it says, it is a failure and no traceback."""
    early = SOUND.readme.replace(b'"2026-11-20T21:31:01', b'"0001-01-01T00:00:01', 1)
    early = early.replace(b'123456Z"', b'123456+14:00"', 1)
    with pytest.raises(EvidenceError, match="cannot be made again"):
        compare_certificate(replace(SOUND, readme=early).bundle(), 1)


def test_a_readme_of_much_text_is_not_laid_out() -> None:
    """It would take gigabytes: readers of evidence stay small."""
    long = SOUND.readme.replace(b"My shop", b"My shop " * 1_000_000)
    said = compare_certificate(replace(SOUND, readme=long).bundle(), 1)
    assert said == "certificate.pdf was not compared: it has too much text"
