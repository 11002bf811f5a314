"""The rights of each role for every served operation, against a table written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countersign.core.access.role import Role
from countersign.core.gate.route import Route
from countersign.server.app import route_table
from tests.people.crew import Console, in_console

pytestmark = pytest.mark.one_engine

# a: acts and looks. l: only looks. -: neither.
# scope                       owner developer compliance support auditor
TABLE = """
notices:read                  a     l         l          l       l
acks:create                   -     -         -          -       -
acks:read                     a     l         l          l       l
evidence:read                 a     -         a          -       l
buyers:verify                 -     -         -          -       -
buyers:read                   a     l         l          l       l
buyers:review                 a     -         a          -       l
clearances:create             -     -         -          -       -
clearances:read               a     l         l          l       l
clearances:override           a     -         a          -       l
checkout_sessions:create      a     a         l          l       l
orders:read                   a     l         l          l       l
events:read                   a     l         l          l       l
webhooks:manage               a     a         l          l       l
sandbox:manage                a     a         -          -       l
keys:manage                   a     a         -          -       l
search:read                   a     l         l          l       l
holds:manage                  a     -         a          -       l
erasure:write                 a     -         a          -       l
retention:read                a     -         l          -       l
audit:read                    a     -         l          -       l
people:manage                 a     -         -          -       l
staff:manage                  a     -         -          -       l
sessions:manage               a     a         a          a       a
accounts:manage               a     l         l          l       l
notices:manage                a     -         a          -       l
deployment:read               a     l         l          l       l
"""
STAFF_ALONE = {"accounts:manage", "staff:manage", "notices:manage", "deployment:read"}
# Of a buyer at every vendor.
OF_STAFF_ALONE = {"revokeBuyer", "reinstateBuyer"}
SEE_PERSONAL_DATA = {"compliance", "auditor"}
ALLOWED = {
    (scope, role): letter
    for scope, *letters in map(str.split, TABLE.strip().splitlines())
    for role, letter in zip(Role, letters, strict=True)
}
WITH_A_SCOPE = [route for route in route_table() if route.scope is not None]
PERSONAL = {
    "listAcknowledgments", "getAcknowledgment", "listClearances", "getClearance",
    "getAcknowledgmentDossier", "getAcknowledgmentCertificate", "getClearanceDossier",
}  # fmt: skip
REASON = "Case 26-2 of the county"


def of_staff_alone(route: Route[Any]) -> bool:
    return route.scope in STAFF_ALONE or route.operation in OF_STAFF_ALONE


def expected(route: Route[Any], role: Role, *, staff: bool) -> bool:
    """Whether this role may call it, by the table."""
    letter = ALLOWED[str(route.scope), role]
    if of_staff_alone(route) and not staff:
        return False
    is_look = route.method in {"GET", "HEAD"} or str(route.scope).endswith(":read")
    if letter == "-" or (letter == "l" and not is_look):
        return False
    return not route.personal or role.value in SEE_PERSONAL_DATA


def test_each_role_may_call_what_the_table_says_and_nothing_else(tmp_path: Path) -> None:
    """Every role, of staff and of an account, calls every operation that needs a scope."""

    async def work(console: Console) -> list[str]:
        account = await console.account("vendor")
        wrong = []
        for role in Role:
            for place in (None, account):
                person = await console.person(f"{role} {place}", role, place)
                for route in WITH_A_SCOPE:
                    path = route.path.replace("{path*}", "x")
                    before, brace, rest = path.partition("{")
                    named = before + "nothing_1" + rest.partition("}")[2] if brace else path
                    # Operations of the deployment are called without an account; members have no
                    # choice.
                    at_large = place is None and of_staff_alone(route)
                    answer = await console.ask(
                        person.session,
                        named,
                        route.method,
                        account="" if at_large else account,
                        mode="test",
                        reason=REASON,
                    )
                    may = expected(route, role, staff=place is None)
                    if may is (answer.code == "forbidden"):
                        wrong.append(f"{role} {place} {route.address}: {answer.code or 'done'}")
        return wrong

    assert in_console(tmp_path, work) == []


def test_the_table_has_every_scope() -> None:
    """A new scope has to be thought through for each role."""
    assert {scope for scope, _ in ALLOWED} >= {str(route.scope) for route in WITH_A_SCOPE}


def test_operations_that_disclose_personal_data_are_marked() -> None:
    """For operations of vendors; those of the console are marked at their declaration."""
    marked = {route.operation for route in route_table() if route.personal and not route.console}
    assert marked == PERSONAL
