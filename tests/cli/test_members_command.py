"""`members` and `staff`: removals, and which of the person's keys end."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, database_url
from countersign.base.db.tables import api_keys
from tests.cli.conftest import Bench

pytestmark = pytest.mark.one_engine


@pytest.fixture
def removing(initialised: Bench) -> tuple[Bench, list[str]]:
    """A deployment with a member who has made two working keys, and their ids."""
    account = initialised.account("vendor")
    for name, role in (("Bo", "owner"), ("Dev", "developer")):
        initialised.run("members", "invite", name, "--account", account, "--role", role)
    for _ in range(2):
        initialised.key(account, "test")
    listed = initialised.read("members", "list", "--account", account)
    (dev,) = [one["person_id"] for one in listed if one["name"] == "Dev"]
    with schema.connected(database_url(None, initialised.data_dir), Purpose.WRITE) as connection:
        connection.execute(update(api_keys).values(made_by=dev))
        connection.commit()
    keys = initialised.read("keys", "list")
    assert {key["made_by"] for key in keys} == {dev}
    return initialised, [key["key_id"] for key in keys]


def test_with_yes_the_keys_to_end_must_be_named(removing: tuple[Bench, list[str]]) -> None:
    """Otherwise the command fails with their ids, and changes nothing."""
    bench, keys = removing
    remove = ("members", "remove", "Dev", "--account", "vendor", "--yes")
    said = bench.refused(*remove)
    assert "keys_remain" in said
    assert "--end-keys" in said
    assert all(key in said for key in keys)
    bench.run(*remove, "--end-keys", keys[0])
    assert [one["works"] for one in bench.read("keys", "list")] == [False, True]


@pytest.mark.parametrize(("answer", "works"), [("all", False), ("none", True)])
def test_without_the_option_it_asks(
    removing: tuple[Bench, list[str]], answer: str, works: bool
) -> None:
    """After the question whether the person is to be removed at all."""
    bench, keys = removing
    done = bench.run("members", "remove", "Dev", "--account", "vendor", typed=f"y\n{answer}\n")
    assert all(key in done.stderr for key in keys)
    assert {one["works"] for one in bench.read("keys", "list")} == {works}
    assert "Dev" not in bench.run("members", "list", "--account", "vendor").stdout


def test_a_person_is_named_by_id_or_name_and_a_link_replaces_the_earlier_one(
    initialised: Bench,
) -> None:
    """Standard output has only the link; with JSON it is the response of the operation."""
    of = ("--account", initialised.account("vendor"))
    invited = initialised.read("members", "invite", "Bo", *of, "--role", "owner")
    assert set(invited) == {"person_id", "name", "role", "link", "expires_at"}
    for who in ("bo", invited["person_id"]):
        done = initialised.run("members", "link", who, *of)
        assert "/console/link#csign_pl_" in done.stdout
        assert len(done.stdout.splitlines()) == 1
        assert "works once" in done.stderr
    made = initialised.read("members", "link", "Bo", *of)
    assert set(made) == {"person_id", "link", "expires_at"}
    assert made["person_id"] == invited["person_id"]
    assert "person_not_found" in initialised.refused("staff", "link", "Bo")
    second = initialised.read("staff", "invite", "Eve", "--role", "owner")["person_id"]
    initialised.run("staff", "link", second)
    assert "has a link" in initialised.refused("members", "invite", second, *of, "--role", "owner")


def test_a_key_that_the_machine_made_says_so(initialised: Bench) -> None:
    """In the list as text and as JSON."""
    initialised.key(initialised.account("vendor"))
    assert initialised.read("keys", "list")[0]["made_by"] == "machine"
    assert "  machine  -\n" in initialised.run("keys", "list").stdout
