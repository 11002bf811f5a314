"""The operator's signature on a copy of a PDF, appended to its exact bytes."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509.oid import NameOID

from tests.certificate.facts import plain_certificate
from tests.support.service import Deployment


@pytest.fixture
def nothing(tmp_path: Path) -> Deployment:
    """Give the command without a deployment: signing needs none."""
    return Deployment(data_dir=tmp_path / "none")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Give a certificate with its key, and the passphrase in a file next to it."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Evidence Example LLC")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.KeyUsage(True, True, *[False] * 7), critical=True)  # noqa: FBT003
        .sign(private, hashes.SHA256())
    )
    file = tmp_path / "operator.p12"
    sealed = BestAvailableEncryption(b"pass")
    file.write_bytes(
        pkcs12.serialize_key_and_certificates(b"o", private, certificate, None, sealed)
    )
    (tmp_path / "passphrase").write_text("pass\n")
    return file


def sign(
    nothing: Deployment, tmp_path: Path, key: Path, *more: str, passphrase: str = "pass"
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "certificate.pdf").write_bytes(plain_certificate())
    (tmp_path / "passphrase").write_text(f"{passphrase}\n")
    return nothing.run(
        "sign-pdf", str(tmp_path / "certificate.pdf"), "--key", str(key),
        "--passphrase-file", str(tmp_path / "passphrase"), *more, check=False,
    )  # fmt: skip


def test_the_copy_is_signed_and_begins_with_the_compared_bytes(
    nothing: Deployment, tmp_path: Path, key: Path
) -> None:
    from pyhanko.pdf_utils.reader import PdfFileReader  # noqa: PLC0415 - half a second
    from pyhanko.sign.validation import (  # noqa: PLC0415
        SignatureCoverageLevel,
        validate_pdf_signature,
    )
    from pyhanko_certvalidator import ValidationContext  # noqa: PLC0415

    done = sign(nothing, tmp_path, key, "--json")
    signed = tmp_path / "certificate-signed.pdf"
    assert json.loads(done.stdout) == {"file": str(signed)}
    assert signed.read_bytes().startswith((tmp_path / "certificate.pdf").read_bytes())
    with signed.open("rb") as opened:
        (signature,) = PdfFileReader(opened).embedded_signatures
        trusted = ValidationContext(trust_roots=[signature.signer_cert])
        status = validate_pdf_signature(signature, trusted)
        assert (status.intact, status.valid) == (True, True)
        assert status.coverage is SignatureCoverageLevel.ENTIRE_FILE
        assert signature.sig_object["/SubFilter"] == "/ETSI.CAdES.detached"
        assert "Evidence Example LLC" in signature.signer_cert.subject.human_friendly


def test_a_key_that_cannot_be_opened_signs_nothing(
    nothing: Deployment, tmp_path: Path, key: Path
) -> None:
    done = sign(nothing, tmp_path, key, passphrase="wrong")
    assert done.returncode == 1
    assert "is not a PKCS#12 file that opens with this passphrase" in done.stderr
    assert not (tmp_path / "certificate-signed.pdf").exists()


def test_only_a_pdf_is_signed(nothing: Deployment, tmp_path: Path, key: Path) -> None:
    done = nothing.run("sign-pdf", str(key), "--key", str(key), check=False)
    assert done.returncode == 1
