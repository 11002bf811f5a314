"""Erasures are repeated by the commands of docs/high-availability.md."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.sealing.acts import acknowledge, get
from tests.sealing.test_new_server import key_of
from tests.support.postgres import PostgresServer
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.postgres
PAGE = (Path(__file__).parents[2] / "docs" / "high-availability.md").read_text()
LISTS = re.findall(r'-c "\\copy \((.+)\) TO \'(.+)\'"', PAGE)
BLOCK = re.findall(r"```psql\n(.+?)```", PAGE, re.DOTALL)[0]


def test_going_back_to_a_moment_brings_no_erased_data_back(
    tmp_path: Path, postgres_url: str, postgres_server: PostgresServer
) -> None:
    """Neither a record nor a remembered buyer; `init` records it, and all else stays readable."""
    made = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": postgres_url})
    made.run("init")
    with running_server(made) as server, server.client(key_of(made)) as client:
        erased, kept = acknowledge(client), acknowledge(client)
        get(client, kept, "proof")
    name = str(make_url(postgres_url).database)
    copy(postgres_server, name, f"{name}_older")
    made.run("erase", erased, "--yes")
    plain = (
        make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    )
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("INSERT INTO deployment VALUES ('erased:a buyer', 'done')")
        lists = {file: connection.execute(query).fetchall() for query, file in LISTS}
    assert len(lists) == 2
    copy(postgres_server, f"{name}_older", name)
    assert readable(plain) == {erased, kept}

    with psycopg.connect(plain, autocommit=True) as connection:
        for part in re.split(r"(?m)^(\\copy .+)$", BLOCK):
            if copied := re.fullmatch(r"\\copy (\w+) FROM '(.+)'", part):
                with connection.cursor().copy(f"COPY {copied[1]} FROM STDIN") as into:
                    for row in lists[copied[2]]:
                        into.write_row(row)
            else:
                connection.execute(part)
        found = "SELECT value FROM deployment WHERE name = 'erased:a buyer'"
        assert connection.execute(found).fetchone() == (b"due",)
    made.run("init")
    assert readable(plain) == {kept}
    with psycopg.connect(plain) as connection:
        again = connection.execute("SELECT record_id FROM erasures").fetchall()
    assert again == [(erased,)]


def copy(server: PostgresServer, old: str, new: str) -> None:
    """Make the database `new` what `old` is."""
    with server.connect() as connection:
        names = sql.Identifier(new), sql.Identifier(old)
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0]))
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))


def readable(url: str) -> set[str]:
    """The acknowledgments whose personal data is there."""
    with psycopg.connect(url) as connection:
        return {id_ for (id_,) in connection.execute("SELECT record_id FROM disclosures")}
