"""docs/clearances.md describes the code, and its examples work."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from typing import Any, Final

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.schemas import ClearanceReason, ClearanceRequest, FulfilmentRequest
from tests.clearances.checkout import SESSION, ZIP, Checkout
from tests.clearances.desk import Desk, order
from tests.clearances.test_tokens import JWKS, checked
from tests.docs.markdown import ROOT, read
from tests.docs.shell import run_blocks
from tests.http.backstage import notice_file

GUIDE: Final = read(ROOT / "docs" / "clearances.md")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def may_ship(
    token: str, jwks: dict[str, Any], issuer: str, *parcel: str | None
) -> list[dict[str, Any]]:
    """The rules of the page, as a warehouse would write them. Gives the obligations."""
    account, zip_code, product_class, session_id = parcel
    header, claims, signature = token.split(".")
    named = json.loads(_unpack(header))
    if (named["alg"], named["typ"]) != ("EdDSA", "clearance+jwt"):
        raise ValueError("not a live clearance")
    (key,) = [key for key in jwks["keys"] if key["kid"] == named["kid"] and key["livemode"]]
    public = Ed25519PublicKey.from_public_bytes(_unpack(key["x"]))
    public.verify(_unpack(signature), f"{header}.{claims}".encode())
    claimed = json.loads(_unpack(claims))
    order = f"{(zip_code or '')[:5]}\n{product_class or ''}\n{session_id}"
    if claimed["iss"] != issuer or claimed["livemode"] is not True or time.time() >= claimed["exp"]:
        raise ValueError("of another service, of the sandbox, or expired")
    if claimed["account"] != account:
        raise ValueError("of another vendor")
    if claimed["order_sha256"] != hashlib.sha256(order.encode()).hexdigest():
        raise ValueError("of another order")
    obligations: list[dict[str, Any]] = claimed["obligations"]
    return obligations


def test_the_guide_lists_every_reason_in_the_order_of_the_response() -> None:
    """Each with its meaning and the next step."""
    rows = GUIDE.rows("## Reasons")
    assert [row[0].strip("`") for row in rows] == [reason.value for reason in ClearanceReason]
    assert all(len(row) == 3 and row[1] and row[2] for row in rows)


def test_the_guide_lists_every_field_of_a_question_and_of_a_report() -> None:
    first = GUIDE.prose.split("\n## ")[0]
    fields = [line.split("`")[1] for line in first.splitlines() if line.startswith("| `")]
    assert {*fields} == {*ClearanceRequest.__struct_fields__}
    _, _, closing = GUIDE.prose.partition("\n## Close the order\n")
    sentence = closing[closing.index("At least one of") :].split(". ")[0]
    assert re.findall(r"`([a-z_]+)`", sentence) == [*FulfilmentRequest.__struct_fields__]


def test_the_guide_states_the_defaults_of_an_account() -> None:
    rows = {row[0].strip("`"): row[1] for row in GUIDE.rows("## What an operator sets")}
    rules = ClearanceRules()
    assert rows == {
        "--acknowledgment-max-age": f"{rules.acknowledgment_max_age.days}d",
        "--lifetime": f"{int(rules.lifetime.total_seconds()) // 3600}h",
        "--paid-max-age": f"{rules.paid_max_age.days}d",
        "--product-class": "required" if rules.product_class_required else "optional",
        "--order-reference": "required" if rules.order_reference_required else "optional",
        "--overrides-per-day": str(rules.overrides_per_day),
    }


def test_the_example_request_of_the_guide_gets_the_answer_shown(checkout: Checkout) -> None:
    """The very command, against a real server."""
    block = GUIDE.blocks[0]
    assert block.language == "bash"
    ack_id = checkout.initialed(session_id="cs_5a7d03e8b1964fc2d8e0a75b3c9f1246")
    authorization = checkout.client.headers["Authorization"]
    printed = run_blocks(
        [block],
        directory=checkout.server.log.parent,
        environment={
            "PATH": "/usr/bin:/bin",
            "BASE": checkout.server.url,
            "KEY": authorization.removeprefix("Bearer "),
            "ACK_ID": ack_id,
            "CBID": checkout.buyer(zip_="94105"),
        },
        placeholders={},
    )
    assert '"cleared":true' in printed[block]


def test_a_warehouse_checks_a_token_by_the_rules_of_the_guide(desk: Desk) -> None:
    """The right parcel may ship, with what to do next; each wrong one may not."""
    issuer = desk.deployment.settings.public_url
    desk.publish(notice_file("of-a-warehouse", "1"))
    who, sandbox = desk.account(Mode.LIVE), desk.account(Mode.TEST)
    jwks = desk.do(desk.deployment.clearances.keys.published([*Mode]))
    # The rules look at the real time, and the desk's clock is years ahead: nothing is expired.
    token = _token(desk, who, desk.live_buyer(who, ZIP))
    parcel = (who.account_id, ZIP, "accessory", SESSION)
    found = [{"type": "compared", "what": "zip"}]
    assert may_ship(token, jwks, issuer, *parcel) == found
    assert may_ship(token, jwks, issuer, who.account_id, f"{ZIP}-1234", *parcel[2:]) == found
    wrong: list[tuple[str, tuple[str | None, ...]]] = [
        ("another order", (who.account_id, "94111", "accessory", SESSION)),
        ("another order", (who.account_id, ZIP, "barrel", SESSION)),
        ("another order", (who.account_id, ZIP, None, SESSION)),
        ("another order", (who.account_id, ZIP, "accessory", "cs_other")),
        ("another vendor", (sandbox.account_id, ZIP, "accessory", SESSION)),
    ]
    for why, other in wrong:
        with pytest.raises(ValueError, match=why):
            may_ship(token, jwks, issuer, *other)
    with pytest.raises(ValueError, match="another service"):
        may_ship(token, jwks, "https://other.example", *parcel)
    signed, _, signature = token.rpartition(".")
    changed = f"{signed}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"
    with pytest.raises(InvalidSignature):
        may_ship(changed, jwks, issuer, *parcel)
    played = _token(desk, sandbox, desk.sandbox_buyer(sandbox, "vs_1", ZIP))
    with pytest.raises(ValueError, match="not a live clearance"):
        may_ship(played, jwks, f"{issuer}/test", sandbox.account_id, *parcel[1:])


def _token(desk: Desk, who: Principal, cbid: str) -> str:
    ack_id = desk.acknowledge(who, "of-a-warehouse", SESSION)
    asked = order(ack_id, cbid, SESSION, ZIP, product_class="accessory")
    token = desk.clear(who, asked).token
    assert token is not None
    return token


def test_the_obligations_of_the_guide_are_a_notice_that_can_be_published(
    checkout: Checkout,
) -> None:
    """The table states their effects."""
    (block,) = (block for block in GUIDE.blocks if block.language == "toml")
    notice_id, _ = checkout.notice(block.text)
    ack_id, cbid = checkout.initialed(notice_id), checkout.buyer()
    answer = checkout.decision(ack_id, cbid, product_class="accessory")
    types = [obligation["type"] for obligation in answer["obligations"]]
    assert types == [row[0].strip("`") for row in GUIDE.rows("## Obligations")]
    barrel = checkout.decision(checkout.initialed(notice_id), cbid, product_class="barrel")
    assert barrel["reasons"] == ["notice_not_sufficient"]


def test_the_guide_shows_the_claims_of_a_real_token(checkout: Checkout) -> None:
    _, claims = checked(
        checkout.cleared()["token"], checkout.client.get(f"{JWKS}?mode=test").json()
    )
    rows = GUIDE.rows("## Check a token in the warehouse")
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == {*claims}
