"""Signing in at an OpenID Connect provider: admitted people, and refused ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric import rsa

from countersign.core.access.audit import find_audit
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.role import Role
from countersign.core.gate.route import Reply
from countersign.staff.people import roles
from tests.people.crew import Console, in_console, token_of
from tests.remembered.device import ORIGIN, Passkey
from tests.support.acts import done
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider, openid_provider

T = TypeVar("T")
pytestmark = pytest.mark.one_engine
RETURN = "/console/provider/return"
KEY = rsa.generate_private_key(65537, 2048)


class Browser:
    """Cookies, and the way of a person to the provider and back."""

    def __init__(self, console: Console, provider: OpenIdProvider, origin: str = ORIGIN) -> None:
        self.console, self.provider, self.origin = console, provider, origin
        self.cookies: dict[str, str] = {}
        self.headers: dict[str, str] = {}

    async def ask(self, method: str, path: str, form: Mapping[str, str] | None = None) -> Reply:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"origin": self.origin, "content-type": "application/x-www-form-urlencoded"}
        headers |= self.headers | ({"cookie": cookies} if cookies else {})
        reply = await self.console.http(method, path, headers, urlencode(form or {}).encode())
        for name, value in reply.headers:
            if name == b"set-cookie":
                pair, _, rest = value.decode().partition(";")
                assert "HttpOnly; SameSite=Strict" in rest
                kept, _, text = pair.partition("=")
                self.cookies[kept] = text
        refused = dict(reply.headers).get(b"location", b"").decode()
        return await self.ask("GET", refused) if "?refused=" in refused else reply

    @property
    def session(self) -> str:
        return self.cookies.get("csc-session", "")

    async def go(self, page: str = "provider") -> dict[str, str]:
        """To the provider, and back with these parameters; the form is not sent yet."""
        reply = await self.ask("GET", f"/console/{page}")
        assert reply.status == 303, reply.body
        return await follow(location(reply), self.origin)

    async def send(self, came: Mapping[str, str]) -> Reply:
        """Press the button of the page that the provider leads to."""
        assert (await self.ask("GET", f"{RETURN}?{urlencode(came)}")).status == 200
        return await self.ask("POST", RETURN, came)

    async def sign_in(self) -> Reply:
        return await self.send(await self.go())

    async def come_in(self, link: str) -> Reply:
        await self.ask("POST", "/console/link", {"link": link})
        return await self.send(await self.go("provider?for=link"))


async def follow(address: str, origin: str = ORIGIN) -> dict[str, str]:
    """The parameters with which the provider sends a browser back."""
    async with httpx2.AsyncClient(verify=False) as client:
        led = await client.get(address)
    assert led.status_code == 302
    back = led.headers["location"]
    assert back.startswith(f"{origin}{RETURN}?")
    return {name: values[-1] for name, values in parse_qs(urlsplit(back).query).items()}


def location(reply: Reply) -> str:
    return dict(reply.headers)[b"location"].decode()


@pytest.fixture(scope="module")
def listening() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
def provider(listening: OpenIdProvider) -> OpenIdProvider:
    """Give a provider that does all as it should."""
    fresh = OpenIdProvider(listening.port, redirect_uris={f"{ORIGIN}{RETURN}"}, keys={"first": KEY})
    listening.__dict__ |= fresh.__dict__
    return listening


def with_ada(
    folder: Path,
    provider: OpenIdProvider,
    work: Callable[[Console, Browser], Awaitable[T]],
    **settings: str,
) -> T:
    """The result of this function after Ada, an owner, has come in with her provider account."""

    async def run(console: Console) -> T:
        browser = Browser(console, provider)
        _, link = await console.link("Ada", Role.OWNER)
        came = await browser.come_in(link)
        assert (came.status, location(came)) == (303, "/console/"), came.body
        return await work(console, browser)

    return in_console(folder, run, **provider.environment | settings)


def problem(reply: Reply) -> tuple[int, str]:
    """The status, and the page's error."""
    return reply.status, reply.body.decode().partition("</strong></p><p>")[2].partition("<")[0]


REFUSED = (403, "This browser did not start this sign-in, or it took too long. Start again.")
INVALID = (403, "The provider&#39;s response failed a check, so you were not signed in.")
UNKNOWN = (403, "No one here signs in with that account. Accept an invitation first.")
DOWN = (503, "Your sign-in provider cannot be reached. Try again later.")


def assert_says(reply: Reply, said: tuple[int, str]) -> None:
    status, words = problem(reply)
    assert (status, words[: len(said[1])]) == said


def test_a_person_comes_in_and_signs_in_there(tmp_path: Path, provider: OpenIdProvider) -> None:
    """As the invited person; the provider's data about the person is not stored."""

    async def work(console: Console, browser: Browser) -> str:
        first = browser.session
        assert location(await browser.sign_in()) == "/console/"
        assert browser.session != first
        signed = await console.host.who(browser.session)
        assert signed is not None
        assert signed.name == "Ada"
        people = await done(roles.members, console.deployment.people, DEPLOYMENT)
        [(ada, _)] = people
        assert (ada.has_provider, ada.has_passkey) == (True, False)
        assert ada.last_used_at is not None
        found = await console.deployment.database.read(find_audit, signed.id)
        said = [dict(entry.details).get("provider") for entry in found]
        assert said == [None, provider.issuer, provider.issuer]
        return repr(found)

    text = with_ada(tmp_path, provider, work)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "console").rglob("*.db*"))
    assert not [one for one in (provider.person, "ada@example.org") if one.encode() in kept]
    assert provider.person not in text


def test_each_sign_in_has_its_own_values(tmp_path: Path, provider: OpenIdProvider) -> None:
    """`state`, `nonce` and the challenge: 256 bits each, and only a session asks for more."""

    async def work(console: Console, browser: Browser) -> None:
        provider.asked.clear()
        for page in ("provider", "provider", "provider?for=again"):
            await browser.go(page)
        asked = [query for path, query in provider.asked if path == "/authorize"]
        for name in ("state", "nonce", "code_challenge"):
            assert len({query[name] for query in asked}) == 3
            assert {len(query[name]) for query in asked} == {43}
        assert [query.get("max_age") for query in asked] == [None, None, "0"]
        assert {query["scope"] for query in asked} == {"openid"}

    with_ada(tmp_path, provider, work)


def test_one_flow_asks_the_provider_once(tmp_path: Path, provider: OpenIdProvider) -> None:
    """However often it is sent: a provider locks out who asks it too often."""

    async def work(console: Console, browser: Browser) -> None:
        came = await browser.go()
        flow = browser.cookies["csc-provider"]
        provider.asked.clear()
        for _ in range(3):
            browser.cookies["csc-provider"] = flow
            reply = await browser.ask("POST", RETURN, {**came, "code": "x"})
            assert_says(reply, REFUSED)
        assert [path for path, _ in provider.asked] == ["/token"]
        assert location(await browser.sign_in()) == "/console/"

    with_ada(tmp_path, provider, work)


def test_one_address_has_a_limit_at_the_provider_and_others_continue(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Thirty times in ten minutes, with as many flows as it likes."""

    async def work(console: Console, browser: Browser) -> None:
        stranger = Browser(console, provider)
        stranger.headers, replies = {"x-forwarded-for": "203.0.113.9"}, list[Reply]()
        provider.asked.clear()
        for _ in range(32):
            state = (await stranger.go())["state"]
            replies.append(
                await stranger.ask("POST", RETURN, {"state": state, "code": "x", "iss": "x"})
            )
        assert_says(replies[-1], DOWN)
        assert sum(path == "/token" for path, _ in provider.asked) <= 30
        assert location(await browser.sign_in()) == "/console/"
        console.clock.seconds += 601
        state = (await stranger.go())["state"]
        again = await stranger.ask("POST", RETURN, {"state": state, "code": "x", "iss": "x"})
        assert again.status == 403

    with_ada(tmp_path, provider, work, TRUSTED_PROXIES="127.0.0.1")


def test_a_failing_provider_is_asked_once_for_all_waiting_people(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Strangers at the sign-in page do not cause a request each."""

    async def work(console: Console, browser: Browser) -> None:
        provider.asked.clear()
        provider.broken = {"/tenant/.well-known/openid-configuration": (500, b"")}
        console.clock.seconds += 301
        asked = [browser.ask("GET", "/console/provider") for _ in range(20)]
        assert {reply.status for reply in await asyncio.gather(*asked)} == {503}
        assert len(provider.asked) == 1

    with_ada(tmp_path, provider, work)


LIES: dict[str, dict[str, Any]] = {
    "nonce": {"nonce": "x" * 43},
    "no nonce": {"nonce": None},
    "issuer": {"iss": "http://127.0.0.1/other"},
    "audience": {"aud": "another"},
    "no audience": {"aud": None},
    "party": {"aud": [CLIENT_ID, "another"], "azp": "another"},
    "no party": {"aud": [CLIENT_ID, "another"]},
    "end": {"exp": 1},
    "end of a kind": {"exp": "soon"},
    "no end": {"exp": None},
    "future": {"iat": 2**40},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "long subject": {"sub": "a" * 256},
    "subject of a kind": {"sub": ["248289761001"]},
    "time of a kind": {"auth_time": "now"},
    "time out of range": {"auth_time": 10**300},
}


def test_a_token_with_other_claims_signs_in_no_one(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Each claim that a client must check (OpenID Connect Core §3.1.3.7)."""

    async def work(console: Console, browser: Browser) -> None:
        before = browser.session
        for lie in LIES.values():
            provider.claims = lie
            assert_says(await browser.sign_in(), INVALID)
        assert browser.session == before

    with structlog.testing.capture_logs() as logged:
        with_ada(tmp_path, provider, work)
    kinds = [one["kind"] for one in logged if one["event"] == "provider_failed"]
    assert kinds[:5] == [
        "InvalidClaimError nonce",
        "MissingClaimError nonce",
        "InvalidClaimError iss",
        "InvalidClaimError aud",
        "MissingClaimError aud",
    ]
    assert not [one for one in kinds if "248289761001" in one]


def test_a_token_signed_otherwise_signs_in_no_one(tmp_path: Path, provider: OpenIdProvider) -> None:
    """Unsigned, with the client's secret, with an unpublished key, with another hash."""

    async def work(console: Console, browser: Browser) -> None:
        stranger = rsa.generate_private_key(65537, 2048)
        for signing in (
            (None, "none"), (CLIENT_SECRET * 2, "HS256"), (stranger, "RS256"), (KEY, "RS512"),
        ):  # fmt: skip
            provider.signing = signing
            assert_says(await browser.sign_in(), INVALID)

    with_ada(tmp_path, provider, work)


def test_a_new_key_is_known_at_once(tmp_path: Path, provider: OpenIdProvider) -> None:
    """Of each kind that is on the list; the client authenticates in either way."""

    async def work(console: Console, browser: Browser) -> None:
        for algorithm in ("ES256", "PS256"):
            provider.roll_over(algorithm)
            assert (await browser.sign_in()).status == 303
        del provider.keys["first"]
        provider.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        console.clock.seconds += 301
        provider.off += 301
        assert (await browser.sign_in()).status == 303

    with_ada(tmp_path, provider, work)


def test_a_response_counts_only_in_the_requesting_browser(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Once, for ten minutes; not in another browser, nor with another one's response."""

    async def work(console: Console, browser: Browser) -> None:
        other = Browser(console, provider)
        came = await browser.go()
        for kept in ("", "1.x.in", f"{'9' * 50}.x.in"):
            other.cookies = {"csc-provider": kept} if kept else {}
            assert_says(await other.send(came), REFUSED)
        theirs = await other.go()
        assert_says(await other.send(came), REFUSED)
        assert_says(await other.send({**theirs, "state": came["state"]}), REFUSED)
        # The code of another flow: its verifier is not this one's.
        assert_says(await other.send({**theirs, "code": came["code"]}), REFUSED)
        flow = browser.cookies["csc-provider"]
        came = await browser.go()
        before = dict(browser.cookies)
        assert flow != before["csc-provider"]
        assert (await browser.send(came)).status == 303
        browser.cookies = before
        assert_says(await browser.send(came), REFUSED)
        came = await browser.go()
        console.clock.seconds += 601
        assert_says(await browser.send(came), REFUSED)

    with_ada(tmp_path, provider, work)


def test_a_response_of_another_provider_is_refused(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Before its code is sent anywhere (RFC 9207)."""

    async def work(console: Console, browser: Browser) -> None:
        for came in ({"iss": "https://evil.example"}, {"iss": ""}, {"state": ""}, {"state": "é"}):
            response = await browser.go() | came
            provider.asked.clear()
            assert_says(await browser.send(response), INVALID if "iss" in came else REFUSED)
            assert provider.asked == []

    with_ada(tmp_path, provider, work)


def test_a_person_refused_by_the_provider_is_told_so(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """The provider's own text is not shown."""

    async def work(console: Console, browser: Browser) -> None:
        state = (await browser.go())["state"]
        denied = {"error": "access_denied", "state": state, "iss": provider.issuer}
        reply = await browser.send(denied | {"error_description": "<b>call us</b>"})
        assert_says(reply, (403, "Your sign-in provider did not sign you in."))
        assert b"call us" not in reply.body

    with_ada(tmp_path, provider, work)


def test_an_unconnected_account_signs_in_no_one(tmp_path: Path, provider: OpenIdProvider) -> None:
    """Nor does one of the same name at another issuer, nor that of a removed person."""

    async def work(console: Console, browser: Browser) -> None:
        ada = provider.person
        provider.person = "someone else"
        assert_says(await browser.sign_in(), UNKNOWN)
        eve = Browser(console, provider)
        id_, link = await console.link("Eve", Role.SUPPORT)
        assert (await eve.come_in(link)).status == 303
        await done(roles.remove, console.deployment.people, id_, DEPLOYMENT)
        assert await console.host.who(eve.session) is None
        assert_says(await eve.sign_in(), UNKNOWN)
        provider.person = ada
        assert (await browser.sign_in()).status == 303

    with_ada(tmp_path, provider, work)


def test_a_person_with_the_wrong_account_chooses_another(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """The provider would take the same one without a question, for ever."""

    async def work(console: Console, browser: Browser) -> None:
        ada, provider.person = provider.person, "someone else"
        refused = (await browser.sign_in()).body.decode()
        assert '/console/provider?for=in&amp;other=1"' in refused
        provider.asked.clear()
        came = await browser.go("provider?for=in&other=1")
        assert provider.asked[-1][1]["prompt"] == "select_account"
        assert_says(await browser.send(came), UNKNOWN)
        provider.person = ada
        assert (await browser.send(await browser.go("provider?for=in&other=1"))).status == 303

    with_ada(tmp_path, provider, work)


def test_one_signs_out_of_the_provider_too(tmp_path: Path, provider: OpenIdProvider) -> None:
    """By a link of the page that one signs out to; without an address there, it says so."""

    async def work(console: Console, browser: Browser) -> None:
        out = await browser.ask("GET", "/console/sign-in?said=signed_out")
        assert b'href="/console/provider?for=out"' in out.body
        assert b"for=out" not in (await browser.ask("GET", "/console/sign-in")).body
        lacking = (503, "The provider has no sign-out page, or cannot be reached.")
        assert_says(await browser.ask("GET", "/console/provider?for=out"), lacking)
        own = f"http://{provider.host}/out?tenant=1"
        for address, status in (("http://sso.example/out", 503), (own, 303)):
            provider.metadata = {"end_session_endpoint": address}
            console.clock.seconds += 301
            assert (await browser.ask("GET", "/console/provider?for=out")).status == status
        led = await browser.ask("GET", "/console/provider?for=out")
        assert location(led) == f"{own}&client_id=countersign+console"

    with_ada(tmp_path, provider, work)


def test_a_link_connects_one_account_with_one_person(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """A connected sign-in stays with its person; a new link replaces it."""

    async def work(console: Console, browser: Browser) -> None:
        eve = Browser(console, provider)
        _, link = await console.link("Eve", Role.SUPPORT)
        taken = (403, "Someone else here signs in with that account.")
        assert_says(await eve.come_in(link), taken)
        provider.person = "eve"
        both = [await eve.go("provider?for=link") for _ in range(1)]
        assert (await eve.send(both[0])).status == 303
        gone = await eve.ask("GET", "/console/provider?for=link")
        assert_says(gone, (403, "The link does not work: it was used, replaced, or has expired."))
        # The way back, with a passkey in place of the account.
        people = console.deployment.people
        back = token_of((await done(roles.way_back, people, "Eve", DEPLOYMENT)).link)
        await console.come_in(back, Passkey())
        assert await console.host.who(eve.session) is None
        assert_says(await eve.sign_in(), UNKNOWN)

    with_ada(tmp_path, provider, work)


def test_a_link_comes_in_once_for_two_at_the_same_moment(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    async def work(console: Console, browser: Browser) -> None:
        _, link = await console.link("Eve", Role.SUPPORT)
        provider.person = "eve"
        flows = []
        for _ in range(3):
            began = await console.host.go_to_provider("link", link=link)
            assert not isinstance(began, str)
            flows.append((began[1], await follow(began[0])))
        host = console.host
        done = await asyncio.gather(
            *(host.back_from_provider(flow, came, link=link) for flow, came in flows)
        )
        assert sorted(isinstance(one, str) for one in done) == [False, True, True]

    with_ada(tmp_path, provider, work)


async def is_fresh(console: Console, browser: Browser) -> bool:
    signed = await console.host.who(browser.session)
    return signed is not None and signed.is_fresh


def test_a_session_is_as_fresh_as_the_provider_says(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """A person who signed in there long ago, or at an unknown time, signs in again first."""

    async def work(console: Console, browser: Browser) -> None:
        assert await is_fresh(console, browser)
        console.clock.seconds += 301
        provider.off += 301
        await browser.sign_in()
        assert not await is_fresh(console, browser)
        provider.claims = {"auth_time": None}
        await browser.sign_in()
        assert not await is_fresh(console, browser)
        provider.claims = {}
        came = await browser.go("provider?for=again&back=all/state")
        session = browser.session
        reply = await browser.send(came)
        assert location(reply) == "/console/all/state?said=provider"
        assert browser.session == session
        assert await is_fresh(console, browser)

    with_ada(tmp_path, provider, work)


def test_only_the_person_of_the_session_makes_it_fresh(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """By signing in now: an older time, or none, does not count."""

    async def work(console: Console, browser: Browser) -> None:
        not_now = (403, "Your provider does not confirm that you signed in just now.")
        console.clock.seconds += 301
        provider.off += 301
        for claims in ({"auth_time": provider.now() - 70}, {"auth_time": None}):
            provider.claims = dict(claims)
            assert_says(await browser.send(await browser.go("provider?for=again")), not_now)
        provider.claims, provider.person = {}, "eve"
        assert_says(await browser.send(await browser.go("provider?for=again")), UNKNOWN)
        provider.person = "248289761001"
        came = await browser.go("provider?for=again")
        await console.sign_out(browser.session)
        assert_says(await browser.send(came), UNKNOWN)
        for unknown in ("provider?for=again", "provider?for=other"):
            reply = await Browser(console, provider).ask("GET", f"/console/{unknown}")
            assert reply.status in {303, 403}

    with_ada(tmp_path, provider, work)


def test_the_redirect_uri_is_a_page_of_the_console(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    async def work(console: Console, browser: Browser) -> None:
        for back in ("//evil.example", "https:%2F%2Fevil.example", "a%0d%0aset-cookie: b=c"):
            reply = await browser.send(await browser.go(f"provider?for=again&back={back}"))
            assert location(reply).startswith("/console/")
            assert "\n" not in location(reply)

    with_ada(tmp_path, provider, work)


DISCOVERY = "/tenant/.well-known/openid-configuration"
BROKEN: dict[str, tuple[str, tuple[int, bytes]]] = {
    "down": (DISCOVERY, (503, b"")),
    "no object": (DISCOVERY, (200, b"[]")),
    "another issuer": (DISCOVERY, (200, b'{"issuer": "https://evil.example"}')),
    "too large": (DISCOVERY, (200, b" " * 300_000 + b"{}")),
    "deep": (DISCOVERY, (200, b"[" * 100_000)),
    "no keys": ("/keys", (500, b"{}")),
    "no tokens": ("/token", (401, b'{"error": "invalid_client"}')),
    "tokens in words": ("/token", (200, b"<html>")),
}


def test_a_failing_provider_is_reported_in_words(tmp_path: Path, provider: OpenIdProvider) -> None:
    """Wherever it fails; a second later all is well."""

    async def work(console: Console, browser: Browser) -> None:
        for path, response in BROKEN.values():
            console.clock.seconds += 301
            provider.off += 301
            provider.broken = {path: response}
            reply = await browser.ask("GET", "/console/provider")
            if path != DISCOVERY:
                reply = await browser.send(await follow(location(reply)))
            assert_says(reply, DOWN)
            provider.broken = {}
            assert (await browser.sign_in()).status == 303
        for empty in (b"{}", b'{"keys": 1}', b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'):
            provider.broken = {"/keys": (200, empty)}
            assert_says(await browser.sign_in(), INVALID)
        provider.broken = {"/token": (200, b"{}")}
        assert_says(await browser.sign_in(), INVALID)

    with_ada(tmp_path, provider, work)


def test_secrets_are_sent_only_over_encryption(tmp_path: Path, provider: OpenIdProvider) -> None:
    """Or stays on this machine."""

    async def work(console: Console) -> None:
        for url in ("http://example.org/token", "ftp://x", "https://[", 7, None):
            provider.metadata = {"token_endpoint": url}
            assert_says(await Browser(console, provider).ask("GET", "/console/provider"), DOWN)

    in_console(tmp_path, work, **provider.environment)


def test_an_unreachable_provider_leaves_passkeys_working(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """Passkeys still work, and without a provider there is no way to one."""

    async def work(console: Console) -> list[int]:
        browser = Browser(console, provider)
        assert_says(await browser.ask("GET", "/console/provider"), DOWN)
        await console.person("Ada", Role.OWNER)
        return [(await browser.ask("GET", "/console/sign-in")).status]

    nowhere = provider.environment | {"OIDC_ISSUER": "http://127.0.0.1:9"}
    assert in_console(tmp_path, work, **nowhere) == [200]


def test_without_a_provider_no_link_leads_to_one(tmp_path: Path, provider: OpenIdProvider) -> None:
    async def work(console: Console) -> None:
        browser = Browser(console, provider)
        for page in ("provider", "provider/return"):
            assert location(await browser.ask("GET", f"/console/{page}")).startswith(
                "/console/sign-in"
            )
        assert b"Sign in with 127" not in (await browser.ask("GET", "/console/sign-in")).body

    in_console(tmp_path, work)


def test_the_provider_suffices_without_passkeys_in_the_browser(
    tmp_path: Path, provider: OpenIdProvider
) -> None:
    """An attacker's session planted in the browser before does not become the new one."""
    own = "http://192.0.2.7:4711"
    provider.redirect_uris = {f"{own}{RETURN}"}

    async def work(console: Console) -> None:
        browser = Browser(console, provider, own)
        shown = await browser.ask("GET", "/console/sign-in")
        assert (shown.status, b"Sign in with 127.0.0.1" in shown.body) == (200, True)
        _, link = await console.link("Ada", Role.OWNER)
        browser.cookies["csc-session"] = planted = "csign_ps_" + "a" * 49
        assert (await browser.come_in(link)).status == 303
        assert browser.session != planted
        shown = await browser.ask("GET", "/console/passkey?back=all/state")
        assert b"Sign in again with 127.0.0.1" in shown.body

    in_console(tmp_path, work, PUBLIC_URL=own, **provider.environment)
