"""What partitions by month cost and give: ``python -m bench.partitions``; ``--help`` lists options.

Databases with the same acknowledgments in PostgreSQL: as they are, with `records` in partitions by
month, with `disclosures` too, and with `records` by year. Each is asked the service's statements in
turn. The figures are processor time of the session alone, in microseconds: medians of the rounds.
"""

# Statements are put together from our own names and made-up identifiers.
# ruff: noqa: S608

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import psycopg
from sqlalchemy import make_url

from bench.options import LASTING
from bench.postgres import postgres
from countersign.db import schema
from countersign.ids import earliest_id, timed_id

_Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
_FIRST_MONTH: Final = 2024 * 12
_AHEAD: Final = 3
_VARIANTS: Final = {
    "as it is": ((), 1),
    "by month": (("records",), 1),
    "disclosures too": (("records", "disclosures"), 1),
    "by year": (("records",), 12),
}
_SHOWN: Final = """
    SELECT r.id, r.body, d.payload, k.key, e.leaf_index, l.origin, x.at, u.clearance_id
    FROM records r LEFT JOIN disclosures d ON d.record_id = r.id
    LEFT JOIN shred_keys k ON k.record_id = r.id LEFT JOIN log_entries e ON e.record_id = r.id
    LEFT JOIN logs l ON l.id = e.log_id LEFT JOIN erasures x ON x.record_id = r.id
    LEFT JOIN acknowledgment_uses u ON u.ack_id = r.id WHERE r.type = 'acknowledgment' AND """
_OWN: Final = "account_id = 'acct_1' AND {0}.mode = 'live'"


def main() -> None:
    """Fill, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__)
    parser.add_argument("--stored", type=int, default=60_000)
    parser.add_argument("--months", type=int, default=24, help="over how many they are spread")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work-dir", type=Path, default=LASTING if LASTING.is_dir() else None)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    with TemporaryDirectory(prefix="countersign-partitions-", dir=options.work_dir) as name:
        Path(name).chmod(0o755)
        with postgres(Path(name)) as server:
            ids, databases = _ids(options.stored, options.months), dict[str, _Connection]()
            for number, (variant, (tables, size)) in enumerate(_VARIANTS.items()):
                server.create(f"d{number}")
                schema.upgrade(make_url(server.url(f"d{number}", "psycopg")))
                connection = psycopg.connect(server.url(f"d{number}"), autocommit=True)
                for table in tables:
                    _part(connection, table, options.months, size)
                _fill(connection, ids)
                databases[variant] = connection
            for round_ in range(options.rounds):
                for variant, connection in databases.items():
                    for what, used in _measured(connection, ids, round_):
                        found.setdefault(what, {}).setdefault(variant, []).append(used)
            for variant, connection in databases.items():
                found.setdefault("delete, each", {})[variant] = [_deleted(connection, ids)]
    head = "".join(f"{variant:>17}" for variant in _VARIANTS)
    rows = [f"{'':22}{head}"] + [
        f"{what:22}" + "".join(f"{median(used):17.1f}" for used in by.values())
        for what, by in found.items()
    ]
    sys.stdout.write("\n".join(rows) + "\n")


def _month(number: int) -> int:
    year, month = divmod(_FIRST_MONTH + number, 12)
    return int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp() * 1000)


def _ids(number: int, months: int) -> list[str]:
    drawn, first = random.Random(1), _month(0)
    step = (_month(months) - first) / number
    return [
        timed_id("ack", int(first + step * n) * 10**6, drawn.randbytes(8)) for n in range(number)
    ]


def _part(connection: _Connection, table: str, months: int, size: int) -> None:
    """Make a table again in partitions of so many months, with one of everything else."""
    key, before = {"records": "id", "disclosures": "record_id"}[table], f"{table}_before"
    find = "SELECT indexdef FROM pg_indexes WHERE tablename = %s AND indexname LIKE 'ix_%%'"
    indexes = connection.execute(find, [table]).fetchall()
    connection.execute(f"ALTER TABLE {table} RENAME TO {before}")
    connection.execute(f"CREATE TABLE {table} (LIKE {before}) PARTITION BY RANGE ({key})")
    connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({key})")
    for start in range(0, months + _AHEAD, size):
        ends = [earliest_id("ack", _month(n)) for n in (start, start + size)]
        connection.execute(
            f"CREATE TABLE {table}_{start} PARTITION OF {table}"
            f" FOR VALUES FROM ('{ends[0]}') TO ('{ends[1]}')"
        )
    connection.execute(f"CREATE TABLE {table}_others PARTITION OF {table} DEFAULT")
    for (definition,) in indexes:
        connection.execute(definition.replace("INDEX ix_", "INDEX again_"))
    if table == "records":
        connection.execute("ALTER TABLE records ADD FOREIGN KEY (account_id) REFERENCES accounts")


def _index(kind: str, id_: str) -> bytes:
    return random.Random(kind + id_).randbytes(16)


def _rows(ids: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    own = ("acct_1", "live")
    return {
        "records (id, account_id, mode, type, notice_id, at, digest, body)": [
            (id_, *own, "acknowledgment", "ab1263", 0, b"d" * 32, b"x" * 1100) for id_ in ids
        ],
        "disclosures (record_id, account_id, mode, session_index, cbid_index, payload)": [
            (id_, *own, _index("session", id_), _index("cbid", id_), b"y" * 600) for id_ in ids
        ],
        "shred_keys (record_id, key)": [(id_, b"k" * 32) for id_ in ids],
    }


def _fill(connection: _Connection, ids: Sequence[str]) -> None:
    connection.execute("INSERT INTO accounts (id, name, created_at) VALUES ('acct_1', 'a', 0)")
    entries = [(1, n, id_, b"d" * 32) for n, id_ in enumerate(ids)]
    tables = _rows(ids) | {"log_entries (log_id, leaf_index, record_id, digest)": entries}
    for table, rows in tables.items():
        with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
    connection.execute("VACUUM ANALYZE")


def _used(connection: _Connection, act: Callable[[], object], times: int) -> float:
    """The processor time of the session for each time, in microseconds."""
    spent = Path(f"/proc/{connection.info.backend_pid}/schedstat")
    before = int(spent.read_text().split()[0])
    for _ in range(times):
        act()
    return (int(spent.read_text().split()[0]) - before) / 1000 / times


def _measured(
    connection: _Connection, ids: Sequence[str], round_: int
) -> Iterator[tuple[str, float]]:
    drawn = random.Random(round_)
    recent = ids[-5000:]

    def some(number: int) -> list[str]:
        return [drawn.choice(recent) for _ in range(number)]

    sealed = "SELECT r.account_id, r.mode, r.id, r.type FROM "
    questions: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
        "by id": (f"{_SHOWN} r.id = %s AND r.{_OWN.format('r')}", lambda: (drawn.choice(ids),)),
        "newest 100": (f"{_SHOWN} r.{_OWN.format('r')} ORDER BY r.id DESC LIMIT 100", lambda: ()),
        "by session": (
            f"{_SHOWN} d.{_OWN.format('d')} AND d.session_index = %s ORDER BY d.record_id DESC",
            lambda: (_index("session", drawn.choice(ids)),),
        ),
        "clearances, 16": (
            """SELECT r.id, r.body, d.cbid_index FROM records r
            LEFT JOIN disclosures d ON d.record_id = r.id WHERE r.id = ANY(%s)""",
            lambda: (some(16),),
        ),
        "sealing, 64": (
            f"""{sealed} log_entries e JOIN records r ON r.id = e.record_id WHERE e.log_id = 1
            AND e.leaf_index >= %s AND e.leaf_index < %s ORDER BY e.leaf_index""",
            lambda: (len(ids) - 64, len(ids)),
        ),
        "sealing, 64 by id": (f"{sealed} records r WHERE r.id = ANY(%s)", lambda: (some(64),)),
    }
    for what, (statement, values) in questions.items():

        def ask(text: bytes = statement.encode(), values: Any = values) -> None:  # noqa: ANN401
            connection.execute(text, values()).fetchall()

        for _ in range(12):  # until it is prepared, and its plan chosen
            ask()
        yield what, _used(connection, ask, 60)
    time_ns = _month(0) * 10**6 + round_ * 10**12 + 1
    made = iter([timed_id("ack", time_ns + n * 10**6, drawn.randbytes(8)) for n in range(960)])

    def write() -> None:
        rows = _rows([next(made) for _ in range(32)])
        with connection.transaction(), connection.pipeline():
            for table, values in rows.items():
                marks = ", ".join(["%s"] * len(values[0]))
                into = f"INSERT INTO {table} VALUES " + ", ".join([f"({marks})"] * len(values))
                connection.execute(into.encode(), [value for row in values for value in row])

    yield "acknowledge, each", _used(connection, write, 30) / 32


def _deleted(connection: _Connection, ids: Sequence[str]) -> float:
    """What it costs to delete one record, with the vacuum after it."""
    connection.execute("ALTER TABLE records DISABLE TRIGGER ALL")
    parts = iter([ids[at : at + 500] for at in range(0, 5000, 500)])
    delete = "DELETE FROM records WHERE id = ANY(%s)"
    used = _used(connection, lambda: connection.execute(delete, [next(parts)]), 10) * 10
    return (used + _used(connection, lambda: connection.execute("VACUUM records"), 1)) / 5000


if __name__ == "__main__":
    main()
