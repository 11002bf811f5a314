"""What the pages state about errors, the sandbox and the database is what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import psycopg
import pytest

from countersign.domain.reason import Reason
from countersign.errors import CountersignError, Refusal
from countersign.http.errors import STATUS
from countersign.providers.sandbox import SCRIPT
from countersign.storage.tables import PROTECTED
from tests.docs.markdown import ROOT, every_page, read
from tests.support.postgres import PostgresServer
from tests.support.service import Deployment, running_server

INTEGRATE = read(ROOT / "docs" / "integrate.md")
OPERATE = read(ROOT / "docs" / "operate.md")
STATUS_OF = {error.code: status for error, status in STATUS.items()}
_STATUS_AND_CODE = re.compile(r"\b([45]\d\d)\s+`([a-z_]+)`")
_CODE_IN_BRACKETS = re.compile(r"\(`([a-z]+_[a-z_]*[a-z])`\)")
_ERROR_BODY = re.compile(r'"code": "([a-z_]+)"')


def _codes(error: type[CountersignError]) -> set[str]:
    return {error.code}.union(*map(_codes, error.__subclasses__()))


def test_the_error_table_lists_every_code_with_its_status() -> None:
    """A vendor finds each code, and none that cannot come."""
    rows = INTEGRATE.rows("## Errors")
    assert {code.strip("`"): int(status) for code, status, _ in rows} == STATUS_OF
    assert len(rows) == len(STATUS_OF)


@pytest.mark.parametrize("path", every_page(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_error_code_that_is_mentioned_exists(path: Path) -> None:
    """With the status that is named beside it, where there is one."""
    page = read(path)
    for status, code in _STATUS_AND_CODE.findall(page.prose):
        assert STATUS_OF.get(code) == int(status), f"{path}: {status} {code}"
    for code in _CODE_IN_BRACKETS.findall(page.prose):
        known = _codes(CountersignError) | set(Reason) | _codes(Refusal)
        assert code in known, f"{path}: {code}"
    for block in page.blocks:
        for code in _ERROR_BODY.findall(block.text):
            assert code in STATUS_OF, f"{block}: {code}"


def test_the_sandbox_table_lists_every_session_id() -> None:
    """The first row is for all the others."""
    rows = INTEGRATE.rows("## The sandbox")
    assert [row[0].strip("`") for row in rows[1:]] == list(SCRIPT)


def test_each_sandbox_session_answers_as_the_table_says(client: httpx2.Client) -> None:
    """Status, answer and reasons, over real HTTP."""
    for row in INTEGRATE.rows("## The sandbox"):
        session, status, answer, reasons = (cell.strip("`") for cell in row)
        body: dict[str, object] = {"shipping_zip": "94105", "test_mode": True}
        if session in SCRIPT:
            body["provider_identity_session_id"] = session
        got = client.post("/v1/buyers/verify", json=body)
        told = got.json()
        assert got.status_code == int(status), row
        if status == "200":
            assert (told["status"], told.get("reasons", [])) == (answer, reasons.split()), row
        else:
            assert told["error"]["code"] == answer, row


@pytest.mark.postgres
def test_a_server_runs_with_the_documented_grants(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The two SQL blocks suffice for serving, and give no power over what is evidence."""
    as_administrator, as_owner = [b.text for b in OPERATE.blocks if b.language == "sql"]
    with postgres_server.connect() as connection:
        # One at a time: a database cannot be made in a transaction with anything else.
        for statement in as_administrator.split(";"):
            connection.execute(statement.encode())
    urls = {
        role: postgres_server.url("countersign").replace("postgres@", f"{role}@")
        for role in ("countersign_owner", "countersign_app")
    }
    owner = Deployment(
        data_dir=tmp_path / "data", settings={"DATABASE_URL": urls["countersign_owner"]}
    )
    owner.run("init")
    with _connect(postgres_server, "countersign_owner") as connection:
        connection.execute(as_owner.encode())
    key = owner.key(owner.account("Example Arms"))
    serving = Deployment(
        data_dir=tmp_path / "data", settings={"DATABASE_URL": urls["countersign_app"]}
    )
    with running_server(serving) as server:
        walked = subprocess.run(
            [sys.executable, ROOT / "examples" / "quickstart.py", "--base-url", server.url],
            env=serving.environment | {"COUNTERSIGN_API_KEY": key},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert walked.returncode == 0, walked.stderr
    events = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    # Housekeeping, which begins with the server, has been allowed too.
    assert not [event for event in events if event["event"] != "refused"]

    with _connect(postgres_server, "countersign_app") as connection:
        for table in PROTECTED:
            for statement in (
                f"DELETE FROM {table}",  # noqa: S608 - our own names
                f"TRUNCATE {table}",
                f"ALTER TABLE {table} DISABLE TRIGGER ALL",
                f"DROP TABLE {table}",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())


def _connect(server: PostgresServer, role: str) -> psycopg.Connection:
    return psycopg.connect(
        host=str(server.socket_directory), user=role, dbname="countersign", autocommit=True
    )
