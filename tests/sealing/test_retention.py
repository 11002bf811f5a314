"""Retention erases due data, and a legal hold keeps it: on a record, an account or a buyer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from countersign.base.values import Mode
from tests.cli.notice_files import write_notice
from tests.cli.serving import wait_until
from tests.sealing.acts import acknowledge, check, get
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long

NOTICE = "short-lived"
TWO_YEARS = 2 * 366 * 86_400.0
BUYER = {"test_mode": True, "provider_identity_session_id": "vs_1", "shipping_zip": "94111"}


def keep_for_a_year(own: Deployment, folder: Path) -> None:
    file = write_notice(folder / "notice.toml", NOTICE, retention_years=1)
    own.run("notices", "publish", str(file))


def acknowledged_two_years_ago(own: Deployment, account: str, cbid: str | None = None) -> str:
    """The ack_id of an acknowledgment made then, by the service's clock."""

    async def act() -> str:
        async with opened(own, ShiftedClock(-TWO_YEARS)) as deployment:
            made = await acknowledge_inside(deployment, account, NOTICE, Mode.TEST, cbid)
            return made[1]

    return asyncio.run(act())


def test_only_due_data_is_erased(own: Deployment, tmp_path: Path) -> None:
    """A dry run only reports; an embedded server erases by itself, and the proof stays the same."""
    account = own.account("vendor")
    keep_for_a_year(own, tmp_path)
    old = acknowledged_two_years_ago(own, account)
    answer = own.read("retention", "run", "--dry-run")
    assert [due["record_id"] for due in answer["due"]] == [old]
    assert answer["erased"] == []
    with running_server(own) as server, server.client(own.key(account)) as client:
        young = acknowledge(client)
        proof = get(client, old, "proof")
        path = f"/v1/acknowledgments/{old}"
        if "DATABASE_URL" in own.settings:  # there it is a process of its own: `retention keep`
            own.run("retention", "run", "--yes")
        wait_until(lambda: client.get(path).json()["erased_at"] is not None, "it is erased")
        read = client.get(f"/v1/acknowledgments/{old}").json()
        assert (read["session_id"], read["initials_per_line"]) == (None, None)
        assert read["erased_at"] is not None
        assert get(client, old, "proof") == proof
        assert client.get(f"/v1/acknowledgments/{young}").json()["initials_per_line"] is not None
    assert own.read("retention", "run", "--yes") == {
        "due": [],
        "erased": [],
        "requested": [],
        "failed": [],
    }
    assert check(own)["findings"] == []


@pytest.mark.parametrize("what", ["acknowledgment", "account", "buyer"])
def test_a_hold_keeps_due_data(own: Deployment, tmp_path: Path, what: str) -> None:
    """Whatever it is on; the run says which hold, erases the rest, and the held one later."""
    account, other = own.account("vendor"), own.account("other vendor")
    keep_for_a_year(own, tmp_path)
    with running_server(own) as server, server.client(own.key(account)) as client:
        cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
    held = acknowledged_two_years_ago(own, account, cbid)
    free = acknowledged_two_years_ago(own, other, "cbid_of_somebody_else")
    subject = {"acknowledgment": held, "account": account, "buyer": cbid}[what]
    hold = own.run("holds", "place", subject, "--reason", "case 7").stdout.strip()
    answer = own.read("retention", "run", "--yes")
    assert {due["record_id"]: due["hold_id"] for due in answer["due"]} == {held: hold, free: None}
    assert answer["erased"] == [free]
    own.run("holds", "release", hold)
    assert own.read("retention", "run", "--yes")["erased"] == [held]


def test_a_hold_on_a_buyer_keeps_the_acknowledgments_that_name_it(own: Deployment) -> None:
    """Of any account, whether one record is to be erased or the buyer with all of them."""
    account, other = own.account("vendor"), own.account("other vendor")
    with running_server(own) as server:
        with server.client(own.key(account)) as client:
            cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
            mine = acknowledge(client, cbid=cbid)
            unrelated = acknowledge(client, cbid="cbid_of_somebody_else")
        with server.client(own.key(other)) as client:
            theirs = acknowledge(client, cbid=cbid)
    hold = own.run("holds", "place", cbid, "--reason", "case 7").stdout.strip()
    for subject in (mine, theirs, cbid):
        done = own.run("erase", subject, "--with-acknowledgments", "--yes", check=False)
        assert (done.returncode, "on_hold" in done.stderr) == (1, True), subject
        assert hold in done.stderr
    assert own.read("erase", unrelated, "--yes")["records"] == [unrelated]
    own.run("holds", "release", hold)
    erased = own.read("erase", cbid, "--with-acknowledgments", "--yes")["records"]
    assert {mine, theirs} <= set(erased)


def test_a_hold_on_one_account_keeps_its_order_and_nothing_of_another(own: Deployment) -> None:
    """The rest of the buyer is erased everywhere, and the held data when the hold has ended."""
    account, other = own.account("vendor"), own.account("other vendor")
    with (
        running_server(own) as server,
        server.client(own.key(account)) as client,
        server.client(own.key(other)) as stranger,
    ):
        cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
        mine, theirs = acknowledge(client, cbid=cbid), acknowledge(stranger, cbid=cbid)
        hold = own.run("holds", "place", other, "--reason", "case 7").stdout.strip()
        done = own.read("erase", cbid, "--with-acknowledgments", "--yes")
        assert done["kept"] == [{"record_id": theirs, "hold_id": hold, "subject": other}]
        assert mine in done["records"]
        assert client.get(f"/v1/buyers/{cbid}/status").status_code == 404
        assert client.get(f"/v1/acknowledgments/{mine}").json()["cbid"] is None
        assert stranger.get(f"/v1/acknowledgments/{theirs}").json()["cbid"] == cbid
        released = own.read("holds", "release", hold)
        assert released == {"hold_ids": [hold], "erased": [theirs], "requested": []}
        assert stranger.get(f"/v1/acknowledgments/{theirs}").json()["cbid"] is None


def test_earlier_erasures_are_reported(own: Deployment) -> None:
    """A second time there is no question and no change, and the message says "record" for one."""
    with running_server(own) as server, server.client(own.key(own.account("vendor"))) as client:
        ack_id = acknowledge(client)
    first = own.run("erase", ack_id, "--yes").stderr
    assert f"Erased: the personal data of {ack_id} (1 acknowledgment)." in first.replace("\n", " ")
    assert "shred_keys" in first.replace("-", "_"), "old copies can bring it back"
    second = own.run("erase", ack_id).stderr
    assert "already erased" in second
    assert "Erased:" not in second
