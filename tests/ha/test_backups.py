"""High availability: the database goes back to a moment, and the log does not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.drills.load import of_status
from tests.ha.nodes import Node, Nodes, wait
from tests.ha.service import SERVERS, Service, service, until

pytestmark = [pytest.mark.ha, pytest.mark.first_try, pytest.mark.timeout(500)]

MODES = ("live", "test")


def test_the_database_is_restored_to_a_moment(tmp_path: Path) -> None:
    """No server seals a fork, with the published heads or without any."""
    with service(tmp_path, hosts=False) as broken:
        leader = broken.nodes.primary
        assert leader is not None
        leader.run("pgbackrest", "--stanza=countersign", "stanza-create")
        with broken.load() as load:
            until(load)
            leader.run("pgbackrest", "--stanza=countersign", "--type=full", "backup")
            until(load)
        until_sealed(broken)
        kept = [order for order in load.orders if order.answers]
        moment = now(leader)
        with broken.load() as lost:
            until(lost)
        until_sealed(broken)
        broken.judge()
        published = heads(broken)
        stop(broken)
        restore(broken.nodes, moment)

        # One server keeps the published heads, and the other has an empty place of its own.
        broken.given["db2"] = {"LOG_HEAD_DIR": str(tmp_path / "empty")}
        broken.start()
        with broken.load() as waiting:
            until_waiting(broken)
        gone = {order.ack_id for order in lost.orders if order.answers}
        assert not gone & broken.kept_ids()
        assert heads(broken) == published
        severity, words = broken.doctor()["logs"]
        assert (severity, "log recover" in words) == ("broken", True)
        refuse_to_forget(broken)
        # A monitor misses heads that were published and lost: docs/monitor.md, `gap`.
        broken.watch()
        wait(lambda: alarms(broken) == {"gap"}, "the monitor's alarm")

        recover(broken, "--new-epoch")
        broken.given.clear()
        broken.restart(1)
        broken.log_name = "test/2"
        broken.watch_again()
        with broken.load() as after:
            until(after)

        # Then the place itself is lost, and the database has lost nothing.
        stop(broken)
        shutil.rmtree(broken.settings["LOG_HEAD_DIR"])
        broken.start()
        with broken.load() as again:
            until_waiting(broken)
            recover(broken, "--adopt-database-head", "--move-heads")
            until(again)
        load.orders[:] = kept
        broken.loads[:] = [load, waiting, after, again]
        broken.judge()
        assert broken.deployment.read("log", "check")["findings"] == []


def stop(broken: Service) -> None:
    """Stop the servers."""
    for number in range(SERVERS):
        broken.stop_server(number)


def recover(broken: Service, *how: str) -> None:
    """Decide for both logs."""
    for mode in MODES:
        broken.deployment.run("log", "recover", "--mode", mode, *how, "--yes")


def refuse_to_forget(broken: Service) -> None:
    """From the empty place the database's head is not to be had: another server saw the fork."""
    own = dict(broken.settings) | broken.given["db2"]
    words = ("log", "recover", "--mode", "test", "--adopt-database-head", "--move-heads", "--yes")
    done = replace(broken.deployment, settings=own).run(*words, check=False)
    assert (done.returncode, "was not restored" in done.stderr) == (1, True), done.stderr


def now(leader: Node) -> str:
    """The database's time."""
    with leader.administrator() as administrator:
        row = administrator.execute("SELECT clock_timestamp()::text").fetchone()
    assert row is not None
    return str(row[0])


def until_sealed(broken: Service) -> None:
    """Wait until nothing waits to be sealed."""
    wait(
        lambda: not any(one["waiting"] for one in broken.deployment.read("log", "status")),
        "what waits is sealed",
    )


def heads(broken: Service) -> dict[str, bytes]:
    """The published heads, in the servers' place."""
    folder = Path(broken.settings["LOG_HEAD_DIR"])
    return {mode: (folder / f"{mode}.checkpoint").read_bytes() for mode in MODES}


def alarms(broken: Service) -> set[str]:
    """The monitor's alarms: their kinds, which name files."""
    return {file.name.split("-")[0] for file in (broken.folder / "state/alarms").glob("*.json")}


def until_waiting(broken: Service) -> None:
    """Wait until acts are done, and each server says that it does not seal."""
    load = broken.loads[-1]
    for number in range(SERVERS):
        wait(partial(_suspends, broken, number), f"server {number} says that it does not seal")
    begun = len(load.tried)
    wait(lambda: len(of_status(load.tried[begun:], 200)) >= 100, "acts are done")


def _suspends(broken: Service, number: int) -> bool:
    status, body = broken.readiness_of(number)
    return status == 200 and body["checks"]["sealing"] == "suspended"


def restore(nodes: Nodes, moment: str) -> None:
    """The database as it was then, by the commands of docs/high-availability.md."""
    leader = nodes.primary
    assert leader is not None
    others = [node for node in nodes.each if node is not leader]
    for node in (*others, leader):
        node.stop()
    configured = leader.root / "etc/patroni/config.yml"
    leader.run(
        "patronictl",
        "-c",
        configured,
        "remove",
        "countersign",
        typed="countersign\nYes I am aware\n",
    )
    leader.run(
        "pgbackrest", "--stanza=countersign", "--delta", "--type=time", f"--target={moment}",
        "--target-action=promote", "restore",
    )  # fmt: skip
    own = "-c listen_addresses="
    log = leader.root / "restore.log"
    leader.run("pg_ctl", "-D", leader.data, "-l", log, "-t", "3600", "-o", own, "start")
    recovers = ("psql", "-h", leader.root / "run", "-Atc", "SELECT pg_is_in_recovery()")
    wait(lambda: leader.run(*recovers).strip() == "f", "that moment")
    leader.run("pg_ctl", "-D", leader.data, "stop")
    leader.start("patroni")
    wait(lambda: leader.asked("/primary") == 200, "the restored database")
    for node in others:
        shutil.rmtree(node.data)
        node.start("patroni")
    nodes.until_whole()
