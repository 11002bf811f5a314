"""`--json` on every command: JSON on standard output, errors as JSON on standard error."""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from countersign.base.values import rfc3339
from countersign.core.buyers.rules import PROOFS
from countersign.identity.model import FactSource
from countersign.root import main
from countersign_simulators.registry import SIMULATORS
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence, make_sandbox_buyer
from tests.cli.notice_files import write_notice
from tests.docs.generated import every_command
from tests.verification.inside import staged

pytestmark = pytest.mark.long

_TEST = ("--account", "{account_id}", "--mode", "test")
_ORDER = ("--session", "s", "--return-url", "https://shop.example/", "--notice", "{notice_id}")

# The arguments and prerequisites of each command; `{…}` is filled in. A new command needs a line
# here.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "init": (),
    "accounts create": ("another",),
    "accounts list": (),
    "accounts rename": ("{account_id}", "renamed"),
    "accounts reviewers": ("{account_id}", "1"),
    "accounts set": ("{account_id}", "--request-days", "30"),
    "accounts disable": ("{account_id}", "--yes"),
    "accounts enable": ("{account_id}",),
    "accounts close": ("{account_id}", "--yes"),
    "accounts describe": ("{account_id}", "--legal-name", "Parts Example LLC"),
    "accounts show": ("{account_id}",),
    "accounts evidence-end": ("{account_id}", "--never"),
    "accounts capture-process": ("{account_id}", "--statement", "{file}"),
    "operator describe": ("--legal-name", "Evidence Example Inc."),
    "operator show": (),
    "certification": ("{ack_id}", "--for", "902-13"),
    "accounts clearance set": ("{account_id}", "--lifetime", "2h"),
    "accounts clearance show": ("{account_id}",),
    "accounts verification set": (
        *("{account_id}", "--provider", "stripe", "--credentials-file", "{credentials}"),
    ),
    "accounts verification show": ("{verifying}",),
    "accounts verification remove": ("{verifying}", "--yes"),
    "accounts verification add": (
        *("{account_id}", "--provider", "stripe", "--test-keys"),
        *("--credentials-file", "{credentials}", "--dangerous-base-url", "http://127.0.0.1:9"),
    ),
    "accounts verification drop": (
        *("{account_id}", "--provider", "stripe", "--test-keys", "--yes"),
    ),
    "buyers show": ("{cbid}",),
    "buyers revoke": ("{cbid}", "--reason", "case 7", "--yes"),
    "buyers reinstate": ("{revoked}", "--reason", "case 7"),
    "buyers accept-zip": (
        *("{moved}", "10001", "--document", "a utility bill", "--reason", "case 7", "--yes"),
    ),
    "buyers queue": ("--account", "{reviewing}"),
    "buyers decide": ("{waiting}", "dismiss", "--reason", "case 7", "--yes"),
    "buyers evidence": ("{cbid}", "--reason", "case 7"),
    "audit": (),
    "buyers audit": (),
    "clearances keys": (),
    "clearances rotate-key": ("--mode", "test", "--yes"),
    "clearances withdraw-key": ("{replaced_key}", "--yes"),
    "staff invite": ("Ada", "--role", "owner"),
    "staff list": (),
    "staff link": ("{colleague}",),
    "staff remove": ("{colleague}", "--yes"),
    "members invite": ("Sam", "--account", "{account_id}", "--role", "developer"),
    "members list": ("--account", "{account_id}"),
    "members link": ("{of_account}", "--account", "{account_id}"),
    "members remove": ("{of_account}", "--account", "{account_id}", "--yes"),
    "keys create": ("--account", "vendor", "--mode", "test"),
    "keys list": (),
    "keys rotate": ("{key_id}",),
    "keys revoke": ("{key_id}", "--yes"),
    "acknowledgments list": ("--session", "cs_unknown"),
    "acknowledgments show": ("{ack_id}",),
    "acknowledgments certificate": ("{ack_id}", "--output", "{dossier}.pdf"),
    "acknowledgments export": ("--account", "vendor", "--mode", "test"),
    "dossier": ("{ack_id}", "--output", "{dossier}"),
    "verify": ("{proof}", "--policy", "{policy}"),
    "log status": (),
    "log check": (),
    "log policy": (),
    "log rotate-key": ("--yes",),
    "log keys": (),
    "log approvers": (),
    "log set-approvers": ("--threshold", "0", "--yes"),
    "log approve": ("{approval}",),
    "log approver-key": ("{new}", "--name", "bo"),
    "log sign-approval": ("--key", "{approver_key}", "{proposal}", "--yes"),
    "log recover": (),
    "vault status": (),
    "database grants": ("--role", "countersign_app"),
    "vault rewrap": (),
    "vault rotate": ("--yes",),
    "erase": ("{ack_id}", "--yes"),
    "subject export": ("{cbid}", "--output", "{dossier}.export"),
    "holds place": ("{account_id}", "--reason", "case 7"),
    "holds release": ("{hold_id}",),
    "holds list": (),
    "retention run": ("--yes",),
    "retention end": ("--yes",),
    "backup": ("{new}",),
    "restore": ("{backup}", "--yes"),
    "test clock show": ("{account_id}",),
    "test clock advance": ("{account_id}", "--by", "1d"),
    "test clock reset": ("{account_id}",),
    "test buyer set": ("{account_id}", "{cbid}", "revoked"),
    "test trigger": ("{account_id}", "buyer.revoked"),
    "test fault show": ("{account_id}",),
    "test fault set": ("{account_id}", "timeout"),
    "test fault clear": ("{account_id}",),
    "notices list": (),
    "notices show": ("{notice_id}",),
    "notices check": ("{file}",),
    "notices diff": ("{notice_id}", "{version}", "{version}"),
    "notices publish": ("{file}",),
    "notices reinstate": ("{enjoined}", "--version", "2026-03", "--by", "me", "--against", "{url}"),
    "notices requirements": ("--product-class", "accessory", "--state", "CA"),
    "notices review": ("{complete}", "--version", "2026-03", "--by", "me", "--against", "{url}"),
    "notices withdraw": ("{notice_id}", "--version", "{version}", "--yes"),
    "simulate-provider": ("stripe", "--credentials"),
    "webhooks list": ("--account", "{owner}"),
    "webhooks show": ("{endpoint_id}",),
    "webhooks add": ("--account", "{account_id}", "--mode", "test", "--url", "{url}"),
    "webhooks change": ("{endpoint_id}", "--description", "the shop"),
    "webhooks disable": ("{endpoint_id}",),
    "webhooks enable": ("{endpoint_id}",),
    "webhooks delete": ("{endpoint_id}", "--yes"),
    "webhooks rotate-secret": ("{endpoint_id}",),
    "webhooks deliveries": ("{endpoint_id}",),
    "webhooks resend": ("{endpoint_id}", "{event_id}"),
    "webhooks recover": ("{endpoint_id}", "--since", "{now}"),
    "webhooks send-example": ("{endpoint_id}",),
    "accounts brand": ("{account_id}", "--color", "#1b4965"),
    "accounts preview": ("{account_id}", "--out", "{pages}"),
    "accounts origins add": ("{account_id}", "https://shop.example"),
    "accounts origins list": ("{of_origin}",),
    "accounts origins remove": ("{account_id}", "{origin}", "--yes"),
    "checkout-sessions create": (*_TEST, *_ORDER),
    "checkout-sessions list": (*_TEST, "--session", "{session}"),
    "checkout-sessions show": (*_TEST, "{checkout_session_id}"),
    "checkout-sessions cancel": (*_TEST, "{checkout_session_id}", "--yes"),
}
# With status 1 or 2 if nothing could be judged, as here; the result is on standard output.
_NO_LOG = ("http://127.0.0.1:9/v1/log/test/1", "--policy", "{policy}")
JUDGES: dict[str, tuple[str, ...]] = {
    "conformance": ("--account", "{account_id}", "--for", "1s"),
    "log monitor": (*_NO_LOG, "--state", "{new}", "--once"),
    "log mirror": (*_NO_LOG, "{new}"),
    "log check-alarm": ("{file}", "--policy", "{policy}"),
    "log check-audit": ("{exported}", "--policy", "{policy}"),
    "doctor": ("--seconds", "60"),
    "status": ("--seconds", "60"),
}
# One needs a file that only it reads (tests/dossiers/test_sign_pdf.py), one a database server
# (tests/cli/test_migrate_database.py).
ELSEWHERE = {"sign-pdf", "migrate-database"}
# These answer by serving; They have no `--json`, for a reason.
SERVERS: dict[str, tuple[str, ...]] = {
    "serve": (),
    "dev": (),
    "retention keep": (),
    "webhooks listen": ("--forward-to", "http://127.0.0.1:1/", "--key", "csign_sk_test_none"),
}
# Nothing was sent yet, and the sandbox has no evidence: there is nothing to show.
EMPTY = {
    "staff list",
    "members list",
    "webhooks deliveries",
    "acknowledgments list",
}
# These need no configuration; their arguments are right or not.
BARE = {"verify", "simulate-provider", "database grants"}
BARE |= {"log approver-key", "log sign-approval"}
BARE |= {"log monitor", "log mirror", "log check-alarm", "log check-audit"}
# They report the error.
BARE |= {"doctor", "status"}


@pytest.fixture(scope="module")
def ready_once(
    initialised_once: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """Make a deployment with one of everything, to be copied; gives its folder too."""
    folder = tmp_path_factory.mktemp("ready")
    bench = Bench(data_dir=folder / "data")
    shutil.copytree(initialised_once, bench.data_dir)
    account_id = bench.account("vendor")
    ack_id, proof, policy = make_evidence(bench, account_id, folder)
    hold = bench.read("holds", "place", account_id, "--reason", "case 1")
    bench.run("holds", "release", hold["hold_id"])
    bench.run("backup", str(folder / "backup"))
    key = bench.read("keys", "create", "--account", "vendor", "--mode", "test")
    (notice,) = bench.read("notices", "list")
    return folder, {
        "key_id": key["key_id"],
        "notice_id": notice["notice_id"],
        "version": notice["version"],
        "file": str(write_notice(folder / "notice.toml")),
        "url": "https://example.com/law",
        "account_id": account_id,
        "ack_id": ack_id,
        "cbid": make_sandbox_buyer(bench, account_id),
        "proof": str(proof),
        "policy": str(policy),
        "dossier": str(folder / "dossier.zip"),
        "pages": str(folder / "pages"),
        "hold_id": hold["hold_id"],
        "new": str(folder / "new"),
        "backup": str(folder / "backup"),
    }


@pytest.fixture
def ready(ready_once: tuple[Path, dict[str, str]], tmp_path: Path) -> tuple[Bench, dict[str, str]]:
    """A copy of it, and the objects in the copy."""
    folder, there_is = ready_once
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    here = {k: v.replace(str(folder), str(tmp_path)) for k, v in there_is.items()}
    return Bench(data_dir=tmp_path / "data"), here


def verifying(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make an account that has an identity provider."""
    words = [word.format_map(there_is) for word in ARGUMENTS["accounts verification set"]]
    bench.run("accounts", "verification", "set", *words)
    return there_is["account_id"]


def credentials(_: Bench, there_is: Mapping[str, str]) -> str:
    """Write a credentials file."""
    file = Path(there_is["file"]).with_name("stripe.json")
    file.write_text(json.dumps(SIMULATORS["stripe"](time.time).credentials), encoding="utf-8")
    return str(file)


def revoked(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Revoke the buyer."""
    bench.run("buyers", "revoke", there_is["cbid"], "--reason", "case 7", "--yes")
    return there_is["cbid"]


def moved(bench: Bench, _: Mapping[str, str]) -> str:
    """Have a live buyer refused for the ZIP code alone."""
    with staged(bench) as stage:
        vendor = stage.insider(zip_sources=(*PROOFS, FactSource.OPERATOR))
        return vendor.verify(vendor.part("verified"), "10001").cbid


def waiting(bench: Bench, _: Mapping[str, str]) -> str:
    """Have a live buyer refused."""
    return _refused(bench)[0]


def reviewing(bench: Bench, _: Mapping[str, str]) -> str:
    """Have a live buyer refused; gives the account."""
    return _refused(bench)[1]


def _refused(bench: Bench) -> tuple[str, str]:
    with staged(bench) as stage:
        vendor = stage.insider()
        return vendor.verify(vendor.part("underage")).cbid, vendor.account_id


def replaced_key(bench: Bench, _: Mapping[str, str]) -> str:
    """Make another key the signing one; returns the previous one."""
    before: str = next(key for key in bench.read("clearances", "keys") if key["mode"] == "test")[
        "kid"
    ]
    bench.run("clearances", "rotate-key", "--mode", "test", "--at-once", "--yes")
    return before


def approver_key(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make the key of a person who approves, register it, and propose another key."""
    folder = Path(there_is["file"]).parent
    key, proposal = folder / "ann.key", folder / "proposal"
    vkey = bench.read("log", "approver-key", str(key), "--name", "ann")["vkey"]
    bench.run("log", "set-approvers", "--threshold", "1", vkey, "--yes")
    proposal.write_text(bench.read("log", "rotate-key", "--yes")["proposal"])
    return str(key)


def exported(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Export the audit."""
    bench.run("audit", "export", "--with-chain", there_is["new"])
    return there_is["new"]


def proposal(_: Bench, there_is: Mapping[str, str]) -> str:
    """Where `approver_key` writes the proposal."""
    return str(Path(there_is["file"]).with_name("proposal"))


def approval(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Sign a proposal."""
    key, file = approver_key(bench, there_is), Path(proposal(bench, there_is))
    signed = bench.read("log", "sign-approval", str(file), "--key", key, "--yes")["signed"]
    file.write_text(signed)
    return str(file)


def endpoint_id(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make a webhook endpoint."""
    of = ("--account", there_is["account_id"], "--mode", "test")
    made: str = bench.read("webhooks", "add", *of, "--url", "https://127.0.0.1:1/")["endpoint_id"]
    return made


def colleague(bench: Bench, _there_is: Mapping[str, str]) -> str:
    """Invite a person to the staff, after an owner."""
    bench.run("staff", "invite", "An owner", "--role", "owner")
    bench.run("staff", "invite", "A colleague", "--role", "support")
    return "A colleague"


def of_account(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Invite a person to the account."""
    of = ("--account", there_is["account_id"])
    bench.run("members", "invite", "A member", *of, "--role", "support")
    return "A member"


def owner(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make a webhook endpoint; gives whose it is."""
    endpoint_id(bench, there_is)
    return there_is["account_id"]


def origin(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Register an origin."""
    added = bench.read("accounts", "origins", "add", there_is["account_id"], "https://a.example")
    return str(added["origin"])


def of_origin(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Register an origin; gives the account."""
    origin(bench, there_is)
    return there_is["account_id"]


def session(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make a checkout session; gives the vendor's name for it."""
    checkout_session_id(bench, there_is)
    return "s"


def checkout_session_id(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Make a checkout session."""
    words = [word.format_map(there_is) for word in ARGUMENTS["checkout-sessions create"]]
    return str(bench.read("checkout-sessions", "create", *words)["checkout_session_id"])


def event_id(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Have something happen."""
    made: str = bench.read("test", "trigger", there_is["account_id"], "buyer.revoked")["id"]
    return made


def complete(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Publish a notice that lacks nothing."""
    bench.run("notices", "publish", there_is["file"])
    return "storage-law"


def enjoined(bench: Bench, there_is: Mapping[str, str]) -> str:
    """Publish a notice, and have a court stop it."""
    notice_id = complete(bench, there_is)
    bench.run("notices", "withdraw", notice_id, "--version", "2026-03", "--enjoined", "--yes")
    return notice_id


def now(_bench: Bench, _there_is: Mapping[str, str]) -> str:
    """Give the time."""
    return rfc3339(datetime.now(UTC))


# Objects that only a few commands need are created for these alone.
MADE: dict[str, Callable[[Bench, Mapping[str, str]], str]] = {
    made.__name__: made
    for made in (
        *(verifying, credentials, revoked, moved, waiting, reviewing, replaced_key, endpoint_id),
        *(owner, event_id, colleague, of_account),
        *(complete, enjoined, now, origin, of_origin, checkout_session_id, session),
        *(approver_key, proposal, approval, exported),
    )
}


class ThereIs(dict[str, str]):
    """Existing objects, and objects made on demand."""

    def __init__(self, bench: Bench, there_is: Mapping[str, str]) -> None:
        super().__init__(there_is)
        self._bench = bench

    def __missing__(self, name: str) -> str:
        return self.setdefault(name, MADE[name](self._bench, self))


def test_every_command_takes_json() -> None:
    commands = {
        " ".join(words): command
        for words, command in every_command(main, ())
        if not isinstance(command, click.Group)
    }
    assert set(commands) == set(ARGUMENTS) | set(JUDGES) | set(SERVERS) | ELSEWHERE
    for command in commands.values():
        assert any("--json" in parameter.opts for parameter in command.params)


@pytest.mark.parametrize("command", ARGUMENTS | JUDGES)
def test_with_json_the_answer_is_json_on_standard_output(
    ready: tuple[Bench, dict[str, str]], command: str
) -> None:
    bench, there_is = ready
    filled = ThereIs(bench, there_is)
    arguments = [word.format_map(filled) for word in (ARGUMENTS | JUDGES)[command]]
    if command == "restore":  # into a place of its own, with the keys of the old one
        bench = bench.but(
            DATA_DIR=str(bench.data_dir.with_name("restored")),
            SECRET_KEY_FILE=str(bench.data_dir / "secret.key"),
        )
    done = bench.run(*command.split(), *arguments, "--json", check=command not in JUDGES)
    assert done.stdout.endswith("\n")
    assert len(done.stdout.splitlines()) == 1
    assert (json.loads(done.stdout) == []) if command in EMPTY else json.loads(done.stdout)


@pytest.mark.parametrize("command", [c for c in ARGUMENTS | JUDGES | SERVERS if c not in BARE])
def test_with_json_an_error_is_json_on_standard_error(
    initialised: Bench, tmp_path: Path, command: str
) -> None:
    file = write_notice(tmp_path / "notice.toml", lines=())
    there_is = defaultdict(
        lambda: "acct_1", {"dossier": str(tmp_path / "dossier.zip"), "file": file}
    )
    there_is |= dict.fromkeys(("backup", "new", "proof", "policy"), str(tmp_path))
    there_is |= {"url": "https://x.example", "credentials": str(file)}
    there_is |= {"now": "2026-11-20T00:00:00Z"}
    words = [word.format_map(there_is) for word in (ARGUMENTS | JUDGES | SERVERS)[command]]
    said = initialised.but(PORT="no port").refused(*command.split(), *words, "--json")
    (line,) = said.splitlines()
    error = json.loads(line)
    assert set(error) == {"error"}
    assert set(error["error"]) == {"code", "message"}
    # `check` looks at the file alone, all others at the configuration first.
    expected = "invalid_notice_file" if command == "notices check" else "invalid_configuration"
    assert error["error"]["code"] == expected
