"""`countersign migrate-database`: from the embedded database to PostgreSQL, one way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import click
from sqlalchemy import URL

from countersign.base.cli import SaidProgress
from countersign.base.config import Settings, load_settings
from countersign.base.db.engine import database_url
from countersign.base.db.pooler import refuse_unknown_pooler
from countersign.base.errors import InvalidConfiguration, MoveFailed
from countersign.base.files import only_server
from countersign.core.log.check import LogFinding, check_logs
from countersign.operate.bootstrap import open_deployment
from countersign.operate.move import begun_move, cancel_move, moved_to, place_of
from countersign_evidence.cli.support import command, say, show

_NEXT: Final = (
    "Set COUNTERSIGN_DATABASE_URL to the new database, keep the data directory with its keys and "
    "heads, grant the role of servers its rights (countersign database grants), and start the "
    "servers. The old file stays, and cannot be used any more: delete it when a backup of the new "
    "database has been restored once."
)
_ONE_WAY: Final = (
    "Only the embedded database can be moved, and only to PostgreSQL. From PostgreSQL there is no "
    "way back to a file: its events are in the order of PostgreSQL's transactions, and servers "
    "on other machines could still write to it. To move from one PostgreSQL to another, use its "
    "own tools."
)


@click.command("migrate-database")
@click.option("--to", metavar="URL", help="Of an empty PostgreSQL database, as its owner.")
@click.option("--cancel", is_flag=True, help="Give up a move that is not complete.")
@command
def migrate_database(*, to: str | None, cancel: bool) -> None:
    """Move the embedded database to an empty PostgreSQL database. Stop the server first.

    After a kill or failure, run it again: it continues where it stopped. Each row is compared, and
    the logs are checked in the new database; until then neither can be used, afterwards only the
    new one. It requests no confirmation.
    """
    settings = load_settings()
    source = database_url(None, settings.data_dir)
    if cancel == bool(to):
        raise InvalidConfiguration("Give either --to URL or --cancel.")
    target = None if to is None else _target(to)
    place = moved_to(source, target)
    if place is not None and target is not None:
        say(f"Nothing is left to move: everything is in {place}.")
        show({"moved_to": place, "rows": 0}, place)
        return
    if settings.database_url is not None and not cancel:
        raise MoveFailed(_ONE_WAY)
    with only_server(settings.data_dir):
        if target is None:
            begun = cancel_move(source)
            say(
                "The move is given up: the old database can be used again. Drop the new one."
                if begun
                else "No move has begun."
            )
            show({"cancelled": begun}, "")
            return
        refuse_unknown_pooler(target)
        with begun_move(source, target) as move:
            move.copy(SaidProgress("Copying"))
            move.compare(SaidProgress("Comparing"))
            asyncio.run(_check(replace(settings, database_url=to)))
            move.finish()
    place = place_of(target)
    say(f"{move.rows:,} rows were moved to {place}, each compared. {_NEXT}")
    show({"moved_to": place, "rows": move.rows}, place)


def _target(to: str) -> URL:
    try:
        return database_url(to, load_settings().data_dir)
    except InvalidConfiguration as error:
        wrong = "--to is not a URL such as postgresql://user@host/name."
        raise MoveFailed(_ONE_WAY if to.startswith("sqlite") else wrong) from error


async def _check(settings: Settings) -> None:
    """As `countersign log check` does, in the new database."""
    said = SaidProgress("Checking the logs")
    findings = []
    async with open_deployment(settings, while_moving=True) as deployment:
        async for step in check_logs(deployment.log):
            if isinstance(step, LogFinding):
                findings += [] if step.is_remark else [f"{step.log}: {step.message}"]
            else:
                said(step.checked, step.log.size, "entries")
    if findings:
        raise MoveFailed(
            f"The logs are not in order in the new database: {'; '.join(findings[:5])}. Give the "
            "move up (--cancel), and see whether `countersign log check` finds the same in the old "
            "one."
        )
