"""A refusal is overridden in the console, and by a key that a person made for it."""

from __future__ import annotations

import json
from pathlib import Path

from countersign.core.access.role import Role
from countersign_console.view import WORDS
from tests.console.visitor import Vendor, Visitor, places
from tests.people.crew import Console, code_of, in_console

EN = WORDS["en"]
SCOPE = "clearances:override"
GOODS = {"shipping_zip": "94105", "session_id": "cs_1", "product_class": "accessory"}


async def refused(vendor: Vendor, **changed: str) -> str:
    """A refused order: nothing of it is known."""
    body = {"ack_id": "nothing", "cbid": "cbid_nobody", **GOODS, **changed}
    return str((await vendor.ask("POST", "/v1/clearances", body))["clearance_id"])


def test_a_person_overrides_a_refusal_in_the_console(tmp_path: Path) -> None:
    """With a reason; the page says so then, and offers it only for a later refusal."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        clearance_id = await refused(vendor)
        cora = Visitor(console, (await console.person("Cora", Role.COMPLIANCE, account)).session)
        page = f"{places(account)[False, 'orders']}/{clearance_id}"
        assert EN["act_override"] in (await cora.raw("GET", page)).text
        told = (await cora.send(f"{page}/override", reason="case 4712")).text
        assert EN["said_overridden"].format(reason="case 4712") in told
        shown = (await cora.raw("GET", page)).text
        assert EN["verdict_overridden"] in shown
        assert EN["step_overridden"] in shown
        assert EN["decided_clearance_overridden"] in shown
        assert f"{page}/override" not in shown
        console.clock.seconds += 8 * 24 * 3600  # the override has ended
        await refused(vendor)
        cora = Visitor(console, (await console.person("Cay", Role.COMPLIANCE, account)).session)
        shown = (await cora.raw("GET", page)).text
        assert EN["verdict_overridden"] in shown
        await cora.send(f"{page}/override", reason="case 4713")
        assert f"{page}/override" not in (await cora.raw("GET", page)).text
        support = Visitor(console, (await console.person("Sam", Role.SUPPORT, account)).session)
        other = f"{places(account)[False, 'orders']}/{await refused(vendor, session_id='cs_2')}"
        assert f"{other}/override" not in (await support.raw("GET", other)).text

    in_console(tmp_path, work)


def test_only_a_person_with_a_fresh_passkey_gives_a_key_the_scope(tmp_path: Path) -> None:
    """No key does, nor a passkey used long ago; and a person's own override needs one as well."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        ada = await console.person("Ada", Role.OWNER, account)
        about = {"account": account, "mode": "test"}

        async def ask(path: str, **body: object) -> object:
            answer = await console.ask(ada.session, path, "POST", body=body, **about)
            return answer.data

        made = await ask("/v1/keys", scopes=[SCOPE, "keys:manage"])
        assert isinstance(made, dict)
        headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": "application/json"}
        wanted = json.dumps({"scopes": [SCOPE]}).encode()
        assert code_of(await console.http("POST", "/v1/keys", headers, wanted)) == "forbidden"
        rotated = await console.http("POST", f"/v1/keys/{made['key_id']}/rotate", headers, b"{}")
        assert code_of(rotated) == "forbidden"
        path = f"/v1/clearances/{await refused(vendor)}/override"
        body = json.dumps({"reason": "case 4712", "claimed_user": "shop user 17"}).encode()
        limited = await console.http("POST", path, headers, body)
        assert code_of(limited) == "override_limit_reached"
        usual = {**headers, "Authorization": f"Bearer {vendor.key}"}
        assert code_of(await console.http("POST", path, usual, body)) == "forbidden"
        console.clock.seconds += 400
        for one, sent in ((path, {"reason": "case 4712"}), ("/v1/keys", {"scopes": [SCOPE]})):
            assert "passkey_required" in json.dumps(await ask(one, **sent))

    in_console(tmp_path, work)
