"""The form that exports a buyer: who has it, and the file that it gives."""

from __future__ import annotations

from pathlib import Path

from countersign.core.access.role import Role
from countersign_evidence.offline.verify import read_zip
from tests.console.test_pages import Browser
from tests.console.visitor import Vendor
from tests.people.crew import Console, in_console


def test_a_buyer_is_exported_by_those_who_may_see_it(tmp_path: Path) -> None:
    """As a file, for a reason; others have no form for it, and are refused."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
        form = {"subject": order["cbid"], "reason": "asked in writing", "language": "es"}
        for role in (Role.COMPLIANCE, Role.AUDITOR, Role.OWNER):
            browser = Browser(console, await console.person(role, role, account), f"{account}/test")
            may = role is not Role.OWNER
            assert ("erasures/-/export" in await browser.get("erasures")) is may
            reply = await browser.send("erasures/-/export", **form)
            assert (dict(reply.headers)[b"content-type"] == b"application/zip") is may
            if may:
                assert b'<html lang="es">' in read_zip(reply.body)["index.html"]
                assert dict(reply.headers)[b"cache-control"] == b"no-store"
                without = await browser.send("erasures/-/export", **form | {"reason": ""})
                assert without.status == 400
        cora = await console.person("Cora", Role.COMPLIANCE, account)
        here = {"account": account, "mode": "test"}
        noted = await console.ask(
            cora.session, "/v1/audit", query={"action": "subject_exported"}, **here
        )
        assert {one["details"]["reason"] for one in noted.data["data"]} == {form["reason"]}

    in_console(tmp_path, work)
