"""Erasing destroys personal data, and every earlier proof stays valid."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from countersign.base.db.engine import sqlite_module
from countersign_evidence.verification import verify_file
from tests.certificate.reader import words_of
from tests.cli.serving import wait_until
from tests.sealing.acts import acknowledge, check, get, policy_of, shown
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long

PLANTED = {
    "session_id": "planted-session-4711",
    "cbid": "cbid_planted_0815",
    "ip": "198.51.100.213",
    "user_agent": "PlantedBrowser/77.7",
}


def files(folder: Path) -> bytes:
    found = []
    for path in filter(Path.is_file, folder.rglob("*")):
        # A server writes its heads into another file, and then renames that.
        with suppress(FileNotFoundError):
            found.append(path.read_bytes())
    return b"\x00".join(found)


def hidden_forms(text: str) -> list[bytes]:
    """How a text could stand in a file: as it is, and in base64 at each of three alignments."""
    found = [text.encode()]
    for shift in range(3):
        encoded = b64encode(b"\x00" * shift + text.encode())
        # Without the characters that depend on the text before and after.
        found.append(encoded[(shift * 8 + 5) // 6 : len(encoded) - 4])
    return [*found, *(form.replace(b"+", b"-").replace(b"/", b"_") for form in found)]


def test_no_file_contains_personal_data(embedded: Deployment) -> None:
    """While the server runs and after: database, write-ahead log, heads, logs."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        ack_id = acknowledge(client, **PLANTED)
        verified = client.post(
            "/v1/buyers/verify",
            json={"test_mode": True, "provider_identity_session_id": "planted-provider-session"},
        )
        assert verified.status_code == 200
        get(client, ack_id, "dossier")
        running = files(embedded.data_dir)
    for seen in (running, files(embedded.data_dir), server.log.read_bytes()):
        for text in (*PLANTED.values(), "planted-provider-session"):
            assert not [form for form in hidden_forms(text) if form in seen], text


def test_erasing_claims_no_more_than_has_left_the_write_ahead_log(embedded: Deployment) -> None:
    """While another process reads, the key stays in the log; a server empties it afterwards."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        ack_id = acknowledge(client, **PLANTED)
        with closing(sqlite_module().connect(embedded.data_dir / "countersign.db")) as reader:
            reader.execute("BEGIN")
            keys = reader.execute("SELECT record_id, key FROM shred_keys").fetchall()
            shred_key = dict(keys)[ack_id]
            done = embedded.run("erase", ack_id, "--yes", "--json")
            assert json.loads(done.stdout)["copies_remain"] is True
            assert "still contains copies" in done.stderr.replace("\n", " ")
            assert embedded.read("vault", "status")["erased_copies_remain"] is True
            assert shred_key in files(embedded.data_dir)
    # The next housekeeping is that of the next start.
    with running_server(embedded):
        wait_until(
            lambda: not embedded.read("vault", "status")["erased_copies_remain"], "an empty log"
        )
        assert shred_key not in files(embedded.data_dir)


def test_an_erased_acknowledgment_keeps_its_record_and_its_proof(own: Deployment) -> None:
    """Personal members are null, a search finds nothing, and the old dossier still verifies."""
    key = own.key(own.account("vendor"))
    with running_server(own) as server, server.client(key) as client:
        ack_id = acknowledge(client, **PLANTED)
        old = get(client, ack_id, "dossier")
        proof = get(client, ack_id, "proof")
        own.run("erase", ack_id, "--yes")
        read = client.get(f"/v1/acknowledgments/{ack_id}").json()
        assert read["erased_at"] is not None
        personal = ("initials_per_line", "session_id", "cbid", "ip", "user_agent", "peer_ip")
        assert [read[name] for name in personal] == [None] * 6
        found = client.get("/v1/acknowledgments", params={"session_id": PLANTED["session_id"]})
        assert found.json()["data"] == []
        assert get(client, ack_id, "proof") == proof
        new = get(client, ack_id, "dossier")
        named = get(client, ack_id, "dossier", "?disclose=session_id")
        words = words_of(get(client, ack_id, "certificate"))
    policy = policy_of(own)
    assert verify_file(old, policy).ok
    for made in (new, named):
        verdict = verify_file(made, policy)
        assert verdict.ok, verdict.line()
        assert shown(verdict) == {}
    assert words.count(f"erased on {read['erased_at'][:10]} ") >= len(personal)
    found_ids = check(own)
    assert found_ids["findings"] == []


def test_erasing_twice_is_harmless(own: Deployment) -> None:
    key = own.key(own.account("vendor"))
    with running_server(own) as server, server.client(key) as client:
        ack_id = acknowledge(client)
    assert own.read("erase", ack_id, "--yes")["records"] == [ack_id]
    assert own.read("erase", ack_id, "--yes")["records"] == []


def test_an_erased_buyer_is_unknown_and_its_acknowledgments_stay(own: Deployment) -> None:
    """Unless their erasure is requested, too."""
    key = own.key(own.account("vendor"))
    body = {"test_mode": True, "provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
    with running_server(own) as server, server.client(key) as client:
        cbid = client.post("/v1/buyers/verify", json=body).json()["cbid"]
        ack_id = acknowledge(client, cbid=cbid)
        own.run("erase", cbid, "--yes")
        assert client.get(f"/v1/buyers/{cbid}/status").status_code == 404
        assert client.get(f"/v1/acknowledgments/{ack_id}").json()["cbid"] == cbid
        client.post("/v1/buyers/verify", json=body)
        own.run("erase", cbid, "--with-acknowledgments", "--yes")
        assert client.get(f"/v1/acknowledgments/{ack_id}").json()["cbid"] is None
    assert check(own)["findings"] == []


@pytest.mark.parametrize("what", ["acknowledgment", "account"])
def test_a_hold_prevents_erasure_until_its_release(own: Deployment, what: str) -> None:
    account = own.account("vendor")
    with running_server(own) as server, server.client(own.key(account)) as client:
        ack_id = acknowledge(client)
    subject = ack_id if what == "acknowledgment" else account
    hold = own.run("holds", "place", subject, "--reason", "case 7").stdout.strip()
    done = own.run("erase", ack_id, "--yes", check=False)
    assert (done.returncode, "on_hold" in done.stderr) == (1, True)
    own.run("holds", "release", hold)
    assert own.read("erase", ack_id, "--yes")["records"] == [ack_id]


def test_a_dry_run_previews_the_erasure_exactly(own: Deployment) -> None:
    """Held data is not in the preview, and refusals are the same."""
    key = own.key(own.account("vendor"))
    body = {"test_mode": True, "provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
    with running_server(own) as server, server.client(key) as client:
        cbid = client.post("/v1/buyers/verify", json=body).json()["cbid"]
        ack_id = acknowledge(client, cbid=cbid)
    own.run("holds", "place", ack_id, "--reason", "case 7")
    on_buyer = own.run("holds", "place", cbid, "--reason", "case 8").stdout.strip()
    for subject in (ack_id, cbid):
        refused = own.run("erase", subject, "--dry-run", check=False)
        assert (refused.returncode, "on_hold" in refused.stderr) == (1, True)
    own.run("holds", "release", on_buyer)
    options = ("erase", cbid, "--with-acknowledgments")
    planned, done = own.read(*options, "--dry-run"), own.read(*options, "--yes")
    assert planned["records"] == done["records"]
    assert planned["kept"] == done["kept"]
    assert ack_id in {kept["record_id"] for kept in done["kept"]}


def test_nothing_is_due_before_its_retention_ends(own: Deployment) -> None:
    """The shipped notice says seven years."""
    key = own.key(own.account("vendor"))
    with running_server(own) as server, server.client(key) as client:
        acknowledge(client)
    assert own.read("retention", "run", "--yes") == {
        "due": [],
        "erased": [],
        "requested": [],
        "failed": [],
    }


@pytest.mark.parametrize("subject", ["ack_00000000000000000000000000", "nonsense", "cbid_1"])
def test_unknown_subjects_cannot_be_erased(own: Deployment, subject: str) -> None:
    done = own.run("erase", subject, "--yes", check=False)
    assert (done.returncode, "unknown_subject" in done.stderr) == (1, True)


def test_a_backup_alone_is_unreadable_and_cannot_bring_erased_data_back(
    embedded: Deployment, tmp_path: Path, moved: Callable[[Deployment], Deployment]
) -> None:
    """After a restore with the newest shred keys, later erasures stay effective."""
    key = embedded.key(embedded.account("vendor"))
    with running_server(embedded) as server, server.client(key) as client:
        erased, kept = acknowledge(client, **PLANTED), acknowledge(client, session_id="kept")
        order = {"ack_id": erased, "shipping_zip": "94110"}
        order |= {name: PLANTED[name] for name in ("cbid", "session_id")}
        refused = client.post("/v1/clearances", json=order).json()["clearance_id"]
        embedded.run("backup", str(tmp_path / "old"))
        embedded.run("erase", erased, "--yes")
        embedded.run("backup", str(tmp_path / "new"))
    restored = moved(embedded)
    newest = str(tmp_path / "new" / "shred-keys.db")
    restored.run("restore", str(tmp_path / "old"), "--shred-keys", newest, "--yes")
    restored.run("init")
    with running_server(restored) as server, server.client(key) as client:
        assert client.get(f"/v1/acknowledgments/{kept}").json()["session_id"] == "kept"
        assert client.get(f"/v1/acknowledgments/{erased}").json()["session_id"] is None
        assert client.get(f"/v1/clearances/{refused}").json()["erased_at"] is not None
        again = acknowledge(client)
        pending = client.get(f"/v1/acknowledgments/{again}").json()["evidence"]["status"]
        assert pending == "pending", "the fork guard speaks up"
    # Each record of the order has its erasure again.
    restored.run("log", "check")
    for state in restored.read("log", "status"):
        assert "restored from a backup" in state["suspended"]


def test_an_export_is_safe_in_a_spreadsheet(own: Deployment, tmp_path: Path) -> None:
    """Formulas become text; JSON lines hold the exact values."""
    account = own.account("vendor")
    hostile = '=HYPERLINK("http://x","y")'
    with running_server(own) as server, server.client(own.key(account)) as client:
        ack_id = acknowledge(client, session_id=hostile)
    csv_file = tmp_path / "out.csv"
    options = ["--account", account, "--mode", "test"]
    own.run("acknowledgments", "export", *options, "--output", str(csv_file))
    lines = csv_file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert '"\'=HYPERLINK(""http://x"",""y"")"' in lines[1]
    jsonl = own.run("acknowledgments", "export", *options, "--format", "jsonl").stdout
    (row,) = [json.loads(line) for line in jsonl.splitlines()]
    assert (row["ack_id"], row["session_id"]) == (ack_id, hostile)
    none = ["--after", "2001-01-01T00:00:00Z", "--before", "2001-01-02T00:00:00Z"]
    assert own.run("acknowledgments", "export", *options, *none).stdout.count("\n") == 1
