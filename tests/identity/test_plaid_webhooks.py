"""Plaid's webhooks: an ES256 token over the body's digest; everything else is refused."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.base.errors import ProviderUnavailable, WebhookRefused
from countersign.identity import plaid
from countersign.identity.model import Finding, WebhookHint
from countersign.identity.transport import TransportFailure
from countersign.identity.webhook_jwt import (
    FETCHES_MAX,
    FETCHES_SECONDS,
    KEY_SECONDS,
    KEYS_MAX,
    NO_KEY_SECONDS,
    PublicKey,
    WebhookKeys,
)
from countersign_simulators import plaid as simulated
from countersign_simulators.server import serve
from tests.identity.asking import JUNK, NOW, FixedClock, fingerprint, places, put, reply
from tests.support.every import every

SESSION: Final = "idv_ExampleAbC123"
KID: Final = "bfbd5111-8e33-4643-8ced-b2e642a72f3c"
KEY: Final = ec.generate_private_key(ec.SECP256R1())
EVENT: Final[dict[str, Any]] = {
    "webhook_type": "IDENTITY_VERIFICATION",
    "webhook_code": "STATUS_UPDATED",
    "identity_verification_id": SESSION,
    "environment": "production",
}
BODY: Final = json.dumps(EVENT).encode()
TIME: Final = int(NOW)


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def jwk(key: ec.EllipticCurvePrivateKey = KEY, **members: object) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    size = (key.curve.key_size + 7) // 8
    plain = {
        "alg": "ES256",
        "created_at": TIME - 1000,
        "crv": "P-256",
        "expired_at": None,
        "kid": KID,
        "kty": "EC",
        "use": "sig",
        "x": base64url(numbers.x.to_bytes(size, "big")),
        "y": base64url(numbers.y.to_bytes(size, "big")),
    }
    return plain | members


def token(
    body: bytes = BODY,
    *,
    header: dict[str, Any] | None = None,
    claims: dict[str, Any] | None = None,
    key: ec.EllipticCurvePrivateKey = KEY,
    der: bool = False,
) -> str:
    """The recipe as Plaid and RFC 7515 publish it; other members replace the right ones."""
    head = {"alg": "ES256", "kid": KID, "typ": "JWT"} | (header or {})
    given = {"iat": TIME, "request_body_sha256": sha256(body).hexdigest()} | (claims or {})
    signed = f"{base64url(json.dumps(head).encode())}.{base64url(json.dumps(given).encode())}"
    signature = key.sign(signed.encode(), ec.ECDSA(SHA256()))
    r, s = decode_dss_signature(signature)
    raw = signature if der else r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"{signed}.{base64url(raw)}"


@dataclass
class Keys:
    """Returns keys as Plaid does, and counts requests."""

    known: dict[str, Any] = field(default_factory=lambda: {KID: jwk()})
    clock: FixedClock = field(default_factory=FixedClock)
    asked: list[str] = field(default_factory=list)
    status: int = 200
    down: bool = False

    def __post_init__(self) -> None:
        self.kept = WebhookKeys(self.fetch, self.clock)

    async def fetch(self, kid: str) -> PublicKey:
        self.asked.append(kid)
        await asyncio.sleep(0)
        if self.down:
            raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, "timeout")
        if kid not in self.known:
            return plaid.key_of(
                reply({"error_code": "INVALID_WEBHOOK_VERIFICATION_KEY_ID"}, 400), kid
            )
        return plaid.key_of(reply({"key": self.known[kid], "request_id": "r"}, self.status), kid)


async def reading(
    sent: str | None, body: bytes, keys: Keys, asked_about: tuple[str, ...] = ()
) -> WebhookHint | None:
    headers = {} if sent is None else {"plaid-verification": sent}
    credentials = plaid.PlaidCredentials(
        client_id="client-of-this-test", secret="secret-of-this-test", environment="live"
    )
    provider = plaid.Plaid(credentials, base_url=None, fingerprint=fingerprint, clock=keys.clock)
    provider._keys = keys.kept
    provider._retrieved = OrderedDict.fromkeys(asked_about)
    return await provider.read_webhook(headers, body)


def hint(sent: str | None, body: bytes = BODY, keys: Keys | None = None) -> WebhookHint | None:
    return asyncio.run(reading(sent, body, keys or Keys()))


def refused(sent: str | None, body: bytes = BODY, keys: Keys | None = None) -> bool:
    try:
        hint(sent, body, keys)
    except WebhookRefused:
        return True
    return False


def event(**members: object) -> bytes:
    return json.dumps(EVENT | members).encode()


@pytest.mark.parametrize("code", ["STATUS_UPDATED", "STEP_UPDATED", "RETRIED"])
def test_an_authentic_event_gives_its_session(code: str) -> None:
    """Each of the three codes is worth asking again; nothing else of the message is believed."""
    body = event(webhook_code=code)
    found = hint(token(body), body)
    assert found is not None
    assert found.session_id == SESSION


@pytest.mark.parametrize("shift", [-300, 300])
def test_a_message_may_be_five_minutes_away(shift: int) -> None:
    """Plaid's recipe; the clocks may differ in both directions."""
    assert hint(token(claims={"iat": TIME + shift})) is not None


def test_deliveries_of_two_events_with_one_body_are_distinct() -> None:
    """Plaid's bodies carry no identifier: two changes of a session have the same one."""
    first, again, later = (
        hint(token()),
        hint(token()),
        hint(token(claims={"iat": TIME + 1})),
    )
    assert first is not None
    assert again is not None
    assert later is not None
    assert first.event_key == again.event_key != later.event_key


@pytest.mark.parametrize(
    "body",
    [
        event(webhook_type="ITEM"),
        event(webhook_type=None),
        event(webhook_code="NEVER_HEARD_OF"),
    ],
)
def test_an_authentic_event_about_something_else_is_no_hint(body: bytes) -> None:
    """Plaid sends its other products' events to the same address."""
    assert hint(token(body), body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"not JSON",
        event(identity_verification_id=None),
        event(identity_verification_id="idv_../../other"),
        event(identity_verification_id=[SESSION]),
        event(webhook_type={}),
        event(webhook_code=["STATUS_UPDATED"]),
        BODY[:-1] + b', "webhook_type": "IDENTITY_VERIFICATION"}',
    ],
)
def test_an_unreadable_authentic_event_is_refused(body: bytes) -> None:
    """Signed nonsense is nonsense."""
    assert refused(token(body), body)


GOOD: Final = token()
HEAD, CLAIMS, SIGNATURE = GOOD.split(".")


@every(
    "sent",
    [
        None,
        "",
        ".",
        "..",
        HEAD,
        f"{HEAD}.{CLAIMS}",
        f"{HEAD}.{CLAIMS}.",
        f"{GOOD}.",
        f"{GOOD}.{SIGNATURE}",
        f" {GOOD}",
        f"{GOOD}\n",
        f"{GOOD}, {GOOD}",
        f"Bearer {GOOD}",
        GOOD.replace("-", "+").replace("_", "/") + "=",
        f"{HEAD}.{CLAIMS}.{SIGNATURE}==",
        f"{HEAD}.{CLAIMS}.{SIGNATURE[:-2]}",
        f"{HEAD}.{CLAIMS}.{'A' * 86}",
        f"{CLAIMS}.{HEAD}.{SIGNATURE}",
        f"{'A' * 100_000}.{CLAIMS}.{SIGNATURE}",
        f"{HEAD}.{CLAIMS}.{SIGNATURE[:-1]}\u00e9",
        "\ud800.\ud800.\ud800",
        f"{base64url(b'[]')}.{CLAIMS}.{SIGNATURE}",
        f"{base64url(b'{')}.{CLAIMS}.{SIGNATURE}",
        f"{HEAD}.{base64url(b'null')}.{SIGNATURE}",
        token(der=True),
        token(key=ec.generate_private_key(ec.SECP256R1())),
        token(b"another body"),
        token(header={"alg": "none"}),
        token(header={"alg": "HS256"}),
        token(header={"alg": "ES384"}),
        token(header={"alg": "es256"}),
        token(header={"alg": ["ES256"]}),
        token(header={"crit": ["exp"]}),
        token(header={"kid": None}),
        token(header={"kid": ""}),
        token(header={"kid": "../../item/remove"}),
        token(header={"kid": "a" * 129}),
        token(header={"kid": {"kid": KID}}),
        token(header={"kid": "00000000-0000-4000-8000-000000000000"}),
        token(claims={"iat": TIME - 301}),
        token(claims={"iat": TIME + 301}),
        token(claims={"iat": str(TIME)}),
        token(claims={"iat": float(TIME)}),
        token(claims={"iat": True}),
        token(claims={"iat": None}),
        token(claims={"iat": 10**30}),
        token(claims={"request_body_sha256": None}),
        token(claims={"request_body_sha256": sha256(BODY).hexdigest().upper()}),
        token(claims={"request_body_sha256": sha256(b"other").hexdigest()}),
        token(claims={"request_body_sha256": sha256(BODY).hexdigest()[:63]}),
    ],
)
def test_a_malformed_or_forged_token_is_refused(sent: str | None) -> None:
    """In every way, and always with the same refusal."""
    assert refused(sent)


def test_a_token_for_another_body_is_refused_without_asking_for_its_key() -> None:
    """Everything that can be judged without Plaid is judged without Plaid."""
    keys = Keys()
    assert refused(GOOD, event(environment="sandbox"), keys)
    assert refused(token(claims={"iat": TIME - 301}), BODY, keys)
    assert keys.asked == []


@given(st.text(max_size=120) | st.binary(max_size=90).map(base64url))
def test_no_header_raises_anything_else(text: str) -> None:
    """Whatever the header contains, the answer is the one refusal."""
    assert refused(text)
    assert refused(f"{HEAD}.{CLAIMS}.{text}")
    assert refused(f"{HEAD}.{text}.{SIGNATURE}")
    assert refused(f"{text}.{CLAIMS}.{SIGNATURE}")


@given(body=st.binary(max_size=80))
def test_no_signed_bytes_raise_anything_else(body: bytes) -> None:
    """An authentic message may be anything, too; an object without known members is no hint."""
    assert refused(token(body), body) or hint(token(body), body) is None


@given(place=st.sampled_from(places(EVENT)), junk=JUNK | st.just(...))
def test_no_signed_event_raises_anything_else(place: tuple[str | int, ...], junk: object) -> None:
    """It is a hint at the session that it names, or none, or refused."""
    body = json.dumps(put(EVENT, place, junk)).encode()
    if not refused(token(body), body):
        found = hint(token(body), body)
        assert found is None or found.session_id == json.loads(body)["identity_verification_id"]


@settings(max_examples=40)
@given(place=st.sampled_from(places(jwk())), junk=JUNK)
def test_a_malformed_key_verifies_nothing(place: tuple[str | int, ...], junk: object) -> None:
    """A key is taken whole or not at all."""
    keys = Keys(known={KID: put(jwk(), place, junk)})
    harmless = place == ("created_at",) or (place == ("expired_at",) and junk is None)
    unexpired = place == ("expired_at",) and type(junk) is int and junk > TIME
    same = put(jwk(), place, junk) == jwk()
    assert refused(GOOD, BODY, keys) is not (harmless or unexpired or same)


@every(
    "key",
    [
        jwk(ec.generate_private_key(ec.SECP384R1())),
        jwk(kty="oct"),
        jwk(crv="P-384"),
        jwk(alg="ES384"),
        jwk(use="enc"),
        jwk(kid="another"),
        jwk(x=base64url(b"\0" * 32)),
        jwk(x=base64url(b"\0" * 31)),
        jwk(y=jwk()["x"]),
        jwk(x="!" * 43),
        None,
        "key",
    ],
)
def test_an_invalid_key_is_refused(key: object) -> None:
    """Another kind, another curve, another key, or a point that is not on the curve."""
    assert refused(GOOD, BODY, Keys(known={KID: key}))


def test_another_hash_is_another_algorithm() -> None:
    """A signature by the right key with SHA-384 is none of ES256."""
    signature = KEY.sign(f"{HEAD}.{CLAIMS}".encode(), ec.ECDSA(SHA384()))
    r, s = decode_dss_signature(signature)
    raw = base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    assert refused(f"{HEAD}.{CLAIMS}.{raw}")


# --- keys ---------------------------------------------------------------------------------------


def in_turn(keys: Keys, *steps: Callable[[], str]) -> list[bool]:
    """Which of the tokens were refused, one after the other in one event loop."""

    async def run() -> list[bool]:
        found = []
        for step in steps:
            try:
                await reading(step(), BODY, keys)
                found.append(False)
            except (WebhookRefused, ProviderUnavailable):
                found.append(True)
        return found

    return asyncio.run(run())


def at(keys: Keys, seconds: float, **header: object) -> Callable[[], str]:
    """A token made and read so many seconds from the beginning."""

    def step() -> str:
        keys.clock.seconds = NOW + seconds
        return token(header=header, claims={"iat": int(NOW + seconds)})

    return step


def test_a_key_is_requested_once() -> None:
    """Also by a hundred messages at once."""
    keys = Keys()

    async def run() -> None:
        await asyncio.gather(*(reading(GOOD, BODY, keys) for _ in range(100)))

    asyncio.run(run())
    assert keys.asked == [KID]


def test_a_key_is_fetched_again_after_an_hour() -> None:
    """Plaid says there that it has expired; from then on it verifies nothing."""
    keys = Keys()

    def expired() -> str:
        keys.known[KID] = jwk(expired_at=int(NOW + 10))
        return at(keys, KEY_SECONDS)()

    assert in_turn(keys, at(keys, 0), at(keys, KEY_SECONDS - 1), expired, at(keys, 3700)) == [
        False,
        False,
        True,
        True,
    ]
    assert len(keys.asked) == 2


def test_a_key_is_good_until_the_time_it_expires_at() -> None:
    """An expiry in the future is one; it holds for the kept key too."""
    keys = Keys(known={KID: jwk(expired_at=TIME + 100)})
    assert in_turn(keys, at(keys, 0), at(keys, 99), at(keys, 100)) == [False, False, True]


def test_invented_keys_are_requested_a_few_times_a_minute() -> None:
    """Anybody can send made-up key identifiers; each would be a request to Plaid."""
    keys = Keys()
    flood = [at(keys, 1, kid=f"made-up-{n}") for n in range(40)]
    assert all(in_turn(keys, *flood))
    assert len(keys.asked) == FETCHES_MAX
    # A cached key is not affected; a new one has to wait.
    keys = Keys(known={KID: jwk(), "next": jwk(kid="next")})
    flood = [at(keys, 1, kid=f"made-up-{n}") for n in range(40)]
    later = [at(keys, 2), at(keys, 3, kid="next"), at(keys, 1 + FETCHES_SECONDS, kid="next")]
    assert in_turn(keys, at(keys, 0), *flood, *later)[-3:] == [False, True, False]


def test_an_invalid_key_is_not_fetched_again_for_a_while() -> None:
    """Its identifier is remembered, a bounded number of them."""
    keys = Keys()
    same = [at(keys, seconds, kid="made-up") for seconds in (0, 1, 200, NO_KEY_SECONDS + 1)]
    assert all(in_turn(keys, *same))
    assert keys.asked == ["made-up", "made-up"]
    many = [at(keys, 1000 + 60.0 * n, kid=f"made-up-{n}") for n in range(3 * KEYS_MAX)]
    assert all(in_turn(keys, *many))
    assert len(keys.kept._no_keys) <= KEYS_MAX


def test_no_more_than_a_few_keys_are_kept() -> None:
    """Those seen last."""
    known = {f"key-{n}": jwk(kid=f"key-{n}") for n in range(3 * KEYS_MAX)}
    keys = Keys(known=known)
    steps = [at(keys, 60.0 * n, kid=kid) for n, kid in enumerate(known)]
    assert not any(in_turn(keys, *steps))
    assert len(keys.kept._keys) == KEYS_MAX


def test_a_message_that_cannot_be_checked_now_is_503_and_not_a_refusal() -> None:
    """Plaid sends a message again after a 503; it may give up on an address that answers 400."""
    keys = Keys(known={KID: jwk(), "next": jwk(kid="next")})
    in_turn(keys, *[at(keys, 1, kid=f"made-up-{n}") for n in range(FETCHES_MAX)])
    with pytest.raises(ProviderUnavailable) as refusal:
        hint(at(keys, 2, kid="next")(), BODY, keys)
    assert refusal.value.retry_after >= 1
    with pytest.raises(ProviderUnavailable):
        hint(GOOD, BODY, Keys(down=True))


def test_strangers_do_not_delay_a_new_key_for_a_retrieved_session() -> None:
    """They cannot name one; their inventions use up only their own allowance."""
    keys = Keys(known={"next": jwk(kid="next")})
    in_turn(keys, *[at(keys, 1, kid=f"made-up-{n}") for n in range(40)])
    sent = at(keys, 2, kid="next")()
    found = asyncio.run(reading(sent, BODY, keys, asked_about=(SESSION,)))
    assert found is not None
    assert found.session_id == SESSION


def test_a_known_key_waits_for_no_other() -> None:
    """The same for a new one: Plaid may take long to answer about a key that is made up."""
    keys = Keys(known={KID: jwk(), "next": jwk(kid="next")})

    async def run() -> None:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def slow(kid: str) -> PublicKey:
            if kid == "made-up":
                asked.set()
                await answered.wait()
            return await keys.fetch(kid)

        keys.kept = WebhookKeys(slow, keys.clock)
        await reading(GOOD, BODY, keys)
        stranger = asyncio.create_task(reading(token(header={"kid": "made-up"}), BODY, keys))
        await asked.wait()
        assert await reading(GOOD, BODY, keys) is not None
        assert await reading(token(header={"kid": "next"}), BODY, keys) is not None
        assert not stranger.done()
        answered.set()
        with pytest.raises(WebhookRefused):
            await stranger

    asyncio.run(asyncio.wait_for(run(), 10))


@pytest.mark.parametrize("trouble", [{"down": True}, {"status": 503}, {"status": 429}])
def test_a_message_is_refused_while_plaid_is_unreachable(trouble: dict[str, Any]) -> None:
    """Plaid sends it again; the state then fetched counts."""
    keys = Keys(**trouble)

    def restored() -> str:
        keys.down, keys.status = False, 200
        return at(keys, 5)()

    assert in_turn(keys, at(keys, 0), restored) == [True, False]


# --- over HTTP ----------------------------------------------------------------------------------


def test_the_simulators_messages_are_authentic_through_a_rotation_of_its_key() -> None:
    """The key comes over HTTP; after a rotation the next one is fetched."""

    async def run() -> tuple[list[str], list[str]]:
        clock = FixedClock()
        simulator = simulated.Plaid(clock.now)
        content = simulator.credentials
        credentials = msgspec.convert(content, plaid.PlaidCredentials)
        found = []
        async with serve(simulator) as served:
            provider = plaid.Plaid(
                credentials, base_url=served.url, fingerprint=fingerprint, clock=clock
            )
            for _ in range(2):
                for session in simulator.sessions[:3]:
                    sent = simulator.webhook(session.session_id)
                    headers = {name.lower(): value for name, value in sent.headers}
                    answer = await provider.read_webhook(headers, sent.body)
                    assert answer is not None
                    found.append(answer.session_id)
                simulator.rotate_key()
            await provider.close()
            return found, [seen.path for seen in served.requests]

    found, asked = asyncio.run(run())
    assert (
        found == ["idv_VerifiedLicense", "idv_VerifiedSecondBuyer", "idv_VerifiedSameDocument"] * 2
    )
    assert asked == ["/webhook_verification_key/get"] * 2
