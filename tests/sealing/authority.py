"""Time-stamp authorities (RFC 3161) on this machine: OpenSSL's, and pyHanko's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from asn1crypto import keys, pem, tsp, x509


def make_authority(place: Path, days: int = 30, *, rsa: bool = False) -> Path:
    """Make a root, and a certificate for stamping, which end after this many days."""
    (place / "ca.cnf").write_text(
        "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=Test root\n"
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
        "subjectKeyIdentifier=hash\n"
        "[tsa]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=critical,timeStamping\nsubjectKeyIdentifier=hash\n"
        "authorityKeyIdentifier=keyid\n"
        "[tsa1]\nserial=serial\ncrypto_device=builtin\nsigner_digest=sha256\n"
        "default_policy=1.2.3.4.1\ndigests=sha256,sha512\naccuracy=secs:1\n"
        "ess_cert_id_alg=sha256\ntsa_name=no\nordering=no\n"
    )
    (place / "serial").write_text("01\n")
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    lasting = ["-days", str(days)]
    openssl(place, "req", "-x509", *ec, *lasting, "-config", "ca.cnf", "-extensions", "ca",
            "-keyout", "ca.key", "-out", "ca.pem")  # fmt: skip
    kind = ["-newkey", "rsa:2048", "-nodes"] if rsa else ec
    openssl(place, "req", *kind, "-config", "ca.cnf", "-subj", "/CN=Test TSA",
            "-keyout", "tsa.key", "-out", "tsa.csr")  # fmt: skip
    openssl(place, "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-set_serial", "2", *lasting, "-extfile", "ca.cnf", "-extensions", "tsa",
            "-out", "tsa.pem")  # fmt: skip
    return place


def openssl(place: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)


def stamp(place: Path, query: bytes, *options: str) -> bytes:
    (place / "query").write_bytes(query)
    openssl(place, "ts", "-reply", "-config", "ca.cnf", "-section", "tsa1", "-queryfile", "query",
            "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "reply", *options)  # fmt: skip
    return (place / "reply").read_bytes()


def stamp_by_pyhanko(place: Path, query: bytes) -> bytes:
    """The same by another implementation, which signs with RSA alone."""
    _, _, certificate = pem.unarmor((place / "tsa.pem").read_bytes())
    _, _, key = pem.unarmor((place / "tsa.key").read_bytes())
    from pyhanko.sign.timestamps import DummyTimeStamper  # noqa: PLC0415 - half a second
    from pyhanko_certvalidator.registry import SimpleCertificateStore  # noqa: PLC0415

    stamper = DummyTimeStamper(
        x509.Certificate.load(certificate),
        keys.PrivateKeyInfo.load(key),
        SimpleCertificateStore.from_certs(  # type: ignore[no-untyped-call]
            [x509.Certificate.load(certificate)]
        ),
    )
    response: bytes = stamper.request_tsa_response(tsp.TimeStampReq.load(query)).dump()
    return response
