"""Commands work while a server runs, and take effect at once."""

import time
from pathlib import Path

import pytest

from countersign.core.access.keys import REVOCATION_LAG_SECONDS
from tests.cli.conftest import Bench
from tests.cli.notice_files import write_notice
from tests.support.service import Server

pytestmark = pytest.mark.long

NOTICES = "/v1/notices"


def status(server: Server, key: str, path: str = NOTICES) -> int:
    with server.client(key) as client:
        return client.get(path).status_code


def test_a_new_key_works_at_once(served: tuple[Bench, Server]) -> None:
    bench, server = served
    for mode in ("test", "live"):
        assert status(server, bench.key(bench.account(f"new {mode}"), mode)) == 200


def test_both_keys_work_while_one_replaces_the_other(served: tuple[Bench, Server]) -> None:
    bench, server = served
    account = bench.account("rotating")
    old = bench.read("keys", "create", "--account", account, "--mode", "test")
    assert status(server, old["key"]) == 200
    new = bench.run("keys", "rotate", old["key_id"]).stdout.strip()
    assert status(server, new) == 200
    assert status(server, old["key"]) == 200


def test_a_revoked_key_stops_working_within_five_seconds(served: tuple[Bench, Server]) -> None:
    bench, server = served
    assert REVOCATION_LAG_SECONDS == 5
    made = bench.read("keys", "create", "--account", bench.account("revoking"), "--mode", "test")
    with server.client(made["key"]) as client:
        assert client.get(NOTICES).status_code == 200
        bench.run("keys", "revoke", made["key_id"], "--yes")
        revoked_at = time.monotonic()
        while True:
            asked_at = time.monotonic()
            answer = client.get(NOTICES)
            if answer.status_code != 200:
                break
            # However slow this machine is: later requests must be refused.
            assert asked_at - revoked_at < REVOCATION_LAG_SECONDS
            time.sleep(0.1)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_a_key_stops_working_when_it_expires(served: tuple[Bench, Server]) -> None:
    bench, server = served
    made = bench.read("keys", "create", "--account", bench.account("expiring"), "--mode", "test")
    bench.run("keys", "rotate", made["key_id"], "--overlap", "2s")
    made_at = time.monotonic()
    with server.client(made["key"]) as client:
        while True:
            asked_at = time.monotonic()
            answer = client.get(NOTICES)
            if answer.status_code != 200:
                break
            assert asked_at - made_at < 2
            time.sleep(0.1)
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_a_key_has_the_rights_of_its_scopes(served: tuple[Bench, Server]) -> None:
    bench, server = served
    account = bench.account("scoped")
    key = bench.key(account, "test", "--scope", "acks:read")
    assert status(server, key, "/v1/acknowledgments") == 200
    with server.client(key) as client:
        refused = client.get(NOTICES)
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "forbidden"
        assert "notices:read" in refused.headers["WWW-Authenticate"]


def test_a_notice_counts_at_once_when_it_is_published_reviewed_and_withdrawn(
    served: tuple[Bench, Server], tmp_path: Path
) -> None:
    bench, server = served
    account = bench.account("at once")
    notice_id = "at-once"
    first = write_notice(tmp_path / "first.toml", notice_id, "1", ["One."])
    second = write_notice(tmp_path / "second.toml", notice_id, "2", ["One.", "Two."])
    with (
        server.client(bench.key(account, "test")) as test,
        server.client(bench.key(account, "live")) as live,
    ):

        def in_force() -> tuple[str, str]:
            """The version or the error code that test and live keys get."""
            answers = [client.get(f"{NOTICES}/{notice_id}").json() for client in (test, live)]
            one, two = (a.get("version") or a["error"]["code"] for a in answers)
            return one, two

        def review(version: str) -> None:
            words = ("--by", "A. Counsel", "--against", "https://example.com/law")
            bench.run("notices", "review", notice_id, "--version", version, *words)

        def withdraw(version: str) -> None:
            bench.run("notices", "withdraw", notice_id, "--version", version, "--yes")

        seen = [in_force()]
        for act in (
            lambda: bench.run("notices", "publish", str(first)),
            lambda: review("1"),
            lambda: bench.run("notices", "publish", str(second)),
            lambda: review("2"),
            lambda: withdraw("2"),
            lambda: withdraw("1"),
        ):
            act()
            seen.append(in_force())
    assert seen == [
        ("notice_not_found", "notice_not_found"),
        ("1", "notice_not_reviewed"),
        ("1", "1"),
        ("2", "1"),
        ("2", "2"),
        ("1", "1"),
        ("notice_not_in_force", "notice_not_in_force"),
    ]


@pytest.mark.parametrize("mode", ["test", "live"])
def test_another_notice_is_acknowledged_with_as_many_lines_as_it_has(
    served: tuple[Bench, Server], tmp_path: Path, mode: str
) -> None:
    """No id and no number of lines is hard-coded: a new law is a new file."""
    bench, server = served
    notice_id = f"another-law-{mode}"
    file = write_notice(tmp_path / "another.toml", notice_id)
    digest = bench.run("notices", "publish", str(file)).stdout.strip()
    path = f"{NOTICES}/{notice_id}"
    with server.client(bench.key(bench.account(notice_id), mode)) as client:
        body: dict[str, object] = {"initials_per_line": ["ÄB", "ÄB", "ÄB"], "session_id": "s 1"}
        if mode == "live":
            for refused in (client.get(path), client.post(f"{path}/acknowledge", json=body)):
                assert refused.status_code == 409
                assert refused.json()["error"]["code"] == "notice_not_reviewed"
            words = ("--by", "A. Counsel", "--against", "https://example.com/law")
            bench.run("notices", "review", notice_id, "--version", "2026-03", *words)
        notice = client.get(path).json()
        assert notice["notice_id"] == notice_id
        assert len(notice["bullets"]) == 3
        assert notice_id in {n["notice_id"] for n in client.get(NOTICES).json()["data"]}

        for count in (2, 4):
            wrong = client.post(f"{path}/acknowledge", json={"initials_per_line": ["X"] * count})
            assert wrong.status_code == 422
            assert wrong.json()["error"]["code"] == "initials_count_mismatch"
        blank = client.post(f"{path}/acknowledge", json={"initials_per_line": ["A", " ", "C"]})
        assert blank.json()["error"]["code"] == "empty_initials"

        made = client.post(f"{path}/acknowledge", json=body).json()
        assert (made["notice_id"], made["notice_version"]) == (notice_id, "2026-03")
        found = client.get(f"/v1/acknowledgments/{made['ack_id']}").json()
        assert found["initials_per_line"] == body["initials_per_line"]
        assert found["notice_digest"] == digest
        assert found["livemode"] is (mode == "live")
        listed = client.get("/v1/acknowledgments", params={"notice_id": notice_id}).json()["data"]
        assert [a["ack_id"] for a in listed] == [made["ack_id"]]
