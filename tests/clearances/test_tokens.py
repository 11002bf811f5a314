"""Tokens, checked as a stranger would: raw Ed25519 over the compact serialisation."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import httpx2
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from countersign.base.errors import InvalidArgument, UnknownKey
from countersign.base.values import Mode
from countersign.core.clearances.model import LIFETIME_MAX
from tests.clearances.checkout import SESSION, Checkout
from tests.clearances.desk import Desk, order
from tests.http.backstage import notice_file
from tests.http.calls import message, refusal

JWKS = "/.well-known/jwks.json"


def _bytes(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def checked(token: str, jwks: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token signed by one of these keys."""
    header, claims, signature = token.split(".")
    answer = json.loads(_bytes(header))
    (jwk,) = (key for key in jwks["keys"] if key["kid"] == answer["kid"])
    key = Ed25519PublicKey.from_public_bytes(_bytes(jwk["x"]))
    key.verify(_bytes(signature), f"{header}.{claims}".encode("ascii"))
    return answer, json.loads(_bytes(claims))


def _jwks(client: httpx2.Client, **query: str) -> dict[str, Any]:
    answer = client.get(JWKS, params=query)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def _kids(jwks: dict[str, Any]) -> list[str]:
    return [key["kid"] for key in jwks["keys"]]


def test_the_token_of_a_cleared_order_is_signed_by_a_published_key(checkout: Checkout) -> None:
    """It names the order, its expiry, and the warehouse's duties."""
    answer = checkout.cleared(product_class="accessory")
    header, claims = checked(answer["token"], _jwks(checkout.client, mode="test"))
    assert header == {"alg": "EdDSA", "kid": header["kid"], "typ": "test-clearance+jwt"}
    assert header["kid"].startswith("test-")
    expires_at = datetime.fromisoformat(answer["expires_at"])
    digest = sha256(f"94110\naccessory\n{SESSION}".encode()).hexdigest()
    assert claims == {
        "iss": f"{checkout.server.url}/test",
        "sub": answer["clearance_id"],
        "iat": claims["iat"],
        "exp": int(expires_at.timestamp()),
        "livemode": False,
        "account": checkout.vendor.account_id,
        "ack_id": checkout.back(answer["clearance_id"])["ack_id"],
        "order_sha256": digest,
        "obligations": answer["obligations"],
    }
    assert claims["exp"] - claims["iat"] in {86400, 86399}


def test_nothing_personal_is_in_a_token(checkout: Checkout) -> None:
    """Neither the buyer, nor the session, nor the destination."""
    address = {"line1": "1 Quillfeather Lane", "postal_code": "94110-7391"}
    cbid = checkout.buyer()
    answer = checkout.decision(
        checkout.initialed(), cbid, shipping_zip="94110-7391", shipping_address=address
    )
    claims = _bytes(answer["token"].split(".")[1]).decode()
    for word in (cbid, SESSION, "94110", "7391", "Quillfeather"):
        assert word not in claims


def test_a_changed_token_fails(checkout: Checkout) -> None:
    """Each bit of it counts."""
    token, jwks = checkout.cleared()["token"], _jwks(checkout.client, mode="test")
    header, claims, signature = token.split(".")
    longer = json.loads(_bytes(claims)) | {"exp": 4102444800}
    forged = base64.urlsafe_b64encode(json.dumps(longer).encode()).decode().rstrip("=")
    turned = ("A" if signature[0] != "A" else "B") + signature[1:]
    for changed in (f"{header}.{forged}.{signature}", f"{header}.{claims}.{turned}"):
        with pytest.raises(InvalidSignature):
            checked(changed, jwks)


def test_reading_a_clearance_returns_the_issued_token(checkout: Checkout) -> None:
    answer = checkout.cleared()
    assert checkout.back(answer["clearance_id"])["token"] == answer["token"]


def test_keys_are_published_as_a_jwk_set(checkout: Checkout) -> None:
    """With the type, the caching and the openness that strangers need (RFC 7517, RFC 8037)."""
    answer = checkout.client.get(JWKS)
    assert answer.headers["Content-Type"] == "application/jwk-set+json"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for key in answer.json()["keys"]:
        fixed = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
        live = key["kid"].startswith("live-")
        assert key == fixed | {"kid": key["kid"], "x": key["x"], "livemode": live}
        assert len(_bytes(key["x"])) == 32
        thumbprint = f'{{"crv":"Ed25519","kty":"OKP","x":"{key["x"]}"}}'
        digest = base64.urlsafe_b64encode(sha256(thumbprint.encode()).digest()).decode()
        assert key["kid"].partition("-")[2] == digest.rstrip("=")


def test_live_and_test_keys_are_apart(checkout: Checkout) -> None:
    """A warehouse that reads the live ones alone cannot take a token of the sandbox for real."""
    live, test = _jwks(checkout.client, mode="live"), _jwks(checkout.client, mode="test")
    assert {kid.partition("-")[0] for kid in _kids(live)} == {"live"}
    assert {kid.partition("-")[0] for kid in _kids(test)} == {"test"}
    assert _jwks(checkout.client) == live
    assert {key["livemode"] for key in live["keys"]} == {True}
    assert {key["livemode"] for key in test["keys"]} == {False}
    with pytest.raises(ValueError, match="not enough values"):
        checked(checkout.cleared()["token"], live)
    answer = checkout.client.get(JWKS, params={"mode": "both"})
    assert refusal(answer) == (400, "invalid_request")
    assert "mode" in message(answer)


def test_a_live_token_says_that_it_is_live(desk: Desk) -> None:
    """In its key, its type, its issuer and its claims."""
    desk.publish(notice_file("of-live-tokens", "1"))
    who = desk.account(Mode.LIVE)
    cbid = desk.live_buyer(who, "94110")
    ack_id = desk.acknowledge(who, "of-live-tokens", "cs_1")
    answer = desk.clear(who, order(ack_id, cbid, "cs_1", "94110"))
    keys = desk.do(desk.deployment.clearances.keys.published([Mode.LIVE]))
    header, claims = checked(answer.token or "", keys)
    assert header["kid"].startswith("live-")
    assert header["typ"] == "clearance+jwt"
    assert claims["livemode"] is True
    assert claims["iss"] == desk.deployment.settings.public_url


def test_a_rotation_publishes_the_new_key_before_it_signs(checkout: Checkout) -> None:
    """And keeps the old one, whose tokens are still valid."""
    deployment = checkout.server.deployment
    old = checkout.cleared()
    done = deployment.run("clearances", "rotate-key", "--mode", "test", "--overlap", "1h", "--yes")
    new_kid = done.stdout.strip()
    jwks = _jwks(checkout.client, mode="test")
    assert _kids(jwks)[-1] == new_kid
    header, _ = checked(checkout.cleared()["token"], jwks)
    assert header == checked(old["token"], jwks)[0]
    listed = deployment.read("clearances", "keys")
    assert new_kid in [key["kid"] for key in listed]
    rows = checkout.operator.rows("SELECT action FROM audit_log WHERE subject = :kid", kid=new_kid)
    assert [row["action"] for row in rows] == ["clearance_key_added"]


def _signed(desk: Desk, notice_id: str) -> tuple[str, str]:
    """A token of now, and the id of its key."""
    who = desk.account()
    ack_id = desk.acknowledge(who, notice_id, "cs_1")
    answer = desk.clear(
        who, order(ack_id, desk.sandbox_buyer(who, "vs_1", "94110"), "cs_1", "94110")
    )
    assert answer.token
    return answer.token, json.loads(_bytes(answer.token.split(".")[0]))["kid"]


def _published(desk: Desk) -> dict[str, Any]:
    return desk.do(desk.deployment.clearances.keys.published([Mode.TEST]))


def test_a_new_key_signs_after_the_overlap_and_the_old_one_ends_unused(
    desk: Desk,
) -> None:
    """Over a whole rotation, a token is always signed by a key that is published."""
    desk.publish(notice_file("of-rotations", "1"))
    token, old = _signed(desk, "of-rotations")
    new = desk.do(desk.deployment.clearances.keys.rotate(Mode.TEST, timedelta(hours=1))).kid
    assert {old, new} <= {*_kids(_published(desk))}
    desk.clock.advance(timedelta(minutes=59))
    assert _signed(desk, "of-rotations")[1] == old
    desk.clock.advance(timedelta(minutes=2))
    later, kid = _signed(desk, "of-rotations")
    assert kid == new
    checked(token, _published(desk))
    checked(later, _published(desk))
    desk.clock.advance(LIFETIME_MAX - timedelta(minutes=2))
    assert old in _kids(_published(desk)), "its last token may still be valid"
    desk.clock.advance(timedelta(minutes=2))
    assert old not in _kids(_published(desk))
    assert new in _kids(_published(desk))


def test_the_same_clearance_has_the_same_token_after_a_rotation(desk: Desk) -> None:
    desk.publish(notice_file("of-same-tokens", "1"))
    who = desk.account()
    sent = order(
        desk.acknowledge(who, "of-same-tokens", "cs_1"),
        desk.sandbox_buyer(who, "vs_1", "94110"),
        "cs_1",
        "94110",
    )
    first = desk.clear(who, sent)
    desk.do(desk.deployment.clearances.keys.rotate(Mode.TEST, timedelta(0)))
    desk.clock.advance(timedelta(seconds=2))
    assert desk.clear(who, sent) == first


def test_a_withdrawn_key_is_no_longer_published_and_signs_nothing(desk: Desk) -> None:
    """For a key that somebody else may have: the same clearance gets a token of another one."""
    desk.publish(notice_file("of-withdrawn-keys", "1"))
    keys = desk.deployment.clearances.keys
    lonely = desk.do(keys.list(Mode.LIVE))
    if len(lonely) == 1:
        with pytest.raises(InvalidArgument, match="rotate-key"):
            desk.do(keys.withdraw(lonely[0].kid))
    _, old = _signed(desk, "of-withdrawn-keys")
    new = desk.do(keys.rotate(Mode.TEST, timedelta(0))).kid
    desk.do(keys.withdraw(old))
    desk.clock.advance(timedelta(seconds=2))
    assert old not in _kids(_published(desk))
    assert _signed(desk, "of-withdrawn-keys")[1] == new
    with pytest.raises(UnknownKey, match="clearances keys"):
        desk.do(keys.withdraw(old))
