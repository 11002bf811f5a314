"""`countersign accounts verification` and `countersign buyers`: what operators set, and see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign.base.errors import AccountClosed
from countersign.base.values import Mode
from countersign.core.buyers import settings as verification_settings
from countersign.core.privacy.ending import close
from tests.cli.conftest import Bench
from tests.http.backstage import another_deployment
from tests.support.acts import done
from tests.support.providers import Playing, playing
from tests.verification.inside import Stage

CREDENTIALS_WRONG = {
    "nothing": b"",
    "no JSON": b"api_key=rk_live_SECRET1",
    "cut short": b'{"api_key":"rk_live_SECRET1"',
    "an array": b'["rk_live_SECRET1"]',
    "a string": b'"rk_live_SECRET1"',
    "null": b"null",
    "no UTF-8": b'{"api_key":"rk_live_SECRET1\xff"}',
    "nothing in it": b"{}",
    "no string": b'{"api_key":1,"webhook_secrets":["whsec_SECRET2"]}',
    "empty": b'{"api_key":"","webhook_secrets":["whsec_SECRET2"]}',
    "a line break in the key": b'{"api_key":"rk_live_SECRET1\\n","webhook_secrets":["whsec_x"]}',
    "not in ASCII": '{"api_key":"rk_live_SECRET1é","webhook_secrets":["whsec_x"]}'.encode(),
    "a member of another provider": b'{"api_key":"rk_live_SECRET1","client_id":"SECRET2"}',
    "a member misspelt": b'{"api_key":"rk_live_SECRET1","webhook_secret":"whsec_SECRET2"}',
    "a secret that is no list": b'{"api_key":"rk_live_SECRET1","webhook_secrets":"whsec_SECRET2"}',
    "too much": b'{"api_key":"rk_live_SECRET1"' + b" " * 70_000 + b"}",
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a deployment with one account."""
    made = another_deployment(tmp_path / "data")
    own = Bench(data_dir=made.data_dir, settings=dict(made.settings))
    own.account("Alpine Outfitters")
    return own


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Give a deployment with one account, for commands that must not change anything."""
    made = another_deployment(tmp_path_factory.mktemp("untouched") / "data")
    own = Bench(data_dir=made.data_dir, settings=dict(made.settings))
    own.account("Alpine Outfitters")
    return own


def acts(bench: Bench) -> list[str]:
    """The acts of operators, except those of `init` and the making of the account."""
    done = [entry["action"] for entry in bench.read("audit")]
    return [action for action in done if action not in {"clearance_key_added", "account_created"}]


@pytest.fixture
def provider() -> Iterator[Playing]:
    """Serve a simulated Stripe."""
    with playing("stripe") as running:
        yield running


@pytest.fixture
def credentials(provider: Playing, tmp_path: Path) -> Path:
    """Give a credentials file that it accepts."""
    file = tmp_path / "stripe.json"
    file.write_text(json.dumps(provider.simulator.credentials))
    file.chmod(0o600)
    return file


SET = ("accounts", "verification", "set", "Alpine Outfitters", "--provider", "stripe")
SHOW = ("accounts", "verification", "show", "Alpine Outfitters")


def test_settings_are_set_shown_changed_and_removed_and_each_is_written_down(
    bench: Bench, provider: Playing, credentials: Path
) -> None:
    """Omitted settings do not change; the credentials are shown nowhere."""
    assert bench.read(*SHOW) is None
    where = ("--credentials-file", str(credentials), "--dangerous-base-url", provider.url)
    first = bench.read(*SET, *where, "--minimum-age", "21", "--zip-source", "document")
    assert first == bench.read(*SHOW)
    assert (first["revision"], first["minimum_age"], first["zip_sources"]) == (1, 21, ["document"])
    assert first["webhook_url"].endswith(f"/v1/provider_webhooks/stripe/{first['account_id']}")
    second = bench.run(*SET, *where, "--require-subject-reference", "--check", "--json")
    assert provider.url in second.stderr, "a warning names who is asked instead"
    shown = json.loads(second.stdout)
    assert (shown["revision"], shown["minimum_age"]) == (2, 21)
    assert shown["subject_reference_required"] is True
    assert bench.read(*SHOW) == shown
    gone = bench.read("accounts", "verification", "remove", "Alpine Outfitters", "--yes")
    assert gone["removed"] is True
    assert bench.read(*SHOW) is None
    again = bench.read("accounts", "verification", "remove", "Alpine Outfitters", "--yes")
    assert again["removed"] is False
    audit = bench.read("buyers", "audit", first["account_id"])
    assert sorted(entry["action"] for entry in audit) == [
        "account_created",
        "verification_settings_changed",
        "verification_settings_changed",
        "verification_settings_removed",
    ]
    changes = [e["details"] for e in audit if e["action"] == "verification_settings_changed"]
    assert sorted(change["rules"]["minimum_age"] for change in changes) == [21, 21]
    assert {change["base_url"] for change in changes} == {provider.url}
    said = json.dumps([first, shown, audit]) + second.stderr
    for secret in ("rk_live", "whsec"):
        assert secret not in said


def test_further_providers_are_added_shown_and_dropped_and_each_is_written_down(
    bench: Bench, provider: Playing, credentials: Path
) -> None:
    """One for live buyers needs a first one; one for test keys does not."""
    add = ("accounts", "verification", "add", "Alpine Outfitters")
    drop = ("accounts", "verification", "drop", "Alpine Outfitters", "--provider", "stripe")
    stripe = ("--provider", "stripe", "--credentials-file", str(credentials))
    where = (*stripe, "--dangerous-base-url", provider.url)
    assert "accounts verification set" in bench.refused(*add, *where)
    assert "live credentials" in bench.refused(*add, *stripe, "--test-keys")
    added = bench.read(*add, *where, "--test-keys", "--check")
    assert (added["provider"], added["mode"]) == ("stripe", "test")
    assert bench.read(*SHOW) == {"further_providers": [added]}
    bench.read(*SET, *where[2:])
    assert "first provider already" in bench.refused(*add, *where)
    shown = bench.read(*SHOW)
    assert (shown["provider"], shown["further_providers"]) == ("stripe", [added])
    assert bench.read(*drop, "--test-keys", "--yes")["removed"] is True
    assert bench.read(*drop, "--test-keys", "--yes")["removed"] is False
    assert bench.read(*SHOW)["further_providers"] == []
    assert sorted(acts(bench)) == [
        "verification_provider_added",
        "verification_provider_dropped",
        "verification_settings_changed",
    ]
    assert "rk_live" not in json.dumps([added, shown, bench.read("audit")])


STRICT = (
    *("--minimum-age", "21", "--zone", "Pacific/Honolulu", "--zip-source", "document"),
    *("--document-expiry", "unexpired", "--validity-days", "90", "--require-subject-reference"),
)


def test_a_change_of_credentials_keeps_every_rule(bench: Bench, credentials: Path) -> None:
    """The command that an error names as its remedy never makes a rule weaker by silence."""
    file = ("--credentials-file", str(credentials))
    before = bench.read(*SET, *file, *STRICT)
    after = bench.run(*SET, *file, "--json")
    changed = {"revision", "changed_at"}
    answer = {k: v for k, v in json.loads(after.stdout).items() if k not in changed}
    assert answer == {k: v for k, v in before.items() if k not in changed}
    assert "→" not in after.stderr


def test_a_rule_becomes_weaker_only_after_a_confirmation(bench: Bench, credentials: Path) -> None:
    """Each change is printed; without a terminal to ask at, nothing is changed."""
    file = ("--credentials-file", str(credentials))
    bench.read(*SET, *file, *STRICT)
    weaker = ("--minimum-age", "18", "--no-require-subject-reference", "--validity-days", "30")
    before = bench.read(*SHOW)
    said = bench.refused(*SET, *file, *weaker)
    assert "minimum_age, subject_reference_required" in said
    assert "--yes" in said
    assert bench.read(*SHOW) == before
    done = bench.run(*SET, *file, *weaker, "--yes", "--json")
    assert "minimum_age: 21 → 18 (weaker)" in done.stderr
    assert "validity_days: 90 → 30\n" in done.stderr
    assert json.loads(done.stdout)["minimum_age"] == 18
    stricter = bench.run(*SET, *file, "--minimum-age", "25", "--json")
    assert json.loads(stricter.stdout)["minimum_age"] == 25


def test_rules_are_shown_as_words(bench: Bench, credentials: Path) -> None:
    """For people, without the punctuation of Python."""
    bench.read(*SET, "--credentials-file", str(credentials), "--zip-source", "document")
    assert "zip_sources: document\n" in bench.run(*SHOW).stdout


@pytest.mark.parametrize(
    ("provider", "credentials", "says"),
    [
        ("stripe", {"api_key": "rk_test_00000000000000000000"}, "test mode"),
        ("plaid", {"client_id": "c" * 24, "secret": "s" * 30, "environment": "sandbox"}, "test"),
        (
            "plaid",
            {"client_id": "c" * 24, "secret": "s" * 30, "environment": "production"},
            "`live` or `sandbox`",
        ),
    ],
)
def test_credentials_that_never_verify_a_live_buyer_are_refused(
    untouched: Bench, tmp_path: Path, provider: str, credentials: dict[str, str], says: str
) -> None:
    """Else every buyer would be refused, and nothing would say why."""
    file = tmp_path / "test.json"
    file.write_text(json.dumps(credentials))
    asked = ("accounts", "verification", "set", "Alpine Outfitters", "--provider", provider)
    assert says in untouched.refused(*asked, "--credentials-file", str(file))
    assert untouched.read(*SHOW) is None


def test_set_names_the_disadvantages_of_missing_webhooks_and_subject_reference(
    bench: Bench, tmp_path: Path, credentials: Path
) -> None:
    """Both are optional, and neither is a mistake: the operator should know the price."""
    file = tmp_path / "bare.json"
    file.write_text('{"api_key": "rk_live_00000000000000000000"}')
    bare = bench.run(*SET, "--credentials-file", str(file)).stderr
    assert "no webhook_secrets" in bare
    assert "note: subject_reference is optional" in bare
    full = bench.run(
        *SET, "--credentials-file", str(credentials), "--require-subject-reference"
    ).stderr
    assert "no webhook_secrets" not in full
    assert "subject_reference is optional" not in full


@pytest.mark.parametrize("name", CREDENTIALS_WRONG)
def test_wrong_credentials_are_refused_without_being_shown(
    untouched: Bench, tmp_path: Path, name: str
) -> None:
    """Nothing is changed, and the message contains no secret."""
    file = tmp_path / "wrong.json"
    file.write_bytes(CREDENTIALS_WRONG[name])
    said = untouched.refused(*SET, "--credentials-file", str(file))
    assert "SECRET" not in said
    assert untouched.read(*SHOW) is None
    assert acts(untouched) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--minimum-age", "17"), "from 18"),
        (("--minimum-age", "100"), "99"),
        (("--validity-days", "0"), "1 to 365"),
        (("--validity-days", "366"), "1 to 365"),
        (("--zone", "California"), "time zone"),
        (("--zone", "../../etc/passwd"), "time zone"),
        (("--zone", ""), "time zone"),
        (("--dangerous-base-url", "127.0.0.1:9100"), "base URL"),
        (("--dangerous-base-url", "ftp://127.0.0.1"), "base URL"),
        (("--dangerous-base-url", "http://["), "base URL"),
        (("--dangerous-base-url", "http://user:pw@127.0.0.1"), "base URL"),
        (("--check", "--dangerous-base-url", "http://["), "base URL"),
        (("--check", "--dangerous-base-url", "http://127.0.0.1:1"), "no usable response"),
    ],
)
def test_impossible_settings_change_nothing(
    untouched: Bench, credentials: Path, options: tuple[str, ...], says: str
) -> None:
    """The floor of the deployment included."""
    said = untouched.refused(*SET, "--credentials-file", str(credentials), *options)
    assert says in said
    assert untouched.read(*SHOW) is None


def test_the_floor_of_the_deployment_is_the_default_and_the_least(
    bench: Bench, credentials: Path
) -> None:
    """COUNTERSIGN_MINIMUM_AGE and COUNTERSIGN_VERIFICATION_DAYS."""
    tight = bench.but(MINIMUM_AGE="21", VERIFICATION_DAYS="90")
    file = ("--credentials-file", str(credentials))
    assert "from 21" in tight.refused(*SET, *file, "--minimum-age", "20")
    assert "1 to 90" in tight.refused(*SET, *file, "--validity-days", "91")
    made = tight.read(*SET, *file)
    assert (made["minimum_age"], made["validity_days"]) == (21, 90)


def test_check_asks_the_provider_and_changes_nothing_if_it_refuses(
    untouched: Bench, provider: Playing, tmp_path: Path
) -> None:
    """With a session that does not exist: no personal data is read."""
    wrong = dict(provider.simulator.credentials) | {"api_key": "rk_live_not_this_one"}
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    where = ("--credentials-file", str(file), "--dangerous-base-url", provider.url)
    said = untouched.refused(*SET, *where, "--check")
    assert "rejects these credentials" in said
    assert "rk_live_not_this_one" not in said
    assert untouched.read(*SHOW) is None
    known = {session.session_id for session in provider.simulator.sessions}
    asked = "".join(request.path for request in provider.served.requests)
    assert asked
    assert not [session_id for session_id in known if session_id in asked]


def test_credentials_come_from_a_file_or_from_the_environment_alone(
    bench: Bench, provider: Playing, credentials: Path, tmp_path: Path
) -> None:
    """An argument would stand in the list of processes."""
    where = ("--dangerous-base-url", provider.url)
    assert "--credentials-file" in bench.refused(*SET, *where)
    assert "cannot be read" in bench.refused(*SET, "--credentials-file", str(tmp_path / "none"))
    assert "cannot be read" in bench.refused(*SET, "--credentials-file", str(tmp_path))
    given = bench.but(PROVIDER_CREDENTIALS=credentials.read_text())
    assert given.read(*SET, *where, "--check")["provider"] == "stripe"
    credentials.chmod(0o644)
    done = bench.run(*SET, *where, "--credentials-file", str(credentials))
    assert "other users can read" in done.stderr


def test_an_unknown_account_or_buyer_is_refused(untouched: Bench, credentials: Path) -> None:
    """No entry is written for an act that was not done."""
    no_one = ("accounts", "verification", "set", "Unknown Workshop", "--provider", "stripe")
    untouched.refused(*no_one, "--credentials-file", str(credentials))
    untouched.refused("accounts", "verification", "show", "Unknown Workshop")
    cbid = "cbid_" + "0" * 26
    for words in (("show",), ("revoke", "--reason", "x", "--yes"), ("reinstate", "--reason", "x"),
                  ("evidence", "--reason", "x")):  # fmt: skip
        said = untouched.refused("buyers", words[0], cbid, *words[1:])
        assert cbid in said or "The buyer was not found." in said
    assert acts(untouched) == []


@pytest.mark.parametrize("mode", [None, *Mode])
def test_an_account_closed_meanwhile_gets_no_credentials(stage: Stage, mode: Mode | None) -> None:
    """Closing destroyed them for good: the account is read in the writing transaction."""
    vendor = stage.insider()
    stage.do(done(close, stage.opened.privacy, vendor.account_id))
    held = json.dumps(vendor.playing.simulator.credentials).encode()
    room, name, url = stage.opened.buyers, vendor.playing.name, vendor.playing.url

    def act() -> None:
        if mode is None:
            vendor.configure()
            return
        add = verification_settings.add(room, vendor.account_id, mode, name, held, url)
        stage.do(add)

    with pytest.raises(AccountClosed):
        act()
    for table in ("verification_settings", "further_providers"):
        assert stage.rows(f"SELECT * FROM {table}") == []  # noqa: S608 - our own names
