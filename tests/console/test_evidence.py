"""The evidence of orders in the console, those without an acknowledgment among them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from countersign.core.access.role import Role
from countersign_console.view import WORDS
from tests.console.test_overriding import refused
from tests.console.visitor import Vendor, Visitor, places
from tests.people.crew import Console, in_console

EN = WORDS["en"]


def test_an_order_without_an_acknowledgment_has_its_evidence(tmp_path: Path) -> None:
    """By its decision; only the certificate for the buyer is of an acknowledgment."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        clearance_id, where = await refused(vendor), places(account)[False, "orders"]
        cora = Visitor(console, (await console.person("Cora", Role.COMPLIANCE, account)).session)
        page = f"{where}/{clearance_id}"
        shown = (await cora.raw("GET", page)).text
        for name in ("act_read", "evidence_cover", "evidence_check"):
            assert EN[name] in shown, name
        assert EN["evidence_certificate"] not in shown
        for look in ("cover", "check"):
            reply = await cora.send(f"{page}/{look}", reason="case 4712")
            assert f"{clearance_id}-dossier.zip" in reply.text, look
        sam = Visitor(console, (await console.person("Sam", Role.DEVELOPER, account)).session)
        assert EN["evidence_cover"] not in (await sam.raw("GET", page)).text

    in_console(tmp_path, work)


def test_ticked_orders_are_packed_by_what_they_have(tmp_path: Path) -> None:
    """One that was neither acknowledged nor decided is listed beside the dossiers."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        order = await vendor.order("cs_1", "order 1001")
        clearance_id, where = await refused(vendor, session_id="cs_2"), places(account)
        link = {"notice_id": "ab1263", "session_id": "cs_3", "return_url": "http://127.0.0.1/back"}
        made = await vendor.ask("POST", "/v1/checkout_sessions", link)
        cora = Visitor(console, (await console.person("Cora", Role.COMPLIANCE, account)).session)
        ids = [order["ack_id"], clearance_id, made["checkout_session_id"]]
        ticked = {f"order.{id_}": "on" for id_ in ids}
        path = f"{where[False, 'orders']}/-/dossiers"
        reply = await cora.send(path, reason="case 4712", **ticked)
        with ZipFile(BytesIO(reply.content)) as packed:
            assert {*packed.namelist()} == {
                "without-dossier.txt",
                *(f"{id_}-dossier.zip" for id_ in ids[:2]),
            }

    in_console(tmp_path, work)
