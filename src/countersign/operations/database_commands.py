"""`countersign database`: the roles of PostgreSQL."""

from __future__ import annotations

import click

from countersign.bootstrap import serving_role_grants
from countersign.cli.support import command, show


@click.group()
def database() -> None:
    """The rights of the PostgreSQL role of servers."""


@database.command("grants")
@click.option("--role", required=True, help="The role that servers use to connect.")
@command
def grants(role: str, *, as_json: bool) -> None:
    """Print the SQL that grants a role exactly the rights that servers need.

    Run the SQL as the owner of the tables after `countersign init`, and again after each upgrade:
    countersign database grants --role ROLE | psql URL
    """
    statements = serving_role_grants(role)
    show({"statements": statements}, "\n".join(f"{s};" for s in statements), as_json=as_json)
