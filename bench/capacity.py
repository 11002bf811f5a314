"""The cost of an acknowledgment on PostgreSQL, and the totals: ``python -m bench.capacity``.

One server and one database on this machine are loaded with acknowledgments. Counted are processor
time of the server and of the database, bytes of the write-ahead log, and bytes that each table
keeps. Then acknowledgments are accepted while none can be sealed, and are sealed afterwards with no
other load: that is the limit of one log. The figures for a deployment are computed from these.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import psycopg

from bench.load import Load, ensure_wrk, measure
from bench.options import LASTING
from bench.plan import OPERATIONS, Endpoint
from bench.postgres import Postgres, postgres
from bench.processes import Child
from bench.rounds import say
from bench.servers import install, prepare, serve

_LASTING_TABLES: Final = frozenset(
    (
        *("records", "disclosures", "shred_keys", "log_entries", "log_tiles"),
        *("acknowledgment_uses", "order_acts"),
    )
)
"""Data kept as long as an acknowledgment's evidence; the rest is deleted within 90 days."""
_STORED: Final = 10**9
_RATE: Final = 10**5
_POLL_SECONDS: Final = 0.05

_WAITING: Final = "SELECT count(*) FROM log_pending"
_WRITTEN: Final = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
_SIZES: Final = """
SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text, sum(pg_total_relation_size(c.oid))
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace GROUP BY 1
"""


class Costs(NamedTuple):
    """Figures of one acknowledgment."""

    server_us: float
    database_us: float
    log_bytes: float
    lasting: float
    ending: float
    """Bytes kept: as long as the evidence, and for 90 days at most."""


class Sealing(NamedTuple):
    """Sealing waiting records without other load."""

    per_second: float
    server_us: float
    database_us: float


def main() -> None:
    """Measure, and print what follows."""
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="length of each of two loads")
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    wrk, load = ensure_wrk(), Load(options.connections, options.seconds)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                TemporaryDirectory(
                    prefix="countersign-capacity-", dir=LASTING if LASTING.is_dir() else None
                )
            )
        )
        folder.chmod(0o711)
        database = stack.enter_context(postgres(folder))
        database.create("capacity")
        command = (str(Path(sys.executable).parent / "countersign"),)
        installed = install(folder, database.url("capacity"), command)
        server = stack.enter_context(serve(installed, folder / "server.log"))
        heads = Path(installed.environment["COUNTERSIGN_DATA_DIR"]) / "heads"
        run = _Run(
            wrk=wrk,
            load=load,
            endpoint=prepare(installed),
            server=server,
            database=database,
            heads=heads,
        )
        look = stack.enter_context(psycopg.connect(database.url("capacity"), autocommit=True))
        costs, sealing = run.costs(look), run.sealing(look)
    _print(costs, sealing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A server and its database, and what loads them."""

    wrk: Path
    load: Load
    endpoint: Endpoint
    server: Child
    database: Postgres
    heads: Path
    """Where the server keeps the last published checkpoints."""

    def acknowledge(self) -> int:
        """Load the server; how many acknowledgments that were."""
        return measure(self.wrk, self.endpoint, OPERATIONS["acknowledge"], self.load).requests

    def took(self) -> tuple[float, float]:
        """Microseconds of processor that server and database have taken so far."""
        return self.server.cpu_seconds() * 1e6, self.database.child.cpu_seconds() * 1e6

    def costs(self, look: psycopg.Connection) -> Costs:
        """For acknowledgments that are sealed at once."""
        self.acknowledge()
        _all_sealed(look)
        sizes, written, took = _sizes(look), _number(look, _WRITTEN), self.took()
        number = self.acknowledge()
        _all_sealed(look)
        server, database = self.took()
        log_bytes = (_number(look, _WRITTEN) - written) / number
        grown = {name: (size - sizes.get(name, 0)) / number for name, size in _sizes(look).items()}
        for name, size in sorted(grown.items(), key=lambda item: -item[1]):
            if size >= 1:
                say(f"{name:<24} {size:>7,.0f} bytes")
        lasting = sum(size for name, size in grown.items() if name in _LASTING_TABLES)
        ending = sum(grown.values()) - lasting
        return Costs(
            (server - took[0]) / number, (database - took[1]) / number, log_bytes, lasting, ending
        )

    def sealing(self, look: psycopg.Connection) -> Sealing:
        """For acknowledgments accepted while none could be sealed."""
        kept = self.heads.with_name("kept")
        self.heads.rename(kept)
        self.heads.touch()  # in the way: nothing can be published
        self.acknowledge()
        before = _number(look, _WAITING)
        self.heads.unlink()
        kept.rename(self.heads)
        while (waiting := _number(look, _WAITING)) == before:
            time.sleep(_POLL_SECONDS)
        begun, took = time.monotonic(), self.took()
        _all_sealed(look)
        seconds, (server, database) = time.monotonic() - begun, self.took()
        return Sealing(
            waiting / seconds, (server - took[0]) / waiting, (database - took[1]) / waiting
        )


def _print(costs: Costs, sealing: Sealing) -> None:
    logs = _RATE / sealing.per_second
    lines = {
        "an acknowledgment, server": f"{costs.server_us:,.0f} us",
        "an acknowledgment, database": f"{costs.database_us:,.0f} us",
        "write-ahead log": f"{costs.log_bytes:,.0f} bytes",
        "kept as long as the evidence": f"{costs.lasting:,.0f} bytes",
        "kept for 90 days at most": f"{costs.ending:,.0f} bytes",
        "sealing alone": f"{sealing.per_second:,.0f}/s, server {sealing.server_us:,.0f} us,"
        f" database {sealing.database_us:,.0f} us",
        f"{_STORED:,} stored": f"{costs.lasting * _STORED / 1e12:,.1f} TB",
        f"{_RATE:,}/s, servers": f"{costs.server_us * _RATE / 1e6:,.0f} cores",
        f"{_RATE:,}/s, database": f"{costs.database_us * _RATE / 1e6:,.0f} cores",
        f"{_RATE:,}/s, write-ahead log": f"{costs.log_bytes * _RATE / 1e6:,.0f} MB/s",
        f"{_RATE:,}/s, logs": f"{logs:,.1f}, where sealing has a core to itself",
    }
    for name, value in lines.items():
        sys.stdout.write(f"{name:<30} {value}\n")


def _all_sealed(look: psycopg.Connection) -> None:
    while _number(look, _WAITING):
        time.sleep(_POLL_SECONDS)


def _number(look: psycopg.Connection, query: str) -> int:
    row = look.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _sizes(look: psycopg.Connection) -> Mapping[str, int]:
    return {name: int(size) for name, size in look.execute(_SIZES.encode()).fetchall()}


if __name__ == "__main__":
    main()
