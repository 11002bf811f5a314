"""Moving the embedded database to PostgreSQL: nothing is left, doubled, or changed on the way."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Boolean, Connection, Integer, LargeBinary, String, Table, text
from sqlalchemy.engine import make_url

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.db.schema import FOLDER
from countersign.base.db.tables import metadata
from countersign.base.errors import DatabaseMoved, MoveFailed
from countersign.operate import move as moving
from countersign.operate.move import begun_move, cancel_move, moved_to, place_of

pytestmark = [pytest.mark.postgres, pytest.mark.one_engine]

EMBEDDED = ("blind_recent", "blind_runs", "kept_slots")
"""PostgreSQL has indexes instead: there the tables stay empty, and nothing would erase them."""
ROWS_MAX = 9
SLICE = 3
LETTERS = "abc…'\"\\%🙂\n\u202e_:0"


def no_report(_done: int, _total: int, _unit: str) -> None:
    """Nothing is said."""


def filled(place: Path, seed: int) -> URL:
    """A database with random rows in every table."""
    url = URL.create("sqlite", database=str(place / "countersign.db"))
    schema.upgrade(url)
    draw = random.Random(seed)
    with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
        for table in metadata.sorted_tables:
            for _ in range(draw.randint(2, ROWS_MAX)):
                add_row(connection, table, draw)
    return url


def add_row(connection: Connection, table: Table, draw: random.Random) -> None:
    """Add a row with values allowed by the table, unless there is one with its key."""
    values: dict[str, Any] = {column.name: value_of(column, draw) for column in table.columns}
    for key in table.foreign_key_constraints:
        referred = [element.target_fullname.partition(".")[2] for element in key.elements]
        query = f"SELECT {', '.join(referred)} FROM {key.referred_table.name}"  # noqa: S608
        known = connection.exec_driver_sql(query).all()
        if known:
            values |= dict(zip(key.column_keys, draw.choice(known), strict=True))
        else:
            values |= dict.fromkeys(key.column_keys)
    names, marks = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
    statement = f'INSERT OR IGNORE INTO "{table.name}" ({names}) VALUES ({marks})'  # noqa: S608
    connection.exec_driver_sql(statement, tuple(values.values()))


def value_of(column: Any, draw: random.Random) -> Any:  # noqa: ANN401 - a value of any type
    """A value that a column takes."""
    if column.name == "mode":
        return draw.choice(["test", "live"])
    if column.nullable and draw.random() < 0.3:
        return None
    match column.type:
        case Boolean():
            return draw.randint(0, 1)
        case String():
            size = column.type.length or 99
            return "".join(draw.choices(LETTERS, k=draw.randint(min(size, 9), size)))
        case LargeBinary():
            is_content = column.name in {"payload", "body", "response", "value"}
            return draw.randbytes(draw.choice([0, 1, 9999] if is_content else [16, 32]))
        case _:
            return draw.randint(0, 2**31 - 1 if type(column.type) is Integer else 2**53)


def rows_of(connection: Connection, table: Table) -> set[str]:
    """The rows of a table, in an order of its own."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    own = " WHERE name NOT IN ('moved_to', 'moving_in')" if table.name == "deployment" else ""
    rows = connection.exec_driver_sql(f'SELECT {names} FROM "{table.name}"{own}').all()  # noqa: S608
    flags = [isinstance(column.type, Boolean) for column in table.columns]
    found = [
        repr([None if v is None else bool(v) if f else v for v, f in zip(row, flags, strict=True)])
        for row in rows
    ]
    assert len(set(found)) == len(found)
    return set(found)


def differing(source: URL, target: URL) -> list[str]:
    """The tables that are not the same in both databases, or empty."""
    with (
        schema.connected(source, Purpose.READ) as old,
        schema.connected(target, Purpose.READ) as new,
    ):
        both = {
            table.name: (rows_of(old, table), rows_of(new, table))
            for table in metadata.tables.values()
        }
    for name in EMBEDDED:
        before, after = both.pop(name)
        assert (bool(before), after) == (True, set()), name
    return [name for name, (before, after) in both.items() if before != after or not before]


def move(source: URL, target: URL) -> None:
    """Do all of it."""
    with begun_move(source, target, SLICE) as begun:
        begun.copy(no_report)
        begun.compare(no_report)
        begun.finish()


@pytest.fixture
def target(postgres_url: str) -> URL:
    """Give an empty PostgreSQL database."""
    return make_url(postgres_url)


@pytest.mark.parametrize("seed", range(3))
def test_every_row_of_every_table_is_moved(tmp_path: Path, target: URL, seed: int) -> None:
    """PostgreSQL's sequences also continue after the moved numbers."""
    source = filled(tmp_path, seed)
    move(source, target)
    assert differing(source, target) == []
    schema.check(target)
    with schema.connected(target, Purpose.READ) as new:
        query = "SELECT sequencename, last_value FROM pg_sequences"
        ((name, last),) = new.execute(text(query)).all()
        newest = new.execute(text("SELECT max(seq) FROM events")).scalar_one()
        after = new.execute(text("SELECT nextval('events_seq_seq')")).scalar_one()
    assert (name, last, after) == ("events_seq_seq", newest, newest + 64)


def test_the_old_database_is_closed_only_when_the_disk_has_the_new_one(
    tmp_path: Path, target: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are written without a flush; a crash of PostgreSQL now loses none of them."""
    source = filled(tmp_path, 1)
    lsn: list[int] = []
    written = text("SELECT pg_current_wal_insert_lsn() - '0/0'")
    flushed = text("SELECT pg_current_wal_flush_lsn() - '0/0'")

    def look(new: Connection) -> None:
        lsn.append(new.execute(flushed).scalar_one())

    monkeypatch.setattr(moving, "_release", look)
    with begun_move(source, target, SLICE) as begun:
        begun.copy(no_report)
        begun.compare(no_report)
        with schema.connected(target, Purpose.READ) as other:
            before = other.execute(written).scalar_one()
        begun.finish()
    assert lsn[0] > before
    assert moved_to(source) == place_of(target)


def test_no_table_is_forgotten() -> None:
    """All that the migrations make is declared, and all that is declared is moved."""
    for engine in ("sqlite", "postgresql"):
        made = json.loads((FOLDER / f"schema.{engine}.json").read_text())
        assert set(made) == set(metadata.tables)


KILLED = """
import os, signal, sys
from sqlalchemy.engine import make_url
from countersign.operate import move
steps = int(sys.argv[3])
def step(*_):
    global steps
    steps -= 1
    if steps < 0:
        os.kill(os.getpid(), signal.SIGKILL)
release = move._release
def last(connection):
    step()
    release(connection)
move._release = last
with move.begun_move(make_url(sys.argv[1]), make_url(sys.argv[2]), 3) as begun:
    step()
    begun.copy(step)
    begun.compare(step)
    begun.finish()
"""


@pytest.mark.crash
def test_a_killed_move_continues_where_it_was(tmp_path: Path, target: URL) -> None:
    """After each kill neither database can be used; in the end everything is there once."""
    source = filled(tmp_path, 7)
    places = [url.render_as_string(hide_password=False) for url in (source, target)]
    kills = 0
    # It is killed where it begins, in its first slices, here and there, and at its very end.
    for drawn in (0, 1, 2, 17, 40, 60, 80, 100, None):
        steps = str(rest(source, target) if drawn is None else drawn)
        done = subprocess.run([sys.executable, "-c", KILLED, *places, steps], check=False)
        assert done.returncode == -signal.SIGKILL
        kills += 1
        for url in (source, target):
            with pytest.raises(DatabaseMoved):
                schema.check(url)
    assert kills == 9
    assert moved_to(source, target) == place_of(target)
    assert differing(source, target) == []
    schema.check(target)
    with pytest.raises(DatabaseMoved, match="was moved to"):
        schema.check(source)


def rest(source: URL, target: URL) -> int:
    """The number of steps up to the last one, with all rows copied before."""
    steps = 1

    def count(_done: int, _total: int, _unit: str) -> None:
        nonlocal steps
        steps += 1

    with begun_move(source, target, SLICE) as begun:
        begun.copy(no_report)
        begun.compare(count)
    return steps


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE disclosures SET payload = '\\x00' WHERE record_id = {id}",
            "The row .* of disclosures",
        ),
        ("DELETE FROM disclosures WHERE record_id = {id}", "The row .* of disclosures"),
        (
            (
                "INSERT INTO disclosures SELECT 'more', account_id, mode, NULL, NULL, payload"
                " FROM disclosures WHERE record_id = {id}"
            ),
            "rows in disclosures, and the old one",
        ),
    ],
)
def test_a_differing_row_is_found(tmp_path: Path, target: URL, statement: str, words: str) -> None:
    """Changed, missing or added: the old database is not given up, and can be used again."""
    source = filled(tmp_path, 1)
    chosen = "(SELECT record_id FROM disclosures ORDER BY record_id LIMIT 1)"
    with begun_move(source, target, SLICE) as begun:
        begun.copy(no_report)
        with schema.connected(target, Purpose.WRITE) as other, other.begin():
            other.exec_driver_sql(statement.replace("{id}", chosen))
        with pytest.raises(MoveFailed, match=words):
            begun.compare(no_report)
    with pytest.raises(DatabaseMoved):
        schema.check(source)
    assert cancel_move(source)
    schema.check(source)
    with pytest.raises(DatabaseMoved):
        schema.check(target)


def test_a_database_with_anything_in_it_is_refused(tmp_path: Path, target: URL) -> None:
    """Of others or of Countersign: nothing is mixed, and the old database stays as it is."""
    source = filled(tmp_path, 2)
    with schema.connected(target, Purpose.WRITE) as other, other.begin():
        other.exec_driver_sql("CREATE TABLE theirs (id int)")
    with (
        pytest.raises(MoveFailed, match="is not empty: it has the table theirs"),
        begun_move(source, target),
    ):
        pass
    with schema.connected(target, Purpose.WRITE) as other, other.begin():
        other.exec_driver_sql("DROP TABLE theirs")
    schema.upgrade(target)
    with schema.connected(target, Purpose.WRITE) as other, other.begin():
        other.exec_driver_sql("INSERT INTO deployment VALUES ('x', 'y')")
    with (
        pytest.raises(MoveFailed, match="is not empty: it has rows in deployment"),
        begun_move(source, target),
    ):
        pass
    schema.check(source)


def test_a_move_has_one_target(tmp_path: Path, target: URL) -> None:
    """A move begun into one database does not continue into another; no password is shown."""
    source = filled(tmp_path, 3)
    with begun_move(source, target.set(password="hidden")) as begun:
        assert begun.rows > 0
    elsewhere = target.set(database="postgres")
    with pytest.raises(MoveFailed, match="has begun") as refused, begun_move(source, elsewhere):
        pass
    assert "hidden" not in str(refused.value)
    move(source, target)
    with pytest.raises(MoveFailed, match="is complete"):
        cancel_move(source)
    assert moved_to(source, target) == place_of(target)
    secret = make_url(
        "postgresql://a:hidden@h/d?password=hidden&sslpassword=hidden&sslmode=require"
    )
    assert place_of(secret) == "postgresql://a@h/d?sslmode=require"


def test_a_second_run_names_the_place_of_the_data(
    tmp_path: Path, target: URL, postgres_url: str
) -> None:
    source = filled(tmp_path, 2)
    move(source, target)
    assert moved_to(source, target) == place_of(target)
    with pytest.raises(MoveFailed, match="Everything was moved to"):
        moved_to(source, make_url(postgres_url).set(database="another"))
    with schema.connected(target, Purpose.WRITE) as new, new.begin():
        new.exec_driver_sql("DROP TABLE deployment")
    with pytest.raises(MoveFailed, match="its tables are gone"):
        moved_to(source, target)


def test_a_role_that_may_make_no_tables_leaves_the_old_database_in_use(
    tmp_path: Path, target: URL
) -> None:
    source = filled(tmp_path, 2)
    with schema.connected(target, Purpose.WRITE) as new, new.begin():
        for statement in ("CREATE ROLE reader LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"):
            new.exec_driver_sql(statement)
    try:
        with pytest.raises(MoveFailed, match="may not create tables"):
            move(source, target.set(username="reader"))
        schema.check(source)
    finally:
        with schema.connected(target, Purpose.WRITE) as new, new.begin():
            new.exec_driver_sql("DROP ROLE reader")
