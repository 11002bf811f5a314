"""Drills: the database server is gone, or another program locks the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drills.load import CLIENTS, Load, of_status
from tests.drills.site import site
from tests.support import postgres
from tests.support.lock_holder import write_lock_held

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

DURABLE = {"fsync": "off", "full_page_writes": "off"}


@pytest.fixture
def server() -> Iterator[postgres.PostgresServer]:
    """Give a PostgreSQL that this drill may stop."""
    with postgres.running_postgres(DURABLE) as started:
        yield started


def accepted_by(load: Load) -> set[str]:
    """The Idempotency-Keys of accepted requests."""
    return {order.key for order in load.orders if order.answers}


def test_another_program_holds_the_write_lock(tmp_path: Path) -> None:
    """Callers and readiness name it; all goes on as soon as it ends."""
    with site(tmp_path) as broken:
        with broken.load() as load:
            for _ in range(2):
                load.until(200, 200)
                with write_lock_held(broken.data_dir / "countersign.db"):
                    load.until(CLIENTS, 503)
                    accepted = accepted_by(load)
                    load.until(CLIENTS, 503)  # a retry of an accepted request is answered 200
                    assert accepted_by(load) == accepted
                    load.until_ready(503)
                    assert of_status(load.tried, 503)[-1].code == "blocked"
                    severity, words = broken.doctor()["server"]
                    assert severity == "broken"
                    assert "End the program that holds the file" in words
                load.until_ready(200, "ok")
            load.until(200, 200)
        broken.judge()


@pytest.mark.postgres
def test_the_database_is_gone_while_serving(
    server: postgres.PostgresServer, tmp_path: Path
) -> None:
    """It continues by itself when the database is back, whatever the cause."""
    with site(tmp_path, DATABASE_URL=postgres.fresh_database(server)) as broken:
        with broken.load() as load:
            for _ in range(2):
                load.until(200, 200)
                server.stop()
                load.until_all(50, 503)
                load.until_ready(503)
                severity, words = broken.doctor()["database"]
                assert severity == "broken"
                assert "Start the database server" in words
                server.start()
                load.until_ready(200, "ok")
            load.until(200, 200)
        broken.judge()


@pytest.mark.postgres
def test_the_database_is_gone_at_the_start(server: postgres.PostgresServer, tmp_path: Path) -> None:
    """The server says so and ends, and what starts servers starts it again."""
    with site(tmp_path, DATABASE_URL=postgres.fresh_database(server)) as broken:
        with broken.load() as load:
            load.until(100, 200)
            broken.kill()
            server.stop()
            broken.launch()
            assert broken.ended() != 0
            assert "Traceback" not in broken.log.read_text()
            assert broken.doctor()["database"][0] == "broken"
            server.start()
            broken.start()
            load.until(100, 200)
            load.until_ready(200, "ok")
        broken.judge()
