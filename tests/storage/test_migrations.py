"""The schema: the migrations make the expected one, and no other is served."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Engine, inspect, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import SchemaItem

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, open_engine
from countersign.base.db.tables import NUMBERS, ONLY_ON, metadata
from countersign.base.errors import NotInitialised, SchemaMismatch
from tests.support.databases import on_postgres
from tools.schema import schema_statements

NEXT_REVISION = """
from alembic import op

revision = "9000_next"
down_revision = "{head}"


def upgrade():
    op.execute("CREATE TABLE of_the_next_release (id INTEGER)")
    op.execute("{then}")
"""


TRIGGERS = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name",
    "postgresql": (
        "SELECT pg_get_triggerdef(t.oid), t.tgenabled, pg_get_functiondef(t.tgfoid)"
        " FROM pg_trigger t WHERE NOT t.tgisinternal ORDER BY t.tgname"
    ),
}


# Not its present value, which other tests change.
SEQUENCES = (
    "SELECT sequencename, data_type, start_value, min_value, max_value, increment_by, cycle,"
    " cache_size FROM pg_sequences"
)


def everything_in(engine: Engine) -> dict[str, Any]:
    """Reflect tables with columns, types, keys, constraints, indexes; triggers and sequences."""
    found, sequences = inspect(engine), list[Any]()
    with engine.connect() as connection:
        triggers = connection.execute(text(TRIGGERS[engine.dialect.name])).fetchall()
        if engine.dialect.name == "postgresql":
            sequences += connection.execute(text(SEQUENCES)).fetchall()
            assert sequences
    assert triggers

    def listed(parts: list[Any]) -> list[str]:
        return sorted(repr(sorted((k, in_words(v)) for k, v in part.items())) for part in parts)

    def in_words(value: object) -> str:
        # The condition of an index is an object without equality.
        if isinstance(value, dict):
            value = {key: in_words(inner) for key, inner in value.items()}
        return str(value)

    return {"triggers": triggers, "sequences": sequences} | {
        table: {
            "columns": listed(found.get_columns(table)),
            "primary key": listed([found.get_pk_constraint(table)]),
            "foreign keys": listed(found.get_foreign_keys(table)),
            "unique": listed(found.get_unique_constraints(table)),
            "checks": listed(found.get_check_constraints(table)),
            "indexes": listed(found.get_indexes(table)),
        }
        for table in found.get_table_names()
        if table != "alembic_version"
    }


def set_revision(url: URL, revision: str) -> None:
    engine = open_engine(url, Purpose.WRITE)
    with engine.begin() as connection:
        statement = text("UPDATE alembic_version SET version_num = :revision")
        connection.execute(statement, {"revision": revision})
    engine.dispose()


def test_alembic_finds_nothing_to_migrate(url: URL) -> None:
    engine = open_engine(url, Purpose.WRITE)

    def has(item: SchemaItem, *_: object) -> bool:
        return bool(item.info.get(ONLY_ON, engine.dialect.name) == engine.dialect.name)

    options = {"compare_type": True, "compare_server_default": True, "include_object": has}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_migrated_tables_are_those_in_the_code(url: URL, empty_url: URL) -> None:
    """Including parts that alembic does not compare, such as CHECK constraints and triggers."""
    migrated, made = (open_engine(u, Purpose.WRITE) for u in (url, empty_url))
    with made.begin() as connection:
        for statement in schema_statements(made.dialect.name):
            connection.execute(text(statement))
    assert everything_in(migrated) == everything_in(made)
    migrated.dispose()
    made.dispose()


@on_postgres
def test_the_first_row_of_events_has_numbers_above_zero(own_url: URL) -> None:
    """A row takes the numbers up to its own, which the sequence has left free."""
    with schema.connected(own_url, Purpose.WRITE) as connection:
        assert connection.execute(text("SELECT nextval('events_seq_seq')")).scalar_one() >= NUMBERS


def test_upgrading_twice_is_harmless(url: URL) -> None:
    engine = open_engine(url, Purpose.WRITE)
    before = everything_in(engine)
    schema.stored_value(url, "a name", b"a value")
    schema.upgrade(url)
    assert everything_in(engine) == before
    assert schema.stored_value(url, "a name", b"another") == b"a value"
    schema.check(url)
    engine.dispose()


def test_a_database_without_a_schema_is_not_initialised(empty_url: URL) -> None:
    with pytest.raises(NotInitialised, match="countersign init"):
        schema.check(empty_url)
    schema.upgrade(empty_url)
    schema.check(empty_url)


def test_a_revision_of_a_newer_release_is_refused(own_url: URL) -> None:
    set_revision(own_url, "9999_future")
    for use in (schema.check, schema.upgrade):
        with pytest.raises(SchemaMismatch, match="newer release"):
            use(own_url)


@pytest.mark.parametrize("revision", ["0001", "0013"])
def test_a_database_of_a_development_version_is_refused(own_url: URL, revision: str) -> None:
    """No release can upgrade it, and the message says what to do."""
    set_revision(own_url, revision)
    for use in (schema.check, schema.upgrade):
        with pytest.raises(SchemaMismatch, match=r"development version.*empty data directory"):
            use(own_url)


@pytest.mark.parametrize("revision", ["0001_initial", "0018_figures_of_a_day"])
def test_a_database_of_an_earlier_build_is_refused_untouched(own_url: URL, revision: str) -> None:
    """The message names both revisions, and the build that upgrades it."""
    set_revision(own_url, revision)
    engine = open_engine(own_url, Purpose.WRITE)
    before = everything_in(engine)
    for use in (schema.check, schema.upgrade, schema.is_older):
        words = rf"{revision}.*{schema._revisions()[0]} on.*the last build before"
        with pytest.raises(SchemaMismatch, match=words):
            use(own_url)
    assert everything_in(engine) == before
    engine.dispose()


def add_migration(monkeypatch: pytest.MonkeyPatch, folder: Path, then: str) -> None:
    """Become the next release, which has one migration more."""
    migrations = folder / "migrations of the next release"
    shutil.copytree(schema._MIGRATIONS, migrations)
    source = NEXT_REVISION.format(head=schema._revisions()[-1], then=then)
    (migrations / "versions" / "9000_next.py").write_text(source)
    monkeypatch.setattr(schema, "_MIGRATIONS", migrations)


def test_the_files_are_named_after_their_revisions_in_their_order() -> None:
    walked = ScriptDirectory(str(schema._MIGRATIONS)).walk_revisions()
    assert [script.revision for script in walked] == schema._revisions()[::-1]


def test_an_older_revision_is_refused_until_it_is_upgraded(
    own_url: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as next_release:
        add_migration(next_release, tmp_path, "SELECT 1")
        with pytest.raises(SchemaMismatch, match="countersign init"):
            schema.check(own_url)
        schema.upgrade(own_url)
        schema.check(own_url)
    with pytest.raises(SchemaMismatch, match="newer release"):
        schema.check(own_url)


def test_a_failed_migration_leaves_nothing_behind(
    own_url: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(own_url, Purpose.WRITE)
    before = everything_in(engine)
    with monkeypatch.context() as next_release:
        add_migration(next_release, tmp_path, "INSERT INTO accounts (id) VALUES ('no name')")
        with pytest.raises(IntegrityError):
            schema.upgrade(own_url)
    assert everything_in(engine) == before
    schema.check(own_url)
    engine.dispose()
