"""`accounts` and `keys`: only the id or the key on standard output, words on standard error."""

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from countersign.core.access.key import PEOPLE_SCOPES, VENDOR_SCOPES, Scope, well_formed
from countersign.core.gate import commands
from tests.cli.conftest import Bench


@pytest.fixture
def vendor(initialised: Bench) -> Bench:
    """Give a deployment with an account called vendor."""
    initialised.account("vendor")
    return initialised


def test_only_the_id_of_a_new_account_is_on_standard_output(initialised: Bench) -> None:
    done = initialised.run("accounts", "create", "  Ärger & Söhne  ")
    assert re.fullmatch(r"acct_[0-9a-z]{26}\n", done.stdout)
    assert "Ärger & Söhne" in done.stderr
    (listed,) = initialised.read("accounts", "list")
    assert (listed["account_id"], listed["name"]) == (done.stdout.strip(), "Ärger & Söhne")
    shown = initialised.run("accounts", "list").stdout
    assert done.stdout.strip() in shown
    assert "Ärger & Söhne" in shown


def test_a_list_has_all_its_pages_unless_a_limit_is_given(
    initialised: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that acts on each of a list misses none."""
    monkeypatch.setattr(commands, "LIMIT_MAX", 2)
    names = [f"vendor {number}" for number in range(5)]
    for name in names:
        initialised.run("accounts", "create", name)
    assert [one["name"] for one in initialised.read("accounts", "list")] == names
    some = initialised.run("accounts", "list", "--limit", "2", "--json")
    assert [one["name"] for one in json.loads(some.stdout)] == names[:2]
    assert "There are more: --after" in some.stderr


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\tb", "acct_1", "bell\x07"])
def test_an_unusable_account_name_is_refused(initialised: Bench, name: str) -> None:
    assert "invalid_argument" in initialised.refused("accounts", "create", name)
    assert initialised.read("accounts", "list") == []


def test_an_account_name_is_given_once(vendor: Bench) -> None:
    """Not in another letter case either."""
    assert "account_exists" in vendor.refused("accounts", "create", "vendor")
    assert "account_exists" in vendor.refused("accounts", "create", "Vendor")


def test_an_empty_list_says_what_to_run(initialised: Bench) -> None:
    for noun in ("accounts", "keys"):
        done = initialised.run(noun, "list")
        assert done.stdout == ""
        assert f"countersign {noun} create" in done.stderr
        assert initialised.read(noun, "list") == []


@pytest.mark.parametrize("mode", ["test", "live"])
def test_only_the_new_key_is_on_standard_output(vendor: Bench, mode: str) -> None:
    done = vendor.run("keys", "create", "--account", "vendor", "--mode", mode)
    key = done.stdout.removesuffix("\n")
    assert well_formed(key)
    assert key.startswith(f"csign_sk_{mode}_")
    assert key not in done.stderr
    (listed,) = vendor.read("keys", "list")
    assert listed["key_id"] in done.stderr
    assert (listed["livemode"], listed["works"]) == (mode == "live", True)
    assert set(listed["scopes"]) == set(VENDOR_SCOPES)


def test_a_key_is_shown_this_once(vendor: Bench) -> None:
    key = vendor.key("vendor")
    secret = key[len("csign_sk_test_") : -4]
    for arguments in (["keys", "list"], ["keys", "list", "--json"]):
        done = vendor.run(*arguments)
        assert secret not in done.stdout + done.stderr
    for path in filter(Path.is_file, vendor.data_dir.rglob("*")):
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
        ("http://localhost", False),
        ("https://evidence.example.com", True),
    ],
)
def test_a_live_key_on_a_log_without_a_public_name_gets_a_warning(
    bench: Bench, url: str, is_known: bool
) -> None:
    """`init` prints the permanent names of the logs; going live with a trial gets a warning."""
    own = bench.but(PUBLIC_URL=url)
    origin = url.partition("//")[2] + "/v1/log/live/1"
    assert origin in own.run("init").stderr
    assert origin in own.read("init")["logs"]
    own.account("vendor")
    said = [
        own.run("keys", "create", "--account", "vendor", "--mode", mode).stderr
        for mode in ("test", "live")
    ]
    assert "warning" not in said[0]
    assert (f"the live log is named {origin}" in said[1]) is not is_known


def test_an_account_is_named_by_its_id_or_its_name(vendor: Bench) -> None:
    other = vendor.account("other")
    first = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    second = vendor.read("keys", "create", "--account", other, "--mode", "live")
    assert [k["key_id"] for k in vendor.read("keys", "list")] == [
        first["key_id"],
        second["key_id"],
    ]
    (of_vendor,) = vendor.read("keys", "list", "--account", "vendor")
    (of_other,) = vendor.read("keys", "list", "--account", other)
    assert (of_vendor["key_id"], of_other["key_id"]) == (first["key_id"], second["key_id"])
    assert of_other["account_id"] == other


def test_the_keys_of_an_account_include_both_modes(vendor: Bench) -> None:
    """Or of one; without an account there is no mode to choose."""
    made = [vendor.key("vendor", mode) for mode in ("test", "live")]
    vendor.key(vendor.account("other"))
    listed = vendor.read("keys", "list", "--account", "vendor")
    assert [one["hint"][-4:] for one in listed] == [key[-4:] for key in made]
    (live,) = vendor.read("keys", "list", "--account", "vendor", "--mode", "live")
    assert live["livemode"]
    done = vendor.run("keys", "list", "--mode", "live", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--account" in done.stderr


@pytest.mark.parametrize("scope", sorted(PEOPLE_SCOPES))
def test_no_key_has_scopes_of_people_alone(vendor: Bench, scope: Scope) -> None:
    of_test = ("--account", "vendor", "--mode", "test")
    said = vendor.refused("keys", "create", *of_test, "--scope", scope.value)
    assert "only people do" in said
    assert vendor.read("keys", "list") == []


def test_an_unknown_account_is_refused(vendor: Bench) -> None:
    for arguments in (
        ["keys", "create", "--account", "nobody", "--mode", "test"],
        ["keys", "list", "--account", "nobody"],
    ):
        said = vendor.refused(*arguments)
        assert "account_not_found" in said
        assert "nobody" in said


def test_a_key_can_be_made_with_fewer_powers(vendor: Bench) -> None:
    scopes = ("--scope", "acks:read", "--scope", "notices:read")
    made = vendor.read("keys", "create", "--account", "vendor", "--mode", "test", *scopes)
    assert made["scopes"] == ["acks:read", "notices:read"]
    assert made["key"].startswith("csign_rk_test_")
    assert vendor.read("keys", "list")[0]["scopes"] == ["acks:read", "notices:read"]


@pytest.mark.parametrize("scope", [Scope.KEYS_MANAGE, Scope.ERASURE_WRITE])
def test_powerful_scopes_must_be_named(vendor: Bench, scope: Scope) -> None:
    plain = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    assert scope not in plain["scopes"]
    made = vendor.read(
        "keys", "create", "--account", "vendor", "--mode", "test", "--scope", scope.value
    )
    assert made["scopes"] == [scope]


def test_an_unknown_scope_is_refused_with_the_known_ones(vendor: Bench) -> None:
    done = vendor.run(
        *("keys", "create", "--account", "vendor", "--mode", "test", "--scope", "acks:all"),
        check=False,
    )
    assert done.returncode == 2
    assert "acks:all" in done.stderr
    for scope in Scope:
        assert scope in done.stderr
    assert vendor.read("keys", "list") == []


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("45m", 2700), ("365d", 31_536_000)])
def test_a_key_can_be_made_to_expire(vendor: Bench, text: str, seconds: int) -> None:
    made = vendor.read(
        "keys", "create", "--account", "vendor", "--mode", "test", "--expires-in", text
    )
    created, expires = (_seconds(made[name]) for name in ("created_at", "expires_at"))
    assert expires - created == seconds


@pytest.mark.parametrize("text", ["0d", "-1d", "1", "1w", "1.5h", "", "9999999d"])
def test_an_invalid_lifetime_is_refused(vendor: Bench, text: str) -> None:
    done = vendor.run(
        *("keys", "create", "--account", "vendor", "--mode", "test", "--expires-in", text),
        check=False,
    )
    assert done.returncode == 2
    assert "such as 24h" in done.stderr
    assert vendor.read("keys", "list") == []


def test_a_rotated_key_has_a_successor_with_the_same_powers(vendor: Bench) -> None:
    options = ("--scope", "acks:read", "--expires-in", "48h")
    old = vendor.read("keys", "create", "--account", "vendor", "--mode", "live", *options)
    done = vendor.run("keys", "rotate", old["key_id"], "--overlap", "1h")
    assert well_formed(done.stdout.strip())
    first, second = vendor.read("keys", "list")
    assert second["replaces"] == first["key_id"] == old["key_id"]
    for same in ("account_id", "livemode", "scopes"):
        assert second[same] == first[same]
    assert first["works"]
    assert _seconds(first["expires_at"]) - _seconds(second["created_at"]) == 3600
    assert _seconds(second["expires_at"]) - _seconds(second["created_at"]) == 48 * 3600


def test_a_key_works_on_for_a_day_after_rotation_by_default(vendor: Bench) -> None:
    old = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    new = vendor.read("keys", "rotate", old["key_id"])
    assert new["key"] != old["key"]
    rotated, successor = vendor.read("keys", "list")
    assert _seconds(rotated["expires_at"]) - _seconds(successor["created_at"]) == 24 * 3600
    assert successor["expires_at"] is None


def test_revoking_asks_unless_the_answer_is_given(vendor: Bench) -> None:
    made = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    for typed in ("", "n\n", "\n"):
        said = vendor.refused("keys", "revoke", made["key_id"], typed=typed)
        assert "cannot be undone" in said
        assert vendor.read("keys", "list")[0]["works"]
    done = vendor.run("keys", "revoke", made["key_id"], typed="y\n")
    assert done.stdout == made["key_id"] + "\n"
    assert not vendor.read("keys", "list")[0]["works"]

    other = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    assert vendor.run("keys", "revoke", other["key_id"], "--yes").stdout == other["key_id"] + "\n"
    again = vendor.read("keys", "revoke", other["key_id"], "--yes")
    assert again["revoked_at"] == vendor.read("keys", "list")[1]["revoked_at"]


def test_a_key_that_does_not_work_cannot_be_rotated(vendor: Bench) -> None:
    made = vendor.read("keys", "create", "--account", "vendor", "--mode", "test")
    vendor.run("keys", "revoke", made["key_id"], "--yes")
    assert "key_not_usable" in vendor.refused("keys", "rotate", made["key_id"])
    assert len(vendor.read("keys", "list")) == 1


def test_an_unknown_key_is_refused(vendor: Bench) -> None:
    for arguments in (["keys", "rotate", "key_1"], ["keys", "revoke", "key_1", "--yes"]):
        assert "key_not_found" in vendor.refused(*arguments)


def _seconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp())
