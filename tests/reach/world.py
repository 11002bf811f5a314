"""Two accounts that share a buyer, both with something in each mode, in this process."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import insert

from countersign.base.db.tables import people, person_grants, person_sessions
from countersign.base.values import Mode, from_ns, timed_id
from countersign.core.access.account import find_account, register
from countersign.core.access.key import (
    PEOPLE_SCOPES,
    PERSON_ENTROPY_BYTES,
    PERSON_SESSION,
    Scope,
    compose_token,
)
from countersign.core.access.keys import create_key
from countersign.core.access.reach import AccountReach
from countersign.core.access.role import Role
from countersign.core.gate.route import Reply, Route
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.server.app import App
from tests.http.backstage import notice_file
from tests.support.acts import done
from tests.support.document import committed_document, resolved
from tests.support.in_process import call_of, encoded, whole
from tests.verification.inside import Insider, Stage

NOTICE: Final = "law"
SHOP: Final = "https://shop.example"
ZIP: Final = "94105"
_DOCUMENT: Final = committed_document()
_NAMED: Final = re.compile(
    r"\b(ack|clr|cbid_test|cbid|hold|mat|we|key|per|chk|evt|acct|ps|ver)_\w+"
)
_PARAMETER: Final = re.compile(r"\{(\w+)\*?\}")


@dataclass
class Party:
    """One account in one mode, and its objects by the prefix of their identifier."""

    account_id: str
    mode: Mode
    key: str = ""
    has: dict[str, str] = field(default_factory=dict)
    members: dict[Role, str] = field(default_factory=dict)
    """The sessions of its people."""

    @property
    def reach(self) -> AccountReach:
        return AccountReach(self.account_id, self.mode)


class World:
    """The parties, and the application in this process."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        stage.restart(CONSOLE="true", RATE_LIMIT="off")
        first = stage.insider()
        self.insiders: list[Insider] = [first, stage.insider(first.playing)]
        self.app = App(stage.opened)
        notices = stage.opened.notices
        content = parse_notice_file(notice_file(NOTICE, "1").encode())
        stage.do(done(publishing.publish, notices, content, ""))
        review = done(
            publishing.review, notices, content.id, content.version, by="A. Reader", against=SHOP
        )
        stage.do(review)
        stage.do(notices.registry.notices(fresh=True))
        self.parties = [
            self._filled(Party(one.account_id, mode), number)
            for number, one in enumerate(self.insiders)
            for mode in Mode
        ]

    def reopen(self) -> None:
        """Open the deployment again: its connections are new."""
        self.stage.restart(CONSOLE="true", RATE_LIMIT="off")
        self.app = App(self.stage.opened)

    def ask(self, token: str, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Ask the application, as over HTTP."""
        sent = b"" if body is None else json.dumps(body).encode()
        given = {"authorization": f"Bearer {token}", "content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        call = call_of(method, path, encoded(given | {"content-length": str(len(sent))}))
        return self.stage.do(self.app.handle(call, whole(sent)))

    def _filled(self, party: Party, number: int) -> Party:
        stage, opened, has = self.stage, self.stage.opened, party.has
        account = stage.do(find_account(opened.access, party.account_id))
        scopes = frozenset(Scope) - PEOPLE_SCOPES
        party.key = stage.do(done(create_key, opened.access, account.id, party.mode, scopes)).token
        spare = stage.do(done(create_key, opened.access, account.id, party.mode))
        stage.do(done(register, opened.access, party.account_id, f"{SHOP}:{8000 + number}"))

        def post(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
            stage.clock.now += timedelta(milliseconds=7)
            reply = self.ask(party.key, "POST", path, body)
            assert reply.status == 200, reply.body
            found: dict[str, Any] = json.loads(reply.body)
            return found

        mark = f"{party.account_id[-6:]}-{party.mode.value}"
        if party.mode is Mode.TEST:
            verified = {
                "test_mode": True,
                "provider_identity_session_id": mark,
                "shipping_zip": ZIP,
            }
            cbid, zip_ = post("/v1/buyers/verify", verified)["cbid"], ZIP
            failed = verified | {"provider_identity_session_id": "test_failed"}
            waiting = post("/v1/buyers/verify", failed)["cbid"]
        else:
            insider = self.insiders[number]
            person = insider.part("verified")
            cbid, zip_ = insider.verify(person).cbid, person.shipping_zip
            waiting = insider.verify(insider.part("verified", 1), "10001").cbid
        acknowledged = {
            "initials_per_line": ["JD"] * 3,
            "session_id": f"session-{mark}",
            "order_reference": f"order-{mark}",
            "cbid": cbid,
        }
        ack = post(f"/v1/notices/{NOTICE}/acknowledge", acknowledged)["ack_id"]
        other = post(f"/v1/notices/{NOTICE}/acknowledge", {"initials_per_line": ["JD"] * 3})[
            "ack_id"
        ]
        order = {
            "ack_id": ack, "cbid": cbid, "shipping_zip": zip_, "session_id": f"session-{mark}",
            "order_reference": f"order-{mark}", "product_class": "accessory",
        }  # fmt: skip
        cleared = post("/v1/clearances", order)
        assert cleared["cleared"], cleared
        post(f"/v1/clearances/{cleared['clearance_id']}/fulfilment", {"carrier": "UPS"})
        session = {"return_url": f"{SHOP}:{8000 + number}/back", "session_id": f"link-{mark}",
                   "order_reference": f"link-{mark}",
                   "notice_id": NOTICE, "cbid": cbid}  # fmt: skip
        checkout = post("/v1/checkout_sessions", session)["checkout_session_id"]
        endpoint = post("/v1/webhook_endpoints", {"url": f"https://{mark}.example/hook"})
        matter = post("/v1/matters", {"name": mark, "orders": []})["matter_id"]
        hold = post("/v1/holds", {"subject": other, "reason": mark, "matter_id": matter})["hold_id"]
        events = json.loads(self.ask(party.key, "GET", "/v1/events?limit=1").body)["data"]
        has |= {
            "ack": ack, "clr": cleared["clearance_id"], "cbid": cbid, "cbid_test": cbid,
            "chk": checkout, "we": endpoint["endpoint_id"], "mat": matter, "hold": hold,
            "evt": events[0]["id"], "key": spare.key.id, "acct": party.account_id,
            "waiting": waiting, "ps": "ps_none", "ver": self._check(party),
        }  # fmt: skip
        for role in Role:
            party.members[role], has["per"] = self._member(party.account_id, role)
        return party

    def _check(self, party: Party) -> str:
        rows = self.stage.rows(
            "SELECT id FROM verifications WHERE account_id = :a AND mode = :m ORDER BY id",
            a=party.account_id, m=party.mode.value,
        )  # fmt: skip
        return str(rows[0]["id"])

    def _member(self, account_id: str, role: Role) -> tuple[str, str]:
        """The session and the id of a person of an account who has just used a passkey."""
        token = compose_token(PERSON_SESSION, secrets.token_bytes(PERSON_ENTROPY_BYTES))
        digest, time_ns = self.stage.opened.access.secret.key_digest(token), time.time_ns()
        now = from_ns(time_ns)
        person, grant, session = (
            timed_id(kind, time_ns, secrets.token_bytes(8)) for kind in ("per", "grt", "ps")
        )
        times = dict.fromkeys(("created_at", "last_used_at", "passkey_at"), self.stage.clock.now)
        granted = {"account_id": account_id, "role": role.value, "granted_by": "a test"}
        with self.stage.begin() as connection:
            connection.execute(
                insert(people), {"id": person, "name": f"Ada {person[-6:]}", "created_at": now}
            )
            connection.execute(
                insert(person_grants),
                granted | {"id": grant, "person_id": person, "granted_at": now},
            )
            connection.execute(
                insert(person_sessions),
                times | {"id": session, "person_id": person, "digest": digest},
            )
        return token, person


def request_of(route: Route[Any], named: Party) -> tuple[str, object]:
    """The path and the body of a request that names what this party has."""
    path = _PARAMETER.sub(lambda found: _value(found[1], named), route.path)
    operation = _DOCUMENT["paths"][route.path][route.method.lower()]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if media is None:
        return path, None
    example = resolved(next(iter(media["examples"].values()))["value"], _DOCUMENT)
    return path, _put_in(example, named)


def _value(parameter: str, named: Party) -> str:
    prefixes = {
        "ack_id": "ack", "clearance_id": "clr", "cbid": "cbid", "hold_id": "hold",
        "matter_id": "mat", "endpoint_id": "we", "key_id": "key", "person_id": "per",
        "checkout_session_id": "chk", "event_id": "evt", "account_id": "acct", "session_id": "ps",
        "order_id": "ack",
    }  # fmt: skip
    return NOTICE if parameter == "notice_id" else named.has[prefixes[parameter]]


def _put_in(value: Any, named: Party) -> Any:  # noqa: ANN401 - any JSON
    """The same with this party's identifiers in place of the examples'."""
    if isinstance(value, dict):
        return {name: _put_in(inner, named) for name, inner in value.items()}
    if isinstance(value, list):
        return [_put_in(inner, named) for inner in value]
    if isinstance(value, str):
        return _NAMED.sub(lambda found: named.has.get(found[1], found[0]), value)
    return value
