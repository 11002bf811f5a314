"""A key-encryption key that a command fetches: slowly, or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.base.config import load_settings
from countersign.base.errors import StorageUnavailable
from countersign.operate.bootstrap import open_deployment
from tests.sealing.acts import INITIALS, NOTICE, acknowledge
from tests.support.service import Deployment, running_server

KEY = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="
COMMAND = """#!/bin/sh
cd "$(dirname "$0")"
echo run >> runs
while [ -e wait ]; do sleep 0.02; done
[ -e broken ] && exit 1
cat keys
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give the directory of a command; a file `wait` in it makes it wait, `broken` fail."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "keys").write_text(KEY + "\n")
    (folder / "fetch").write_text(COMMAND)
    (folder / "fetch").chmod(0o700)
    return folder


@pytest.fixture
def deployment(tmp_path: Path, source: Path) -> Deployment:
    """Give an initialised deployment whose key comes from the command."""
    made = Deployment(
        data_dir=tmp_path / "data", settings={"KEY_ENCRYPTION_KEY": f"command:{source / 'fetch'}"}
    )
    made.run("init")
    return made


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110 - a file of another process
        await asyncio.sleep(0.01)


def test_all_callers_who_need_a_months_key_wait_for_one_command_and_no_others_do(
    deployment: Deployment, source: Path
) -> None:
    """The command ends only after the event loop has gone on, so it must not hold it up."""

    async def ask() -> None:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            (source / "runs").unlink()
            (source / "wait").touch()
            asked = [
                asyncio.create_task(opened.vault.vault.data_key("acct_new", time.time_ns()))
                for _ in range(20)
            ]
            async with asyncio.timeout(8):
                await until((source / "runs").exists)
            (source / "wait").unlink()
            keys = await asyncio.gather(*asked)
            assert len({key.id for key in keys}) == 1

    asyncio.run(ask())
    assert (source / "runs").read_text().splitlines() == ["run"]


def test_a_key_that_one_caller_gave_up_on_is_made_for_the_others(
    deployment: Deployment, source: Path
) -> None:
    """One of them may be a closed connection."""

    async def ask() -> None:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            (source / "runs").unlink()
            (source / "wait").touch()
            first, second = (
                asyncio.create_task(opened.vault.vault.data_key("acct_new", time.time_ns()))
                for _ in range(2)
            )
            async with asyncio.timeout(8):
                await until((source / "runs").exists)
            first.cancel()
            (source / "wait").unlink()
            assert (await second).id

    asyncio.run(ask())


def test_a_failed_command_is_tried_again_by_the_next_caller(
    deployment: Deployment, source: Path
) -> None:
    async def ask() -> None:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            (source / "broken").touch()
            with pytest.raises(StorageUnavailable) as caught:
                await opened.vault.vault.data_key("acct_new", time.time_ns())
            assert caught.value.retry_after >= 1
            (source / "broken").unlink()
            assert (await opened.vault.vault.data_key("acct_new", time.time_ns())).id

    asyncio.run(ask())


def test_while_the_command_fails_acknowledgments_are_to_be_sent_again(
    deployment: Deployment, source: Path
) -> None:
    """503 with Retry-After, and the same request succeeds once it works; the log says why."""
    key = deployment.key(deployment.account("vendor"))
    with running_server(deployment) as server, server.client(key) as client:
        (source / "broken").touch()
        answer = client.post(
            f"/v1/notices/{NOTICE}/acknowledge", json={"initials_per_line": INITIALS}
        )
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "storage_unavailable"
        assert int(answer.headers["retry-after"]) >= 1
        assert str(source) not in answer.text
        (source / "broken").unlink()
        assert acknowledge(client)
    assert b"key_encryption_unavailable" in server.log.read_bytes()
