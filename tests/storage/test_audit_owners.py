"""The audit of an account: brought along from before, and read from its own index."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import URL, Connection, event, text

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, is_embedded, open_engine
from countersign.base.db.tables import Instant
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.log.audit_chain import entry_of
from countersign.staff.acts.audit import AuditQuery, list_audit
from countersign_evidence.audit import entry_digest
from tests.storage.test_filled import ROWS, filled  # noqa: F401 - a fixture
from tests.support.service import Deployment

ACCOUNT: Final = ROWS["accounts"]["rows"][0][0]
OTHER: Final = "acct_01m84tw380ffx9qeckw263cz28"
LIVE_KEY, TEST_KEY = (
    next(row[0] for row in ROWS["api_keys"]["rows"] if row[2] == mode) for mode in ("live", "test")
)
ACK, ENDPOINT, BUYER = (
    ROWS[table]["rows"][0][0] for table in ("records", "webhook_endpoints", "buyers")
)
SHARED: Final = "cbid_4q1y1sm4fr19z36g2hnjt8h956"
LIVE, TEST = [(ACCOUNT, "live")], [(ACCOUNT, "test")]
BOTH: Final = [*LIVE, *TEST]

CASES: Final[list[tuple[str, str, str, dict[str, Any], list[tuple[str, str]]]]] = [
    ("root", "dossier_written", ACK, {"account_id": ACCOUNT}, TEST),
    ("root", "webhook_secret_rotated", ENDPOINT, {}, TEST),
    ("root", "key_created", ACCOUNT, {"key_id": LIVE_KEY, "mode": "live"}, LIVE),
    ("root", "key_revoked", ACCOUNT, {"key_id": TEST_KEY}, TEST),
    (LIVE_KEY, "hold_placed", "ref_of_the_shared_one", {}, LIVE),
    ("root", "acknowledgments_exported", ACCOUNT, {"mode": "test", "after": None}, TEST),
    ("root", "account_renamed", ACCOUNT, {"name": "a", "before": "b"}, BOTH),
    ("per_1", "person_invited", "per_2", {"role": "owner", "place": ACCOUNT}, BOTH),
    ("per_1", "person_invited", "per_2", {"role": "owner", "place": "deployment"}, []),
    ("root", "evidence_shown", "ref_of_a_test_buyer", {"reason": "case 7"}, TEST),
    ("root", "evidence_shown", "ref_of_the_shared_one", {"reason": "case 7"}, []),
    (
        "per_1",
        "personal_data_shown",
        "ref_of_the_shared_one",
        {"account_id": OTHER, "mode": "live", "reason": "a secret case"},
        [(OTHER, "live")],
    ),
    ("per_1", "buyer_review_dismissed", "ref_of_an_erased_one", {"verification": ACK}, TEST),
    ("root", "evidence_shown", "ref_of_an_erased_one", {}, []),
    ("root", "notice_reviewed", "ab1263", {"version": "1"}, []),
    ("root", "log_key_rotated", "log", {}, []),
]
"""Actor, act, subject and details, and the owner of the entry."""


def entry_id(number: int) -> str:
    """After every entry that the deployment had."""
    return f"aud_7{number:025}"


def store(connection: Connection) -> None:
    """Write the entries as before, each of them chained."""
    cbids = {"ref_of_a_test_buyer": BUYER, "ref_of_the_shared_one": SHARED}
    connection.execute(
        text(
            "INSERT INTO buyers (cbid, account_id, mode, status, reasons, simulated, proofs)"
            " VALUES (:cbid, :account, 'live', 'failed', '[]', false, '[]')"
        ),
        {"cbid": SHARED, "account": ACCOUNT},
    )
    for reference, cbid in cbids.items():
        row = {"reference": reference, "cbid": cbid}
        connection.execute(text("INSERT INTO buyer_references VALUES (:reference, :cbid)"), row)
    for number, (actor, action, subject, details, _) in enumerate(CASES):
        values = {"id": entry_id(number), "actor": actor, "action": action, "subject": subject}
        values["details"] = json.dumps(details, sort_keys=True, separators=(",", ":"))
        new = "VALUES (:id, 1795892893690, :actor, :action, :subject, :details)"
        connection.execute(text(f"INSERT INTO audit_log {new}"), values)


def chain(connection: Connection) -> list[tuple[Any, ...]]:
    """Chain every new entry by the published rule; gives the rows."""
    links = text("SELECT position, entry_id, digest FROM audit_chain ORDER BY position")
    chained, salt = connection.execute(links).all(), bytes(16)
    last, before = chained[-1].position, bytes(chained[-1].digest)
    query = text("SELECT id, at, actor, action, subject, details FROM audit_log ORDER BY id")
    entries = connection.execute(query.columns(at=Instant)).all()
    new = [one for one in entries if one.id not in {link.entry_id for link in chained}]
    for number, entry in enumerate(new, last + 1):
        before = entry_digest(salt, before, entry_of(entry))
        values = {"n": number, "id": entry.id, "salt": salt, "digest": before}
        connection.execute(text("INSERT INTO audit_chain VALUES (:n, :id, :salt, :digest)"), values)
    return everything(connection)


def everything(connection: Connection) -> list[tuple[Any, ...]]:
    """The part that must stay byte for byte: the entries, and their chain."""
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for table in ("audit_log", "audit_chain")
        for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY 1"))  # noqa: S608 - ours
    ]


def test_earlier_entries_belong_to_the_accounts_that_they_name(
    filled: Deployment,  # noqa: F811 - the fixture
    empty_url: URL,
) -> None:
    """Where that cannot be known, to the deployment; entries and chain stay byte for byte."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        store(connection)
        before = chain(connection)
    schema.upgrade(empty_url)
    with schema.connected(empty_url, Purpose.READ) as connection:
        query = "SELECT account_id, mode FROM audit_owners WHERE entry_id = :id ORDER BY 1, 2"
        for number, case in enumerate(CASES):
            owned = connection.execute(text(query), {"id": entry_id(number)}).all()
            assert [tuple(row) for row in owned] == case[-1], case
        assert everything(connection) == before
    assert [f for f in filled.read("log", "check")["findings"] if "audit" in f] == []


OTHERS: Final = 100_000
_MANY: Final = {
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {most})"
    " SELECT printf('aud_%026d', n) AS id, n FROM s",
    "postgresql": "SELECT 'aud_' || lpad(n::text, 26, '0') AS id, n"
    " FROM generate_series(1, {most}) s(n)",
}


def test_the_list_of_an_account_is_read_from_its_own_index(own_url: URL) -> None:
    """Among 100,000 entries of others: none of them is read, and nothing is sorted."""
    engine = open_engine(own_url, Purpose.WRITE)
    asked: list[tuple[str, Any]] = []
    with engine.begin() as connection:
        many = _MANY[connection.dialect.name].format(most=OTHERS)
        whose = "CASE WHEN n % 1000 = 0 THEN 'acct_own' ELSE 'acct_' || (n % 7) END"
        entries = (
            "id, n AS at, 'root' AS actor, 'called' AS action, 'x' AS subject, '{}' AS details"
        )
        owners = f"{whose} AS account_id, 'live' AS mode, id AS entry_id"
        for table, values in {"audit_log": entries, "audit_owners": owners}.items():
            connection.execute(text(f"INSERT INTO {table} SELECT {values} FROM ({many}) x"))  # noqa: S608
        connection.execute(text("ANALYZE"))
        event.listen(connection, "before_cursor_execute", lambda *a: asked.append((a[2], a[3])))
        found = list_audit(connection, AccountReach("acct_own", Mode.LIVE), AuditQuery(limit=20))
        assert [x.audit_id for x in found.data] == [
            f"aud_{n * 1000:026}" for n in range(100, 80, -1)
        ]
        (listing, values), *_ = asked
        explain = "EXPLAIN QUERY PLAN" if is_embedded(own_url) else "EXPLAIN"
        plan = [row[-1] for row in connection.exec_driver_sql(f"{explain} {listing}", values)]
    engine.dispose()
    steps = "\n".join(plan)
    assert "audit_owners_1 (account_id=? AND mode=?)" in steps or "pk_audit_owners" in steps, steps
    assert all(word not in steps for word in ("SCAN", "Seq Scan", "B-TREE", "Sort")), steps
