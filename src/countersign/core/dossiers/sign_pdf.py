"""`countersign sign-pdf`: the operator's own signature on a copy of a certificate or a dossier."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import click

from countersign.base.cli import A_FILE
from countersign.base.errors import InvalidArgument
from countersign_evidence.cli.files import FILE, written
from countersign_evidence.cli.support import command, say, show
from countersign_evidence.errors import refused_as

_FIELD = "Operator"


@click.command("sign-pdf")
@click.argument("pdf", type=FILE)
@click.option("--key", required=True, type=FILE, help="PKCS#12 file: certificate and its key.")
@click.option("--passphrase-file", type=FILE, help="File with the passphrase of the key.")
@click.option(
    "--output",
    type=A_FILE,
    help="The file to write. Left out: NAME-signed.pdf.",
)
@command
def sign_pdf(pdf: Path, key: Path, passphrase_file: Path | None, output: Path | None) -> None:
    """Sign a copy of a PDF (PAdES baseline B-B, ETSI EN 319 142-1), as its operator.

    The signature is appended: the copy begins with the exact bytes of the PDF, so that `countersign
    verify` still compares it. It adds the word of the certificate's holder, not a proof of the log.
    Needs the extra `pades`.
    """
    target = output or pdf.with_name(f"{pdf.stem}-signed.pdf")
    passphrase = None
    if passphrase_file is not None:
        passphrase = passphrase_file.read_bytes().rstrip(b"\r\n")
    signed = _signed(pdf.read_bytes(), key, passphrase)
    with written(target) as file:
        file.write(signed)
    say("Give the dossier with it: only that can be verified against the log.")
    show({"file": str(target)}, str(target))


def _signed(pdf: bytes, key: Path, passphrase: bytes | None) -> bytes:
    """The PDF with a signature appended. Raises InvalidArgument if PDF or key cannot be used."""
    try:
        from pyhanko.pdf_utils.incremental_writer import (  # noqa: PLC0415 - an optional extra
            IncrementalPdfFileWriter,
        )
        from pyhanko.pdf_utils.misc import PdfError  # noqa: PLC0415
        from pyhanko.sign import PdfSignatureMetadata, SimpleSigner, sign_pdf  # noqa: PLC0415
        from pyhanko.sign.fields import SigSeedSubFilter  # noqa: PLC0415
    except ImportError as error:
        raise InvalidArgument(
            "Signing needs the package pyhanko: install the extra pades."
        ) from error
    # The library has no types here.
    signer = SimpleSigner.load_pkcs12(str(key), passphrase=passphrase)  # type: ignore[no-untyped-call]
    if signer is None:
        raise InvalidArgument(f"{key} is not a PKCS#12 file that opens with this passphrase.")
    how = PdfSignatureMetadata(field_name=_FIELD, subfilter=SigSeedSubFilter.PADES)
    made = BytesIO()
    with refused_as(InvalidArgument, "The PDF cannot be signed", PdfError):
        sign_pdf(IncrementalPdfFileWriter(BytesIO(pdf)), how, signer=signer, output=made)
    return made.getvalue()
