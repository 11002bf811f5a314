"""A pooler in transaction mode: each transaction may have another session of PostgreSQL.

Session settings would stay for the next client of the session, and prepared statements would be
gone the next time. So nothing is prepared, and every limit is set in the transaction that it is
for. Locks are of transactions anyway; nothing listens, and no table is temporary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import URL

from countersign.base.errors import InvalidConfiguration

_POOLER: Final = "countersign_pooler"


def through_pooler(url: URL) -> URL:
    """The same URL, of a database that is reached through a pooler in transaction mode."""
    return url.update_query_dict({_POOLER: "transaction"})


def is_through_pooler(url: URL) -> bool:
    """Whether the settings say so of this URL."""
    return _POOLER in url.query


def of_driver(url: URL) -> URL:
    """The URL as the driver takes it."""
    return url.difference_update_query([_POOLER])


def refuse_unknown_pooler(url: URL) -> None:
    """Refuse a pooler that hands sessions around, unless the settings name it.

    Raises:
        InvalidConfiguration: with the ways to go on.
    """
    import psycopg  # noqa: PLC0415 - not where the database is embedded

    if not is_through_pooler(url):
        _, arguments = url.get_dialect()().create_connect_args(url)
        try:
            pooled = hands_sessions_around(arguments)
        except psycopg.Error:
            return  # the next use of the database reports the error
        if pooled:
            raise InvalidConfiguration(
                "COUNTERSIGN_DATABASE_POOLER: expected transaction, since a pooler between this "
                "server and PostgreSQL gives each transaction another session. Or connect "
                "without it, or by a pooler in session mode."
            )


def hands_sessions_around(arguments: Mapping[str, Any]) -> bool:
    """Whether one connection with these arguments of psycopg has more than one session."""
    import psycopg  # noqa: PLC0415 - as above

    with psycopg.connect(**arguments) as one, psycopg.connect(**arguments) as other:
        one.autocommit = True
        before = _session(one)
        _session(other)  # it takes the session that a pooler has just got back, and keeps it
        return _session(one) != before


def _session(connection: Any) -> int:  # noqa: ANN401 - of a driver that is imported late
    return int(connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()[0])
