"""Privileges of the servers' role on PostgreSQL, from `serving_role.toml`: granted and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Final

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import ProgrammingError

from countersign.base.db.engine import Purpose, is_embedded
from countersign.base.db.schema import connected
from countersign.base.db.statements import statements_of
from countersign.base.errors import DatabasePermissionDenied, InvalidConfiguration

_ROLE: Final = tomllib.loads(
    (resources.files(__package__) / "serving_role.toml").read_text("utf-8")
)
RIGHTS: Final[Mapping[str, str]] = {
    table: rights for rights, tables in _ROLE["granted"].items() for table in tables
}
"""Rights by table; a column in brackets narrows the right before it."""
_MISSING: Final = text(statements_of(__package__)["missing_rights"])


def grants(role: str, further: str = "") -> list[str]:
    """The statements that grant a role exactly the rights of a server.

    `further`: `console`: also what staff do with accounts, keys, notices and holds; `retention`:
    also what erases.
    """
    name, more = '"' + role.replace('"', '""') + '"', _ROLE.get(f"for_{further}", {})
    return [
        "BEGIN",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        *(f"GRANT {rights} ON {table} TO {name}" for table, rights in RIGHTS.items() if rights),
        *(f"GRANT {rights} ON {', '.join(of)} TO {name}" for rights, of in more.items()),
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
        "COMMIT",
    ]


def grant(url: URL, role: str, further: str = "") -> None:
    """Run the statements of `grants` as the role that this URL names."""
    if is_embedded(url):
        raise InvalidConfiguration("The embedded database has no roles.")
    try:
        with connected(url, Purpose.WRITE) as connection:
            for statement in grants(role, further):
                connection.exec_driver_sql(statement)
    except ProgrammingError as error:
        raise InvalidConfiguration(f"Nothing was granted: {error.orig}".rstrip()) from error


def check_rights(url: URL) -> None:
    """Find out whether the role that this URL names may do all that a server does."""
    with connected(url, Purpose.READ) as connection:
        role, missing = missing_rights(connection)
    if missing:
        raise DatabasePermissionDenied(
            f"The database role {role} lacks these rights: {', '.join(missing)}. As the owner "
            "of the tables, run the statements that `countersign database grants --role "
            f"{role}` prints."
        )


def missing_rights(connection: Connection) -> tuple[str, list[str]]:
    """The role of a connection, and the rights of a server that it lacks."""
    wanted = [
        (table, right, column.rstrip(")"))
        for table, rights in RIGHTS.items()
        for right, _, column in (part.partition(" (") for part in rights.split(", ") if part)
    ]
    tables, rights, columns = (list(part) for part in zip(*wanted, strict=True))
    role = connection.execute(text("SELECT current_user")).scalar_one()
    values = {"tables": tables, "rights": rights, "columns": columns}
    return role, list(connection.execute(_MISSING, values).scalars())
