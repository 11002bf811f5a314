"""The audit belongs only to the account in whose name an act was done."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

import pytest

from countersign.core.access.role import Role
from tests.http.backstage import Vendor
from tests.staff.conftest import Desk, Person
from tests.support.providers import playing
from tests.verification.live import live_vendor

pytestmark = pytest.mark.both_engines


def audit(desk: Desk, account: str, mode: str = "live", **wanted: str) -> list[dict[str, Any]]:
    """The audit of an account in a mode, as its own auditor reads it, oldest first."""
    query = urlencode({"limit": 100} | wanted)
    with desk.person(Role.AUDITOR, account, mode, member=True) as auditor:
        return [*reversed(auditor.get(f"/v1/audit?{query}")["data"])]


def acts(entries: list[dict[str, Any]]) -> list[str]:
    return [one["action"] for one in entries]


def test_a_look_at_a_shared_buyer_is_only_in_the_audit_of_the_looker(desk: Desk) -> None:
    """Not in that of the account that verified the buyer first: neither person nor reason."""
    with ExitStack() as stack:
        played = stack.enter_context(playing("stripe"))
        alpha, beta = (
            stack.enter_context(live_vendor(desk.operator, desk.server, played)) for _ in range(2)
        )
        session = played.part("verified")
        cbid = alpha.verified(session)
        assert beta.verified(session) == cbid
        compliance = desk.person(Role.COMPLIANCE, beta.account_id, member=True)
        looker = stack.enter_context(compliance)
        why = {"Countersign-Reason": "Beta secret case 77"}
        assert looker.get(f"/v1/buyers/{cbid}/evidence", headers=why)["checks"]
        [shown] = [
            one for one in audit(desk, beta.account_id, subject=cbid) if one["actor"] == looker.id
        ][-1:]
        assert shown["details"]["reason"] == "Beta secret case 77"
        of_alpha = str(audit(desk, alpha.account_id))
        assert looker.id not in of_alpha
        assert beta.account_id not in of_alpha
        assert "secret case" not in of_alpha + str(audit(desk, beta.account_id, "test"))
        with desk.person(Role.AUDITOR) as staff:
            assert staff.get(f"/v1/audit?subject={cbid}&actor={looker.id}")["data"]


def test_an_act_is_in_the_audit_of_its_mode(desk: Desk, shop: Vendor) -> None:
    """A key of one mode, and an endpoint of a command; the account as a whole is in both."""
    account, deployment = shop.account_id, desk.server.deployment
    before = {mode: len(audit(desk, account, mode)) for mode in ("test", "live")}
    deployment.run("keys", "create", "--account", account, "--mode", "test")
    hooks = ("--account", account, "--mode", "live", "--url", "https://shop.example/hooks")
    deployment.run("webhooks", "add", *hooks)
    deployment.run("acknowledgments", "export", "--account", account, "--mode", "live")
    deployment.run("accounts", "rename", account, f"shop {account[-8:]}")
    deployment.run("members", "invite", "Sam Poe", "--account", account, "--role", "support")
    new = {mode: acts(audit(desk, account, mode))[before[mode] :] for mode in before}
    whole = ["account_renamed", "person_invited"]
    assert new["test"] == ["key_created", *whole]
    assert new["live"] == ["webhook_endpoint_created", "acknowledgments_exported", *whole]


def test_acts_of_staff_for_an_account_are_in_its_audit_and_others_in_the_deployments(
    desk: Desk, shop: Vendor, owner: Person
) -> None:
    """Acts without an account are in no account's audit."""
    with desk.person(Role.OWNER, shop.account_id) as named:
        named.post("/v1/webhook_endpoints", {"url": "https://shop.example/hooks"})
        [made] = audit(desk, shop.account_id, action="webhook_endpoint_created")
        assert made["actor"] == named.id
    with desk.operator.vendor(desk.server) as other:
        assert audit(desk, other.account_id, action="webhook_endpoint_created") == []
        staff = owner.post("/v1/staff", {"name": f"Max {other.account_id}", "role": "support"})
        for account in (shop.account_id, other.account_id):
            assert staff["person_id"] not in str(audit(desk, account))
    assert staff["person_id"] in str(owner.get("/v1/audit?action=person_invited")["data"])
