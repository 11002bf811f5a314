"""An operator's desk: a deployment open in this process, and its commands, each in a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.conftest import Bench
from tests.http.backstage import another_deployment
from tests.support import postgres
from tests.verification.inside import Stage, staged


@dataclass(frozen=True)
class Desk:
    """An operator's tools."""

    stage: Stage
    bench: Bench

    def acts(self, *subject: str) -> list[tuple[str, str | None]]:
        """The acts in `buyers audit`, each with its reason, without those of `init`."""
        answer: list[dict[str, Any]] = self.bench.read("buyers", "audit", *subject)
        kept = [entry for entry in answer if entry["action"].startswith(("buyer_", "evidence_"))]
        return [(entry["action"], entry["details"].get("reason")) for entry in kept]


@contextmanager
def desk_at(
    place: Path, engine: postgres.PostgresServer | None = None, **settings: str
) -> Iterator[Desk]:
    """Open a new deployment: on SQLite, or on a fresh database of this PostgreSQL."""
    made = another_deployment(place, engine, **settings)
    bench = Bench(data_dir=made.data_dir, settings=dict(made.settings))
    with staged(made) as stage:
        yield Desk(stage, bench)
