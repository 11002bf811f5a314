"""A certificate names the parties by the records that the acknowledgment binds."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.core.dossiers.dossier import pdf_of
from tests.certificate.reader import words_of
from tests.sealing.acts import acknowledge, get
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long


def test_a_certificate_names_the_parties_as_they_were_described(
    own: Deployment, tmp_path: Path
) -> None:
    """Of that time: a later description changes no certificate; and the command makes it again."""
    account = own.account("vendor")
    statement = tmp_path / "statement.txt"
    statement.write_text("Each line has a field of its own.\n", encoding="utf-8")
    own.run("operator", "describe", "--legal-name", "Operator Example Inc.")
    own.run("accounts", "describe", account, "--legal-name", "Vendor Example LLC")
    own.run("accounts", "capture-process", account, "--statement", str(statement))
    with running_server(own) as server, server.client(own.key(account)) as client:
        ack_id = acknowledge(client)
        own.run("operator", "describe", "--legal-name", "Another Name Inc.")
        made = get(client, ack_id, "dossier")
        assert get(client, ack_id, "certificate") == pdf_of(made)
    words = words_of(pdf_of(made))
    for expected in ("Operator Example Inc.", "Vendor Example LLC", "Each line has a field"):
        assert expected in words, expected
    assert "Another Name" not in words
    (tmp_path / "dossier.zip").write_bytes(made)
    said = own.run("verify", str(tmp_path / "dossier.zip"), "--own-key").stderr
    assert "dossier.pdf is the one that this release makes" in said
