"""No act reads or changes rows outside of the caller's reach, whichever way it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from countersign.base.db.tables import OWNER, RowOwner, metadata
from countersign.base.values import Mode
from countersign.core.access.role import Role
from countersign.core.gate.route import Route
from countersign.server.app import route_table
from tests.http.backstage import another_deployment
from tests.reach.watch import Judge, Statement, owner_of, watching
from tests.reach.world import Party, World, request_of
from tests.support.engines import ENGINES, engine_server
from tests.verification.inside import staged

pytestmark = [pytest.mark.both_engines, pytest.mark.long, pytest.mark.first_try]

ROOT: Final = Path(__file__).parents[2]
KEY: Final = None
LATER: Final = pytest.mark.later
CALLERS: Final = [
    (KEY, Mode.TEST),
    (KEY, Mode.LIVE),
    (Role.OWNER, Mode.TEST),
    # Acts of these kinds are also done by a key or an owner, in the same way.
    pytest.param(Role.COMPLIANCE, Mode.LIVE, marks=LATER),
    pytest.param(Role.DEVELOPER, Mode.TEST, marks=LATER),
    pytest.param(Role.SUPPORT, Mode.LIVE, marks=LATER),
    pytest.param(Role.AUDITOR, Mode.TEST, marks=LATER),
]


class Crossing(NamedTuple):
    """Operations whose queries of these tables cross, the reason, and the guard of the rows."""

    why: str
    guard: str
    operations: frozenset[str]
    tables: frozenset[str]


def _crossing(why: str, guard: str, operations: str, tables: str) -> Crossing:
    return Crossing(why, guard, frozenset(operations.split()), frozenset(tables.split()))


EXCEPTIONS: Final = (
    _crossing(
        "The status of a buyer crosses accounts, as the design names it; who blocks names a buyer "
        "whose status can be asked for anyway.",
        "tests/http/test_isolation.py::the_status_of_a_buyer_crosses_accounts_and_not_modes",
        "getBuyerStatus clearOrder blockBuyer unblockBuyer",
        "buyers",
    ),
    _crossing(
        "A batch is one query for several callers: each row is compared with who named it.",
        "tests/http/test_isolation.py::an_order_is_decided_by_what_is_ones_own",
        "clearOrder",
        "records acknowledgment_uses clearances verifications",
    ),
    _crossing(
        "As above, for checkout sessions.",
        "tests/http/test_isolation.py::a_checkout_session_is_its_owners",
        "getCheckoutSession cancelCheckoutSession",
        "checkout_sessions",
    ),
    _crossing(
        "A row is locked by its identifier, compared, and refused as unknown.",
        "tests/http/test_isolation.py::a_sandbox_buyer_is_moved_by_its_own_account_alone",
        "moveTestBuyer",
        "buyers",
    ),
    _crossing(
        "Events of all accounts are numbered in one sequence: a new endpoint begins at its end.",
        "tests/http/test_isolation.py::events_are_ones_own",
        "createWebhookEndpoint",
        "events",
    ),
    _crossing(
        "An account's own entries name the buyers that it asked about.",
        "tests/staff/test_audit.py::"
        "test_a_look_at_a_shared_buyer_is_only_in_the_audit_of_the_looker",
        "listAudit",
        "buyer_references",
    ),
    _crossing(
        "Whether another account relies on the buyer decides what stays of the buyer; the answer "
        "does not tell.",
        "tests/staff/test_erasing_by_reach.py::"
        "test_each_act_of_one_account_leaves_the_other_unchanged",
        "erase previewErasure exportBuyer",
        "accounts acknowledgment_uses buyers checkout_sessions disclosures legal_holds shred_keys "
        "verifications",
    ),
)
"""Statements that cross accounts, and the reason."""
EXCEPTIONS_MAX: Final = 15


def may_cross(operation: str, statement: Statement) -> bool:
    """Whether one of the exceptions is about this query."""
    return any(
        operation in one.operations and first_table(statement) in one.tables for one in EXCEPTIONS
    )


@pytest.fixture(params=ENGINES, scope="module")
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Give two accounts with rows in both modes."""
    place = tmp_path_factory.mktemp("reach") / "data"
    with staged(another_deployment(place, engine_server(request))) as stage:
        yield World(stage)


def asked_about(world: World, caller: Party) -> list[Party]:
    """Owners of the identifiers in a call: others first, the caller last."""
    others = [
        one
        for one in world.parties
        if (one is not caller and caller.account_id == one.account_id) or caller.mode is one.mode
    ]
    return sorted(others, key=lambda one: one is caller)


def routes() -> list[Route[Any]]:
    """Every operation that needs a scope; destructive ones come last."""
    return sorted(
        (one for one in route_table() if one.scope), key=lambda one: (one.fresh, "/me/" in one.path)
    )


@pytest.mark.parametrize(("role", "mode"), CALLERS, ids=lambda one: str(one or "key"))
def test_no_statement_reaches_beyond_the_caller(
    world: World, role: Role | None, mode: Mode
) -> None:
    """A query returns the same if only the rows in reach exist; no other row is changed."""
    found: list[str] = []
    with watching() as watch, ExitStack() as stack:
        world.reopen()
        caller = next(one for one in world.parties if one.mode is mode)
        token = caller.key if role is None else caller.members[role]
        about = {"countersign_account": caller.account_id, "countersign_mode": mode.value}
        judge = Judge(world.stage.engine, caller.reach, stack)
        outside = judge.outside()
        for route in routes():
            for named in asked_about(world, caller):
                path, body = request_of(route, named)
                watch.take()
                reply = world.ask(
                    token,
                    route.method,
                    path,
                    body,
                    countersign_reason="case 7",
                    **(about if role else {}),
                )
                asked = f"{route.address} of {'own' if named is caller else named.mode.value}"
                if reply.status >= 500:
                    found.append(f"{asked}: {reply.body!r}")
                seen = watch.take()
                found += [
                    f"{asked}: {one.text}"
                    for one in judge.beyond(seen)
                    if not may_cross(route.operation, one)
                ]
                if any(one.writes for one in seen):
                    after = judge.outside()
                    found += [f"{asked} changed {name}" for name in changed(outside, after)]
                    outside = after
    assert found == []


def changed(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> list[str]:
    """The tables in which a row of others is gone, or new.

    Shared rows that the account has just left are new among those of others.
    """
    return [
        name
        for name, rows in before.items()
        if set(rows) - set(after[name])
        or (set(after[name]) - set(rows) and not owner_of(name).is_shared)
    ]


def first_table(statement: Statement) -> str:
    """The table that a query is about."""
    return min(statement.tables, key=statement.text.find)


def test_exceptions_stay_few() -> None:
    """Each is a place where a row of somebody else can be seen."""
    assert len(EXCEPTIONS) <= EXCEPTIONS_MAX
    operations = {route.operation for route in route_table()}
    for one in EXCEPTIONS:
        assert one.operations <= operations
        assert one.tables <= set(metadata.tables)
        file, _, name = one.guard.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_a_query_without_an_account_is_detected(world: World) -> None:
    """The judge is not fooled by a query that binds an identifier and no account."""
    first, *_, other = world.parties
    with ExitStack() as stack:
        judge = Judge(world.stage.engine, first.reach, stack)
        own, foreign = first.has["ack"], other.has["ack"]
        for query in (
            "SELECT id FROM records WHERE id = '{}'",
            "SELECT at FROM records r WHERE id = '{}'",
            "SELECT count(*) FROM disclosures WHERE record_id = '{}' OR account_id <> ''",
        ):
            assert judge.beyond([Statement(query.format(foreign), ())])
        assert not judge.beyond([Statement(f"SELECT id FROM records WHERE id = '{own}'", ())])


def test_every_table_declares_the_owner_of_its_rows() -> None:
    """The named columns exist, and a row that is part of another has an owner."""
    for table in metadata.tables.values():
        owner: RowOwner = table.info[OWNER]
        columns = [one for one in (owner.account, owner.mode, owner.key) if one]
        assert all(one in table.c for one in columns), table.name
        assert all(metadata.tables[one].info[OWNER] != RowOwner() for one in owner.part_of), (
            table.name
        )
        if "account_id" in table.c and "mode" in table.c and not owner.is_shared:
            assert (owner.account, owner.mode) == ("account_id", "mode"), table.name
