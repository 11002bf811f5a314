"""A checkout session's content is encrypted, and erased with its order or after 30 days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.core.checkout.model import KEPT
from countersign.operate import bootstrap
from countersign.operate.housekeeping import delete_outdated
from tests.checkout.buyer import Buyer, Shop
from tests.http.backstage import Operator, another_deployment, make_client
from tests.http.calls import verify
from tests.sealing.test_erasing import files, hidden_forms
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.both_engines, pytest.mark.long]

ZIP = "94111"
PERSONAL = ("session_id", "notice_id", "cbid", "cleared", "return_url", "origin", "locale")


def _known(shop: Shop, **changes: object) -> tuple[Buyer, str]:
    """A session of a buyer who is known, and the cbid."""
    cbid = str(verify(shop.client, shipping_zip=ZIP).json()["cbid"])
    return shop.buyer(cbid=cbid, shipping_zip=ZIP, **changes), cbid


def _is_erased(found: dict[str, Any]) -> bool:
    return [found[name] for name in PERSONAL] == [None] * len(PERSONAL)


def test_erasing_the_acknowledgment_erases_what_its_session_holds(own_shop: Shop) -> None:
    """Only the identifiers and times stay; another session of the same buyer stays whole."""
    buyer, cbid = _known(own_shop)
    other = own_shop.buyer(cbid=cbid)
    assert buyer.acknowledge().status_code == 200
    before = own_shop.read(buyer)
    own_shop.server.deployment.run("erase", before["ack_id"], "--yes")
    found = own_shop.read(buyer)
    assert _is_erased(found)
    kept = ("checkout_session_id", "status", "ack_id", "clearance_id", "created_at", "ended_at")
    assert [found[name] for name in kept] == [before[name] for name in kept]
    current = buyer.current()
    assert (current["status"], current["return_url"], current["notice"]) == (
        "completed",
        None,
        None,
    )
    assert own_shop.read(other)["cbid"] == cbid
    by_name = {"session_id": "cart-7"}
    listed = own_shop.client.get("/v1/checkout_sessions", params=by_name).json()["data"]
    assert not any(_is_erased(row) and row["session_id"] for row in listed)


def test_erasing_a_buyer_erases_the_data_in_every_session_of_the_buyer(own_shop: Shop) -> None:
    """Ended or open; an open one then collects nothing any more, and is expired."""
    ended, cbid = _known(own_shop)
    assert ended.decline().status_code == 200
    is_open = own_shop.buyer(cbid=cbid)
    found_out = own_shop.buyer(collect=["identity", "acknowledgment"])
    stranger = own_shop.buyer()
    own_shop.server.deployment.run("erase", cbid, "--yes")
    assert _is_erased(own_shop.read(ended))
    assert _is_erased(own_shop.read(is_open))
    assert not _is_erased(own_shop.read(found_out))
    assert not _is_erased(own_shop.read(stranger))
    assert own_shop.read(is_open)["status"] == is_open.current()["status"] == "expired"
    for answer in (
        is_open.decline(),
        own_shop.client.post(f"/v1/checkout_sessions/{is_open.id}/cancel", json={}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            409,
            "checkout_session_closed",
        )


def test_a_hold_keeps_a_session_from_being_erased_and_not_from_being_deleted(
    own: Operator, own_shop: Shop
) -> None:
    """The evidence is the acknowledgment, which the hold keeps; the session is deleted as ever."""
    buyer, cbid = _known(own_shop)
    assert buyer.acknowledge().status_code == 200
    ack_id = own_shop.read(buyer)["ack_id"]
    run = own_shop.server.deployment.run
    run("holds", "place", cbid, "--reason", "a case")
    for subject in (cbid, ack_id):
        refused = run("erase", subject, "--yes", check=False)
        assert (refused.returncode, "on_hold" in refused.stderr) == (1, True)
    assert own_shop.read(buyer)["cbid"] == cbid
    _keep_house(own, KEPT + timedelta(hours=1))
    gone = own_shop.client.get(f"/v1/checkout_sessions/{buyer.id}")
    assert gone.status_code == 404
    kept = own_shop.client.get(f"/v1/acknowledgments/{ack_id}").json()
    assert kept["process"]["checkout_session"] == buyer.id


def test_sessions_are_deleted_30_days_after_their_end_with_their_keys(
    own: Operator, own_shop: Shop
) -> None:
    ended, is_open = own_shop.buyer(), own_shop.buyer()
    assert ended.decline().status_code == 200
    _keep_house(own, KEPT - timedelta(hours=1))
    assert own_shop.read(ended)["status"] == "declined"
    _keep_house(own, KEPT + timedelta(hours=1))
    with make_client(own_shop.server, str(ended.session["client_token"])) as late:
        answer = late.get("/v1/checkout_sessions/current")
        assert answer.json()["error"]["code"] == "invalid_client_token"
    assert own_shop.read(is_open)["status"] == "open"
    query = "SELECT record_id FROM shred_keys WHERE record_id = :id"
    assert [len(own.rows(query, id=one.id)) for one in (ended, is_open)] == [0, 1]


def _keep_house(operator: Operator, later: timedelta) -> None:
    async def work(opened: bootstrap.Deployment) -> None:
        await delete_outdated(opened.database, datetime.now(tz=UTC) + later)

    operator.act(work)


def test_no_file_has_the_request_the_initials_or_the_token(tmp_path: Path) -> None:
    own = another_deployment(tmp_path / "data")
    key = own.key(own.account("vendor"))
    planted = {
        "session_id": "planted-session-4711",
        "cbid": "cbid_planted_0815",
        "return_url": "https://planted.example/back-to-0816",
    }
    with running_server(own) as server, server.client(key) as client:
        body = planted | {"notice_id": "ab1263"}
        headers = {"Idempotency-Key": "planted"}
        made = client.post("/v1/checkout_sessions", json=body, headers=headers).json()
        with make_client(server, made["client_token"]) as browser:
            buyer = Buyer(made, browser)
            lines = len(buyer.current()["notice"]["bullets"])
            running = files(own.data_dir)
            assert buyer.acknowledge(["PlantedInitials"] * lines).status_code == 200
        running += files(own.data_dir)
    for text in (*planted.values(), "PlantedInitials", made["client_token"]):
        for seen in (running, files(own.data_dir), server.log.read_bytes()):
            assert not [form for form in hidden_forms(text) if form in seen], text


def test_a_backup_does_not_restore_an_erased_sessions_content(tmp_path: Path) -> None:
    """Restored with the newest shred keys: of an acknowledgment that was erased, and of a buyer."""
    own = another_deployment(tmp_path / "data")
    key = own.key(own.account("vendor"))
    with running_server(own) as server, server.client(key) as client:
        cbid = str(verify(client, shipping_zip=ZIP).json()["cbid"])
        asked = {"return_url": "https://shop.example/", "notice_id": "ab1263"}
        made = [
            client.post("/v1/checkout_sessions", json=asked | more).json()
            for more in ({"session_id": "a"}, {"session_id": "b", "cbid": cbid})
        ]
        with make_client(server, made[0]["client_token"]) as browser:
            ack_id = Buyer(made[0], browser).acknowledge().json()["ack_id"]
        own.run("backup", str(tmp_path / "old"))
        for subject in (ack_id, cbid):
            own.run("erase", subject, "--yes")
        own.run("backup", str(tmp_path / "new"))
    place = tmp_path / "elsewhere"
    place.mkdir(mode=0o700)
    for name in ("secret.key", "key-encryption.key"):
        (place / name).write_bytes((own.data_dir / name).read_bytes())
    restored = Deployment(data_dir=place)
    newest = str(tmp_path / "new" / "shred-keys.db")
    restored.run("restore", str(tmp_path / "old"), "--shred-keys", newest, "--yes")
    with running_server(restored) as server, server.client(key) as client:
        for one in made:
            found = client.get(f"/v1/checkout_sessions/{one['checkout_session_id']}").json()
            assert _is_erased(found)
    restored.run("init")
    with Operator(restored) as operator:
        rows = operator.rows("SELECT content, cbid_index FROM checkout_sessions")
        assert [tuple(row.values()) for row in rows] == [(None, None)] * 2
