"""Nothing leaves as evidence unless it verifies, whatever was done to the database."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
import pytest

from countersign_evidence.verification import verify_file
from tests.cli.tampering import tamper
from tests.http.backstage import another_deployment
from tests.sealing.acts import acknowledge, get
from tests.support.service import Deployment, running_server

FILES = ("proof", "certificate", "dossier")
# The change, and which of the three files can no longer be handed out.
DONE = {
    "record changed": (
        (
            "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), 'vendor_api', 'vendor_apj')"
            " AS BLOB) WHERE id = :ours"
        ),
        FILES,
    ),
    "record is no JSON": ("UPDATE records SET body = x'ff' WHERE id = :ours", FILES),
    "record as text": ("UPDATE records SET body = CAST(body AS TEXT) WHERE id = :ours", FILES),
    "digest of the entry changed": (
        "UPDATE log_entries SET digest = zeroblob(32) WHERE record_id <> :ours",
        FILES,
    ),
    "checkpoint signed by nobody": (
        "UPDATE checkpoints SET note = CAST(replace(CAST(note AS TEXT), ' ', '  ') AS BLOB)",
        FILES,
    ),
    "checkpoint of another size": (
        (
            "UPDATE checkpoints SET note = (SELECT note FROM checkpoints c WHERE c.size ="
            " (SELECT max(size) FROM checkpoints d WHERE d.log_id = c.log_id)"
            " AND c.log_id = checkpoints.log_id)"
        ),
        FILES,
    ),
    "entry of another deleted": ("DELETE FROM log_entries WHERE record_id <> :ours", FILES),
    "notice changed": (
        (
            "UPDATE notice_versions SET body = CAST(replace(CAST(body AS TEXT), 'three', 'four')"
            " AS BLOB)"
        ),
        FILES[1:],
    ),
    "disclosures damaged": (
        "UPDATE disclosures SET payload = zeroblob(200) WHERE record_id = :ours",
        FILES[1:],
    ),
    "disclosures as text": (
        "UPDATE disclosures SET payload = 'abc' WHERE record_id = :ours",
        FILES[1:],
    ),
    "disclosures of another": (
        (
            "UPDATE disclosures SET payload = (SELECT payload FROM disclosures WHERE record_id <>"
            " :ours) WHERE record_id = :ours"
        ),
        FILES[1:],
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Deployment, str, str]:
    """Give a deployment with two acknowledgments, the first of them, and a key."""
    made = another_deployment(tmp_path_factory.mktemp("sound") / "data")
    key = made.key(made.account("vendor"))
    with running_server(made) as server, server.client(key) as client:
        first = acknowledge(client)
        assert verify_file(get(client, first, "dossier")).ok
        acknowledge(client)
        get(client, acknowledge(client), "proof")
    return made, first, key


@pytest.fixture
def place(sound: tuple[Deployment, str, str], tmp_path: Path) -> Deployment:
    """Give a copy of it, to be damaged."""
    shutil.copytree(sound[0].data_dir, tmp_path / "data")
    return Deployment(data_dir=tmp_path / "data", settings=sound[0].settings)


def code(answer: httpx2.Response) -> str:
    found: str = answer.json()["error"]["code"]
    return found


@pytest.mark.parametrize("what", DONE)
def test_invalid_evidence_is_not_returned(
    place: Deployment, sound: tuple[Deployment, str, str], what: str
) -> None:
    """A refusal with a code of its own, and the reason in the operator's log; never a 500."""
    statement, refused = DONE[what]
    tamper(place, statement)
    with running_server(place) as server, server.client(sound[2]) as client:
        for file in FILES:
            answer = client.get(f"/v1/acknowledgments/{sound[1]}/{file}")
            if file in refused:
                # A missing entry looks as if it was still to come.
                gone = what == "entry of another deleted" and file != "proof"
                expected = "evidence_pending" if gone else "evidence_damaged"
                assert (answer.status_code, code(answer)) == (409, expected), file
            else:
                assert answer.status_code == 200, file
        one, several = (client.get(f"/v1/acknowledgments{path}") for path in (f"/{sound[1]}", ""))
        # If the record itself is invalid, there is nothing to list.
        spoilt = {
            "record changed": (one, several),
            "record is no JSON": (one, several),
            "record as text": (one, several),
            "disclosures damaged": (one,),
            "disclosures as text": (one,),
            "disclosures of another": (one,),
        }.get(what, ())
        for read in (one, several):
            wanted = (409, "evidence_damaged") if read in spoilt else (200, None)
            assert (read.status_code, read.json().get("error", {}).get("code")) == wanted
        if several not in spoilt:
            unreadable = [item["ack_id"] for item in several.json()["data"] if "unreadable" in item]
            assert unreadable == ([sound[1]] if spoilt else [])
    assert '"evidence_damaged"' in server.log.read_text()
