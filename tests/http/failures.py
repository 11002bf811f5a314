"""Every refusal, and its required form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from countersign.base.errors import (
    REFUSALS,
    Forbidden,
    InvalidApiKey,
    InvalidClientToken,
    Retryable,
    Unauthorized,
)
from countersign.core.access.key import Scope
from tests.http import wire
from tests.http.backstage import Operator

NOTICE = "/v1/notices/ab1263"
ACKNOWLEDGE = NOTICE + "/acknowledge"
VERIFY = "/v1/buyers/verify"
JSON = b"application/json"
INITIALED = b'{"initials_per_line":["A","B","C","D"]}'

ERRORS = {error.code: error for error in REFUSALS}


@dataclass(frozen=True)
class Failure:
    """An answer that must be a failure with this code; `help_base` begins its `Link`."""

    label: str
    code: str
    method: bytes
    answer: wire.Answer
    help_base: str


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Someone who asks a server, with keys by name."""

    url: str
    public_url: str
    operator: Operator
    account_id: str
    keys: Mapping[str, str]

    def send(
        self,
        target: str | bytes,
        method: bytes = b"GET",
        *,
        key: str | None = "test",
        body: bytes = b"",
        media_type: bytes | None = JSON,
        idempotency_key: bytes | None = None,
        authorization: bytes | None = None,
        origin: bytes | None = None,
    ) -> wire.Answer:
        """Send a request as these bytes."""
        headers = []
        if key is not None and authorization is None:
            authorization = b"Bearer " + self.keys[key].encode()
        for name, value in (
            (b"Authorization", authorization),
            (b"Content-Type", media_type if body else None),
            (b"Idempotency-Key", idempotency_key),
            (b"Origin", origin),
        ):
            if value is not None:
                headers.append((name, value))
        raw = target if isinstance(target, bytes) else target.encode("ascii")
        return wire.request(self.url, raw, method=method, headers=tuple(headers), body=body)

    def post(
        self,
        target: str,
        body: bytes,
        *,
        key: str | None = "test",
        media_type: bytes | None = JSON,
        idempotency_key: bytes | None = None,
    ) -> wire.Answer:
        return self.send(
            target,
            b"POST",
            key=key,
            body=body,
            media_type=media_type,
            idempotency_key=idempotency_key,
        )

    def failure(
        self, label: str, code: str, answer: wire.Answer, method: bytes = b"GET"
    ) -> Failure:
        return Failure(label, code, method, answer, f"{self.public_url}/docs/errors")


def make_caller(operator: Operator, url: str, public_url: str | None = None) -> Caller:
    """An account with keys of every kind, on a server."""
    account = operator.account()
    test, live, reader, revoked = operator.keys(
        account, [("test", None), ("live", None), ("test", [Scope.NOTICES_READ]), ("test", None)]
    )
    operator.revoke(revoked.id)
    return Caller(
        url=url,
        public_url=public_url or url,
        operator=operator,
        account_id=account,
        keys={
            "test": test.token,
            "live": live.token,
            "reader": reader.token,
            "revoked": revoked.token,
        },
    )


NOWHERE = [
    "/nowhere",
    "/v1",
    "/v1/",
    "/v2/notices",
    "/V1/notices",
    "/HEALTHZ",
    "/healthz/",
    "/docs/",
    "/docs/errors/x",
    "/metrics",
    "/.git/config",
    "/.well-known/openid-configuration",
    "/.well-known/security.txt",
    "//v1/notices",
    "/v1//notices",
    "/v1/notices/",
    "/v1/notices//acknowledge",
    "/v1/notices/ab1263/",
    "/v1/notices/ab1263/acknowledge/x",
    "/v1%2fnotices/ab1263",
    "/v1/buyers/x",
    "/v1/buyers//status",
    "/v1/../healthz",
    "/./healthz",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/%",
    "/%0",
    "/%zz",
    "/%00",
    "/%ff",
    "/%ed%a0%80",
    "/%0d%0aX-Injected:%201",
    "/v1/notices%00",
    "/v1/notices%20",
    "/" + "a" * 20_000,
    "/" + "/" * 2_000,
    "*",
    "healthz",
]
ODD_IDS = ["%00", "%ff", "%", "%zz", ".", "..", "%ed%a0%80", ";x=1", "%0d%0a", "x" * 20_000, "-"]
ODD_QUERIES = ["version", "=", "version=%ff", "version=%00", "version=1&version=1", "%00=1", "x=1"]
METHODS = [b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"BREW", b"get"]
BODIES = {
    "malformed": b"{",
    "empty": b" ",
    "not UTF-8": b'{"a":"\xff"}',
    "nested": b"[" * 20_000,
    "of another type": b"[]",
    "with an unknown field": b'{"initials_per_line":["A"],"useragent":"x"}',
    "with a key twice": b'{"initials_per_line":[],"initials_per_line":[]}',
    "with a surrogate": b'{"initials_per_line":["\\ud800"]}',
    "with U+0000": b'{"initials_per_line":["\\u0000"]}',
    "with NaN": b'{"initials_per_line":[NaN]}',
}


def ordinary_failures(caller: Caller) -> Iterator[Failure]:
    """Refusals that need nothing special, on the shared server."""
    yield from _addresses_and_methods(caller)
    yield from _keys(caller)
    yield from _requests(caller)
    yield from _rules(caller)
    yield from _clearances(caller)
    yield from _overrides(caller)
    yield from _reviews(caller)
    yield from _checkout_sessions(caller)
    yield _in_progress(caller)


def configured_failures(caller: Caller) -> Iterator[Failure]:
    """Refusals that need a configured rate, or a notice that is not in force."""
    for notice_id in ("scheduled", "withdrawn", "enjoined"):
        answer = caller.send(f"/v1/notices/{notice_id}")
        yield caller.failure(f"{notice_id} notice", "notice_not_in_force", answer)
    answer = caller.post("/v1/notices/withdrawn/acknowledge", INITIALED)
    yield caller.failure("acknowledging a withdrawn notice", "notice_not_in_force", answer, b"POST")
    while (answer := caller.send("/v1/notices")).status == 200:
        pass
    yield caller.failure("too many requests", "rate_limited", answer)


def faults(failure: Failure, anchors: set[str]) -> Iterator[str]:
    """The errors in the form of this failure."""
    answer, headers = failure.answer, failure.answer.headers
    error = ERRORS[failure.code]
    expected = {
        "Status": error.status,
        "Content-Type": "application/json; charset=utf-8",
        "Link": f'<{failure.help_base}#{failure.code}>; rel="help"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    for name, value in expected.items():
        found = answer.status if name == "Status" else headers.get(name)
        if found != value:
            yield f"{name} is {found!r}, not {value!r}"
    if failure.code not in anchors:
        yield f"the page of errors has no anchor {failure.code}"
    if not re.fullmatch(r"req_[0-9a-z]+", headers.get("X-Request-Id", "")):
        yield f"X-Request-Id is {headers.get('X-Request-Id')!r}"
    yield from _faults_of_body(failure)
    retry_after = headers.get("Retry-After")
    if issubclass(error, Retryable) != bool(re.fullmatch(r"[1-9][0-9]*", retry_after or "")):
        yield f"Retry-After is {retry_after!r}"
    challenge = headers.get("WWW-Authenticate")
    if (error in {Unauthorized, InvalidApiKey, InvalidClientToken, Forbidden}) != (
        (challenge or "").startswith("Bearer ")
    ):
        yield f"WWW-Authenticate is {challenge!r}"
    if (failure.code == "method_not_allowed") != ("Allow" in headers):
        yield f"Allow is {headers.get('Allow')!r}"


def _faults_of_body(failure: Failure) -> Iterator[str]:
    if failure.method == b"HEAD":
        if failure.answer.body:
            yield "an answer to HEAD has a body"
        return
    body: object = None
    with suppress(ValueError):
        body = json.loads(failure.answer.body)
    match body:
        case {"error": {"code": failure.code, "message": str(words), **rest}, **more}:
            if rest or more:
                yield f"the body has more members: {failure.answer.body[:200]!r}"
            if not words or not words.isprintable():
                yield f"the message is {words!r}"
        case _:
            yield f"the body is {failure.answer.body[:200]!r}"


def _addresses_and_methods(caller: Caller) -> Iterator[Failure]:
    for target in NOWHERE:
        for key in ("test", None):
            answer = caller.send(target, key=key)
            yield caller.failure(f"GET {target[:60]} with key {key}", "not_found", answer)
    for odd in ODD_IDS:
        for path, code in (
            ("/v1/notices/{}", "notice_not_found"),
            ("/v1/notices/{}/versions", "notice_not_found"),
            ("/v1/acknowledgments/{}", "not_found"),
            ("/v1/buyers/{}/status", "not_found"),
            ("/v1/clearances/{}", "not_found"),
        ):
            answer = caller.send(path.format(odd))
            yield caller.failure(path.format(odd[:20]), code, answer)
        answer = caller.post(f"/v1/notices/{odd}/acknowledge", INITIALED)
        yield caller.failure(f"acknowledging {odd[:20]}", "notice_not_found", answer, b"POST")
    for method in METHODS:
        for target in (NOTICE, "/healthz", "/docs"):
            answer = caller.send(target, method, key=None)
            label = f"{method.decode()} {target}"
            yield caller.failure(label, "method_not_allowed", answer, method)
    for target, code, key in (
        ("/nowhere", "not_found", "test"),
        (ACKNOWLEDGE, "method_not_allowed", "test"),
        (NOTICE, "unauthorized", None),
        (NOTICE, "notice_not_reviewed", "live"),
    ):
        answer = caller.send(target, b"HEAD", key=key)
        yield caller.failure(f"HEAD {target}", code, answer, b"HEAD")


def _keys(caller: Caller) -> Iterator[Failure]:
    for header, code in (
        (b"", "unauthorized"),
        (b"Basic dTpw", "unauthorized"),
        (b"Bearer", "unauthorized"),
        (b"Bearer x", "invalid_api_key"),
        (b"Bearer " + b"x" * 10_000, "invalid_api_key"),
        (b"Bearer \xff\xfe", "invalid_api_key"),
    ):
        answer = caller.send(NOTICE, authorization=header)
        yield caller.failure(f"Authorization: {header[:20]!r}", code, answer)
    yield caller.failure("no key", "unauthorized", caller.send(NOTICE, key=None))
    yield caller.failure("revoked key", "invalid_api_key", caller.send(NOTICE, key="revoked"))
    answer = caller.send("/v1/acknowledgments", key="reader")
    yield caller.failure("key without the scope", "forbidden", answer)


def _requests(caller: Caller) -> Iterator[Failure]:
    for name, body in BODIES.items():
        for target in (ACKNOWLEDGE, VERIFY):
            answer = caller.post(target, body)
            yield caller.failure(f"body {name} to {target}", "invalid_request", answer, b"POST")
    for query in ODD_QUERIES:
        answer = caller.send(f"{NOTICE}?{query}")
        yield caller.failure(f"query {query}", "invalid_request", answer)
    for query in ("limit=0", "after=x", "accepted_after=x", "session_id=%ff"):
        answer = caller.send(f"/v1/acknowledgments?{query}")
        yield caller.failure(f"list with {query}", "invalid_request", answer)
    answer = caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"two words")
    yield caller.failure("Idempotency-Key of two words", "invalid_request", answer, b"POST")
    answer = caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"\xff")
    yield caller.failure("Idempotency-Key of odd bytes", "invalid_request", answer, b"POST")
    for size in (65_537, 200_000):
        answer = caller.post(ACKNOWLEDGE, b" " * size)
        yield caller.failure(f"body of {size}", "payload_too_large", answer, b"POST")
    for media_type in (None, b"text/plain", b"application/json; charset=latin-1", b"\xff"):
        answer = caller.post(ACKNOWLEDGE, INITIALED, media_type=media_type)
        yield caller.failure(f"{media_type!r}", "unsupported_media_type", answer, b"POST")


def _rules(caller: Caller) -> Iterator[Failure]:
    def posted(
        label: str, code: str, target: str, body: bytes, key: str = "test"
    ) -> Iterator[Failure]:
        yield caller.failure(label, code, caller.post(target, body, key=key), b"POST")

    yield caller.failure("live", "notice_not_reviewed", caller.send(NOTICE, key="live"))
    yield from posted("acknowledging live", "notice_not_reviewed", ACKNOWLEDGE, INITIALED, "live")
    other_version = INITIALED[:-1] + b',"notice_version":"0"}'
    yield from posted("other version", "notice_version_mismatch", ACKNOWLEDGE, other_version)
    one_line = b'{"initials_per_line":["A"]}'
    yield from posted("one line", "initials_count_mismatch", ACKNOWLEDGE, one_line)
    blank = INITIALED.replace(b"B", b" ")
    yield from posted("blank line", "empty_initials", ACKNOWLEDGE, blank)
    yield from posted("no test_mode", "mode_mismatch", VERIFY, b"{}")
    yield from posted("live sandbox", "mode_mismatch", VERIFY, b'{"test_mode":true}', "live")
    yield from posted("live clock", "mode_mismatch", "/v1/test/clock/advance", b"{}", "live")
    live = b'{"provider_identity_session_id":"vs_1","shipping_zip":"94111"}'
    yield from posted("live verification", "verification_not_configured", VERIFY, live, "live")
    for code, session_id in (
        ("provider_session_not_found", b"test_session_not_found"),
        ("provider_unavailable", b"test_provider_unavailable"),
    ):
        played = b'{"test_mode":true,"provider_identity_session_id":"%s"}' % session_id
        yield from posted(session_id.decode(), code, VERIFY, played)
    guess = b'{"test_mode":true,"provider_identity_session_id":"vs","shipping_zip":"9411%d"}'
    *_, answer = [caller.post(VERIFY, guess % last) for last in range(6)]
    yield caller.failure("sixth ZIP", "rate_limited", answer, b"POST")
    caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"used")
    answer = caller.post(ACKNOWLEDGE, blank, idempotency_key=b"used")
    yield caller.failure("used key", "idempotency_key_reused", answer, b"POST")


def acknowledged(caller: Caller) -> str:
    """A new acknowledgment of the session `cs`."""
    answer = caller.post(ACKNOWLEDGE, INITIALED[:-1] + b',"session_id":"cs"}')
    return str(json.loads(answer.body)["ack_id"])


def verified(caller: Caller) -> str:
    """A buyer who is verified for the ZIP code 94110."""
    answer = caller.post(VERIFY, b'{"test_mode":true,"shipping_zip":"94110"}')
    return str(json.loads(answer.body)["cbid"])


def clear(caller: Caller, ack_id: str, cbid: str, **more: str) -> str:
    """The decision on an order of the session `cs`, cleared or not."""
    order = {"ack_id": ack_id, "cbid": cbid, "session_id": "cs", "shipping_zip": "94110"} | more
    answer = caller.post("/v1/clearances", json.dumps(order).encode())
    assert answer.status == 200, answer.body
    return str(json.loads(answer.body)["clearance_id"])


def _clearances(caller: Caller) -> Iterator[Failure]:
    """Refusals about an order; "not cleared" is a response."""
    shipped = b'{"carrier":"UPS"}'
    answer = caller.post("/v1/clearances/clr_unknown/fulfilment", shipped)
    yield caller.failure("an unknown clearance", "not_found", answer, b"POST")
    refused = clear(caller, "ack_unknown", "cbid_unknown")
    answer = caller.post(f"/v1/clearances/{refused}/fulfilment", shipped)
    yield caller.failure("not cleared", "clearance_not_granted", answer, b"POST")
    asked = {"return_url": "https://shop.example/", "session_id": "cs_named", "notice_id": "ab1263"}
    session = json.dumps(asked | {"order_reference": "1"}).encode()
    assert caller.post("/v1/checkout_sessions", session).status == 200
    other = b',"session_id":"cs_named","order_reference":"2"}'
    for target, body in (
        (ACKNOWLEDGE, INITIALED[:-1] + other),
        ("/v1/clearances", b'{"ack_id":"a","cbid":"c","shipping_zip":"94110"' + other),
    ):
        answer = caller.post(target, body)
        yield caller.failure(f"other order: {target}", "order_reference_mismatch", answer, b"POST")
    cleared = clear(caller, acknowledged(caller), verified(caller))
    order = f"/v1/clearances/{cleared}/fulfilment"
    answer = caller.post(order, b"{}")
    yield caller.failure("an empty report", "invalid_request", answer, b"POST")
    assert caller.post(order, shipped).status == 200
    answer = caller.post(order, b'{"carrier":"USPS"}')
    yield caller.failure("another carrier", "fulfilment_contradicted", answer, b"POST")


def _overrides(caller: Caller) -> Iterator[Failure]:
    """Refusals of manual overrides."""
    [deciding] = caller.operator.keys(caller.account_id, [("test", [Scope.CLEARANCES_OVERRIDE])])
    key, said = b"Bearer " + deciding.token.encode(), b'{"reason":"case","claimed_user":"u"}'
    unknown = partial(clear, caller, "ack_unknown", "cbid_unknown", session_id="cs_refused")
    for label, code, refused in (
        ("cleared", "order_not_refused", clear(caller, acknowledged(caller), verified(caller))),
        ("unknown goods", "override_not_allowed", unknown()),
        ("by a key", "override_limit_reached", unknown(product_class="accessory")),
    ):
        answer = caller.send(
            f"/v1/clearances/{refused}/override", b"POST", body=said, authorization=key
        )
        yield caller.failure(f"an override: {label}", code, answer, b"POST")


def _reviews(caller: Caller) -> Iterator[Failure]:
    """Decisions on buyers who do not wait for one, or that would change nothing."""
    [reviewing] = caller.operator.keys(caller.account_id, [("test", [Scope.BUYERS_REVIEW])])
    key = b"Bearer " + reviewing.token.encode()
    fields = b'"test_mode":true,"provider_identity_session_id":"test_failed"'
    cbid = json.loads(caller.post(VERIFY, b"{%s}" % fields).body)["cbid"]
    accepting = b'{"decision":"accept_zip","zip":"94110","document":"d","reason":"r"}'
    for label, code, who, body in (
        ("another rule", "review_refused", cbid, accepting),
        ("no ZIP code", "invalid_request", cbid, b'{"decision":"accept_zip","reason":"r"}'),
        ("no reason", "invalid_request", cbid, b'{"decision":"dismiss","reason":" "}'),
        ("not waiting", "not_found", "cbid_unknown", accepting),
    ):
        path = f"/v1/buyers/{who}/review"
        answer = caller.send(path, b"POST", body=body, authorization=key)
        yield caller.failure(f"a review: {label}", code, answer, b"POST")


def _checkout_sessions(caller: Caller) -> Iterator[Failure]:
    """A session that ended, its token, and pages that may not use it."""
    path, current = "/v1/checkout_sessions", "/v1/checkout_sessions/current"
    wanted = b'{"return_url":"https://shop.example/","session_id":"cs","notice_id":"ab1263"}'
    answer = caller.post(path, wanted, key="live")
    yield caller.failure("an order without a name", "order_reference_missing", answer, b"POST")
    named = wanted[:-1] + b',"order_reference":"1"}'
    answer = caller.post(path, named, key="live")
    yield caller.failure("an origin of nobody", "origin_not_registered", answer, b"POST")
    answer = caller.send(current)
    yield caller.failure("a key is no token", "invalid_client_token", answer)
    made = json.loads(caller.post(path, wanted).body)
    token = b"Bearer " + made["client_token"].encode()
    answer = caller.send(current, authorization=token, origin=b"https://evil.example")
    yield caller.failure("another page", "origin_not_allowed", answer)
    cancel = f"{path}/{made['checkout_session_id']}/cancel"
    assert caller.post(cancel, b"{}").status == 200
    answer = caller.post(cancel, b"{}")
    yield caller.failure("cancelled twice", "checkout_session_closed", answer, b"POST")


def _in_progress(caller: Caller) -> Failure:
    def act() -> wire.Answer:
        return caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"running")

    with ThreadPoolExecutor(2) as threads, caller.operator.acts_held():
        done, _ = wait([threads.submit(act) for _ in range(2)], return_when=FIRST_COMPLETED)
        (answer,) = (call.result() for call in done)
        return caller.failure("still running", "idempotency_in_progress", answer, b"POST")
