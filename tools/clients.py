"""The clients' types, errors and operations, from spec/openapi.json; `make clients` runs this.

The rest of the clients is written by hand. See docs/decisions/shops.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_REF: Final = "#/components/"
_OF_PEOPLE: Final = ("Countersign-Account", "Countersign-Mode", "Countersign-Reason")
"""Headers of people, for whom there is no client."""
_PEOPLE: Final = ("staff", "members", "sessions", "alerts")
"""Resources of people, which no client has."""

NAMES: Final = {
    "getCurrentCheckoutSession": "current_checkout_session.retrieve",
    "claimCheckoutEvents": "current_checkout_session.claim_events",
    "acknowledgeCurrentCheckoutSession": "current_checkout_session.acknowledge",
    "declineCurrentCheckoutSession": "current_checkout_session.decline",
    "clearOrder": "clearances.create",
    "getTestClock": "sandbox.clock",
    "advanceTestClock": "sandbox.advance_clock",
    "resetTestClock": "sandbox.reset_clock",
    "moveTestBuyer": "sandbox.move_buyer",
    "triggerEvent": "sandbox.trigger_event",
    "getTestFault": "sandbox.fault",
    "planTestFault": "sandbox.plan_fault",
    "clearTestFault": "sandbox.clear_fault",
    "getHealth": "service.health",
    "getReadiness": "service.readiness",
    "changeBrand": "accounts.change_brand",
    "addOrigin": "accounts.add_origin",
    "removeOrigin": "accounts.remove_origin",
    "previewClosing": "accounts.preview_closing",
    "listOwnSessions": "sessions.list",
    "endOwnSession": "sessions.end",
    "endOwnSessions": "sessions.end_all",
    "getAlerts": "alerts.get",
    "changeAlerts": "alerts.change",
    "listNoticeLifecycles": "notices.list_lifecycles",
    "search": "orders.search",
    "erase": "erasures.create",
}
"""How the clients call an operation whose address and identifier do not say it: see `call_of`."""

RESOURCES: Final = {
    "notices": "The notices that buyers initial.",
    "requirements": "What an order needs.",
    "acknowledgments": "Stored initials, and their evidence.",
    "buyers": "Buyers and their verification.",
    "checkout_sessions": "Links for one buyer and one order.",
    "current_checkout_session": "The session of a client token, which is the key of this client.",
    "clearances": "Decisions whether an order may ship.",
    "events": "What has happened.",
    "webhook_endpoints": "The endpoints that get events, and deliveries to them.",
    "log": "The public log.",
    "sandbox": "What test keys can arrange.",
    "requests": "The last requests of the account's keys.",
    "service": "Whether the server responds.",
    "accounts": "The accounts of a deployment: for its staff.",
    "keys": "API keys of an account: for staff.",
    "orders": "Orders, found by anything that names one: for staff.",
    "holds": "Legal holds: for staff.",
    "matters": "Matters, each with several holds: for staff.",
    "erasures": "Erasing personal data: for staff.",
    "retention": "What falls due: for staff.",
    "audit": "What operators and staff did: for staff.",
    "deployment": "How the deployment stands: for its staff.",
    "today": "What happened lately in an account: for staff.",
}


def call_of(identifier: str, path: str) -> str:
    """The resource and the method of the clients for an operation, such as `holds.release`.

    Of `releaseHold` at `/v1/holds/{hold_id}/release`: the first part of the address, and the first
    word of the identifier.
    """
    if identifier in NAMES:
        return NAMES[identifier]
    resource, *rest = path.removeprefix("/v1/").split("/")
    verb, last = re.sub("[A-Z].*", "", identifier), (rest or [resource])[-1]
    if verb == "get":
        verb = "retrieve" if not rest or last.startswith("{") else last
    elif verb == "list" and rest:
        verb = f"list_{last}"
    elif last.startswith(f"{verb}_"):
        verb = last
    return f"{resource}.{verb}"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the document, as both generators need it."""

    resource: str
    name: str
    method: str
    path: str
    summary: str
    description: str
    path_parameters: list[str]
    query: dict[str, Any]
    """Schemas by name, with their descriptions."""
    required_query: set[str]
    body: str | None
    """The name of the schema of its body."""
    keyed: bool
    """Whether it takes an Idempotency-Key."""
    waits: bool
    """Whether it takes `Prefer: wait=N`."""
    revalidated: bool
    """Whether the server says by an ETag that a copy is current."""
    returns: str
    """The name of a schema, `str` or `bytes`."""
    item: str | None
    """The items of a list's pages."""

    @property
    def repeatable(self) -> bool:
        return self.keyed or self.method in {"GET", "DELETE"}


class Document:
    """An OpenAPI document, read for the generators."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.schemas: dict[str, Any] = document["components"]["schemas"]
        self.operations = [
            self._operation(path, method, definition)
            for path, methods in document["paths"].items()
            for method, definition in methods.items()
        ]

    def of(self, resource: str) -> list[Operation]:
        """The operations of a resource, in the order of the document."""
        return [one for one in self.operations if one.resource == resource]

    def errors(self) -> dict[str, str]:
        """The message of each refusal, by code."""
        found = {}
        for definition in self._definitions():
            for response in definition["responses"].values():
                media = self.resolved(response).get("content", {}).get("application/json", {})
                for example in media.get("examples", {}).values():
                    if error := example["value"].get("error"):
                        found[error["code"]] = error["message"]
        return dict(sorted(found.items()))

    def reachable(self, names: set[str]) -> list[str]:
        """These schemas and those that they refer to, in the order of the document."""
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += re.findall(
                    r'"#/components/schemas/(\w+)"', json.dumps(self.schemas[name])
                )
        return [name for name in self.schemas if name in seen]

    def resolved(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part itself, or the component that it refers to."""
        if "$ref" not in part:
            return part
        found: Any = self._document["components"]
        for step in part["$ref"].removeprefix(_REF).split("/"):
            found = found[step]
        result: Mapping[str, Any] = found
        return result

    def _definitions(self) -> Iterator[Mapping[str, Any]]:
        for methods in self._document["paths"].values():
            yield from methods.values()

    def _operation(self, path: str, method: str, definition: Mapping[str, Any]) -> Operation:
        identifier = definition["operationId"]
        resource, _, name = call_of(identifier, path).partition(".")
        if resource not in {*RESOURCES, *_PEOPLE}:
            raise SystemExit(f"tools/clients.py: RESOURCES lacks {resource}, of {identifier}")
        parameters = [self.resolved(parameter) for parameter in definition["parameters"]]
        headers = {p["name"] for p in parameters if p["in"] == "header"}
        if unknown := headers - {"Idempotency-Key", "Prefer", "If-None-Match", *_OF_PEOPLE}:
            raise SystemExit(f"tools/clients.py: no client sends the header {unknown.pop()}")
        returns = self._returns(definition["responses"]["200"])
        page = self.schemas.get(returns, {}).get("properties", {})
        return Operation(
            resource=resource,
            name=name,
            method=method.upper(),
            path=path,
            summary=definition["summary"],
            description=definition["description"],
            path_parameters=re.findall(r"\{(\w+)\}", path),
            query={
                p["name"]: {"description": p["description"], **p["schema"]}
                for p in parameters
                if p["in"] == "query"
            },
            required_query={p["name"] for p in parameters if p["in"] == "query" and p["required"]},
            body=self._body(definition),
            keyed="Idempotency-Key" in headers,
            waits="Prefer" in headers,
            revalidated="If-None-Match" in headers,
            returns=returns,
            item=name_of(page["data"]["items"]) if set(page) == {"data", "next_cursor"} else None,
        )

    def _returns(self, response: Mapping[str, Any]) -> str:
        ((media_type, content),) = response["content"].items()
        if media_type == "application/json":
            return name_of(content["schema"])
        return "str" if media_type.startswith("text/") else "bytes"

    def _body(self, definition: Mapping[str, Any]) -> str | None:
        if "requestBody" not in definition:
            return None
        return name_of(definition["requestBody"]["content"]["application/json"]["schema"])


def name_of(schema: Mapping[str, Any]) -> str:
    """The name of the component that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def without_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema of a value that is there, and whether null is possible, too."""
    if "anyOf" not in schema:
        return schema, False
    others = [one for one in schema["anyOf"] if one != {"type": "null"}]
    if len(others) == len(schema["anyOf"]):
        return schema, False
    return (others[0] if len(others) == 1 else {"anyOf": others}), True


def description_of(schema: Mapping[str, Any]) -> str:
    """The document's description of a field, also inside a union; "" without one."""
    inner, _ = without_null(schema)
    found = schema.get("description") or inner.get("description") or ""
    # Said once, for all times.
    return "" if found == "RFC 3339, UTC, to the second." else str(found)


def class_of(text: str) -> str:
    """`rate_limited` → `RateLimited`."""
    return "".join(word.capitalize() for word in text.split("_"))
