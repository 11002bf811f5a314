"""`countersign database`: the roles of PostgreSQL."""

from __future__ import annotations

import click

from countersign.bootstrap import serving_role_grants
from countersign.cli.support import command, show


@click.group()
def database() -> None:
    """PostgreSQL: what the role of servers may do."""


@database.command("grants")
@click.option("--role", required=True, help="The role that servers connect as.")
@command
def grants(role: str, *, as_json: bool) -> None:
    """Print the SQL that gives a role all that servers need, and nothing else.

    Run it as the owner of the tables after `countersign init`, and again after each upgrade:
    countersign database grants --role ROLE | psql URL
    """
    statements = serving_role_grants(role)
    show({"statements": statements}, "\n".join(f"{s};" for s in statements), as_json=as_json)
