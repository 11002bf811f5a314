"""Deployments that are broken on purpose, from outside: for one use, then thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql
from sqlalchemy import make_url

from tests.http import wire
from tests.http.backstage import Operator
from tests.http.failures import (
    ACKNOWLEDGE,
    INITIALED,
    NOTICE,
    VERIFY,
    Failure,
    acknowledged,
    clear,
    make_caller,
    verified,
)
from tests.support import postgres
from tests.support.service import Deployment, running_server

SANDBOX = b'{"test_mode":true}'


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Responses during the trouble, and after it."""

    failures: list[Failure]
    anyway: list[wire.Answer]
    """Answers to requests that the trouble must not touch."""
    after: list[wire.Answer]
    """Answers to the refused requests, once the trouble is over."""
    log: str
    """The server's log."""


def block(deployment: Deployment) -> Trouble:
    """Hold the write lock of SQLite for longer than a writer waits; then drop a table."""
    with (
        running_server(deployment, DRAIN_SECONDS="60") as server,
        Operator(deployment) as operator,
    ):
        caller = make_caller(operator, server.url)
        caller.send(NOTICE)
        with operator.transaction():
            answer = caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"patient")
            anyway = [caller.send(NOTICE), caller.send("/healthz", key=None)]
            ready = caller.send("/readyz", key=None)
        refused = [
            caller.failure("write lock held", "blocked", answer, b"POST"),
            caller.failure("write lock held: readiness", "blocked", ready),
        ]
        after = [caller.post(ACKNOWLEDGE, INITIALED, idempotency_key=b"patient")]
        after.append(caller.send("/v1/acknowledgments"))
        evidence = _evidence_in_trouble(deployment, operator, server.url)
        evidence.append(_disabled(deployment, operator, server.url))
        broken = _drop_a_table(operator, server.url)
        server.process.terminate()
        while (answer := caller.send("/readyz")).status == 200:
            pass  # the signal is on its way
        draining = caller.failure("about to stop", "draining", answer)
        server.process.terminate()
        return Trouble(
            failures=[*refused, *evidence, broken, draining],
            anyway=anyway,
            after=after,
            log=server.log.read_text(),
        )


def disconnect(deployment: Deployment, engine: postgres.PostgresServer) -> Trouble:
    """End every connection to the database and refuse new ones, for a while; then drop a table."""
    database = make_url(deployment.settings["DATABASE_URL"]).database
    assert database is not None
    with running_server(deployment) as server, Operator(deployment) as operator:
        caller = make_caller(operator, server.url)
        caller.post(VERIFY, SANDBOX)
        with _out_of_reach(engine, database):
            failures = [
                caller.failure(target, "storage_unavailable", caller.send(target))
                for target in ("/v1/acknowledgments", "/v1/notices", "/readyz")
            ]
            answer = caller.post(VERIFY, SANDBOX)
            failures.append(caller.failure(VERIFY, "storage_unavailable", answer, b"POST"))
            anyway = [caller.send(target, key=None) for target in ("/healthz", "/docs/errors")]
        after = [
            caller.send("/v1/acknowledgments"),
            caller.send("/v1/notices"),
            caller.post(VERIFY, SANDBOX),
        ]
        while (ready := caller.send("/readyz")).status != 200:
            pass  # its result is at most a second old
        after.append(ready)
        failures.append(_break_a_commit(operator, server.url))
        failures.append(_drop_a_table(operator, server.url))
        return Trouble(failures=failures, anyway=anyway, after=after, log=server.log.read_text())


def _evidence_in_trouble(deployment: Deployment, operator: Operator, url: str) -> list[Failure]:
    """Erase one order, damage an acknowledgment; then take away where the last head is kept."""
    caller = make_caller(operator, url)
    ack_id = acknowledged(caller)
    order = clear(caller, ack_id, verified(caller))
    deployment.run("erase", ack_id, "--yes")
    answer = caller.post(f"/v1/clearances/{order}/fulfilment", b'{"carrier":"UPS"}')
    erased = caller.failure("erased", "erased", answer, b"POST")
    made = acknowledged(caller)
    path = f"/v1/acknowledgments/{made}/dossier?disclose=session_id"
    operator.execute("UPDATE disclosures SET payload = x'00' WHERE record_id = :id", id=made)
    damaged = caller.failure("not its disclosures", "evidence_damaged", caller.send(path))
    heads = deployment.data_dir / "heads"
    heads.rename(heads.with_name("moved"))
    heads.write_text("in the way")
    answer = caller.send(f"/v1/acknowledgments/{acknowledged(caller)}/proof")
    return [erased, damaged, caller.failure("heads out of reach", "evidence_pending", answer)]


def _disabled(deployment: Deployment, operator: Operator, url: str) -> Failure:
    """An account is disabled while its vendor goes on asking."""
    caller = make_caller(operator, url)
    deployment.run("accounts", "disable", caller.account_id, "--yes")
    return caller.failure("disabled", "account_disabled", caller.send(NOTICE))


def _drop_a_table(operator: Operator, url: str) -> Failure:
    caller = make_caller(operator, url)
    operator.execute("DROP TABLE verifications")
    answer = caller.post(VERIFY, SANDBOX)
    return caller.failure("table gone", "internal_error", answer, b"POST")


def _break_a_commit(operator: Operator, url: str) -> Failure:
    """The session ends in the middle of its commit."""
    caller = make_caller(operator, url)
    operator.execute(
        "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
    )
    operator.execute(
        "CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON verifications DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION end_session()"
    )
    answer = caller.post(VERIFY, SANDBOX)
    return caller.failure("commit broken off", "outcome_unknown", answer, b"POST")


@contextmanager
def _out_of_reach(engine: postgres.PostgresServer, database: str) -> Iterator[None]:
    name = sql.Identifier(database)
    with engine.connect() as connection:
        allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        connection.execute(allow.format(name, sql.SQL("false")))
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
            (database,),
        )
        try:
            yield
        finally:
            connection.execute(allow.format(name, sql.SQL("true")))
