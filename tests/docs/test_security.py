"""docs/asvs.md has every requirement once; names in it and in docs/security.md exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from countersign.base.db.tables import metadata
from countersign.base.deadline import DEADLINE_SECONDS
from countersign.core.access.authenticate import KEY_CACHE_SECONDS
from countersign.core.acknowledgments import room
from countersign.core.acknowledgments.evidence_routes import WAIT_SECONDS_MAX
from countersign.core.checkout.model import KEPT, LIFETIME_MAX
from countersign.core.webhooks.address_guard import LOOKUPS_MAX
from countersign.core.webhooks.deliver import CONCURRENT_MAX
from countersign.core.webhooks.model import ENDPOINTS_MAX
from countersign.hosted.remembered import COOKIE_KEPT, KEPT_MAX, PASSKEY_KEPT
from countersign.hosted.self_service import FRESH, SIGNED_IN
from countersign.identity.transport import ProviderHttp
from countersign.server.app import route_table
from tests.docs.markdown import ROOT, Page, read

pytestmark = pytest.mark.one_engine

PAGE: Final = ROOT / "docs" / "security.md"
ASVS: Final = ROOT / "docs" / "asvs.md"
STATES: Final = ("held", "not applicable", "**not held**")
SOURCES: Final = (ROOT / "src", ROOT / "packages" / "evidence" / "src")
_TEST: Final = re.compile(r"`((?:tests|clients|integrations)/[\w./-]+\.py)::(\w+)`")
_FILE: Final = re.compile(r"`([\w.-]+(?:/[\w.-]+)+|requirements\.txt|\.dockerignore)`")

CRYPTOGRAPHY: Final = {
    *("cryptography", "hmac", "joserfc", "pkcs11", "pyhanko", "rfc3161_client", "webauthn"),
}
PRIMITIVES: Final = {
    *("AESGCM", "HKDF", "SHA256", "Ed25519PrivateKey", "Ed25519PublicKey"),
    *("MLDSA44PrivateKey", "MLDSA44PublicKey", "EllipticCurvePublicKey"),
}
"""The used parts of the library's hazardous materials."""
HASHES: Final = {"sha256", "sha384", "sha512", "shake_128", "shake_256", "blake2b"}
NETWORK: Final = {
    *("aiohttp", "ftplib", "granian", "h11", "http", "httpx", "httpx2", "psycopg", "requests"),
    *("aiosmtplib", "obstore", "opentelemetry", "smtplib", "socket", "urllib3"),
}
CONNECTING: Final = {"create_connection", "open_connection", "start_server", "urlopen"}
DANGEROUS: Final = {
    *("cffi", "ctypes", "dill", "ldap", "ldap3", "lxml", "marshal", "memcache", "pickle"),
    *("pymemcache", "shelve", "smtplib", "telnetlib", "xml", "yaml"),
}
NEEDED: Final = {
    # The command for the key; `pgbackrest info`, for the doctor.
    "subprocess": {
        "src/countersign/core/vault/key_encryption.py",
        "src/countersign/operate/doctor/promises.py",
    },
    "random": {"src/countersign/identity/transport.py"},  # when to ask a provider again
}
"""Dangerous modules, and the only files that import them."""
CALLS: Final = {"compile", "eval", "exec", "__import__", "popen", "system"}

SCRIPTS: Final = (
    "packages/evidence/src/countersign_evidence/offline/verify.html",
    "web/src/*.ts",
    "src/countersign/**/templates/*.js",
    "clients/typescript/src/*.ts",
)
_SET: Final = re.compile(r"[\w)\]]\[([^\[\]]+)\]\s*(?:=(?![=>])|\+\+|--|(?:[-+|&^*]|\?\?|\|\|)=)")
"""An assigned member, by the text in the brackets."""


@pytest.fixture(scope="module")
def page() -> Page:
    """Take the page apart."""
    return read(PAGE)


def requirements() -> list[list[str]]:
    """The rows of the requirements: number, requirement, state, and why."""
    text = ASVS.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| [0-9]", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@cache
def modules() -> dict[str, ast.Module]:
    """The modules of service and evidence, by their path in the repository."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
    }


def imported(module: ast.Module) -> Iterator[tuple[str, str]]:
    """All imports of a module: the module, and the imported name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def used(module: ast.Module) -> set[str]:
    """The names of functions and attributes that a module uses."""
    found = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute)}
    return found | {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}


def listed(page: Page, section: str) -> set[str]:
    """The files in the last column of the table under a heading."""
    return {path for row in page.rows(f"## {section}") for path in _FILE.findall(row[-1])}


def test_every_requirement_is_there_once() -> None:
    """In the order of the standard; the page counts them."""
    lines = (Path(__file__).parent / "asvs-5.0.txt").read_text(encoding="utf-8").splitlines()
    levels = dict(line.split() for line in lines if not line.startswith("#"))
    rows = requirements()
    assert [row[0] for row in rows] == list(levels)
    states = Counter(row[2] for row in rows)
    assert set(states) == set(STATES)
    held, not_applicable, not_held = (states[state] for state in STATES)
    each = Counter(levels.values())
    text = " ".join(ASVS.read_text(encoding="utf-8").split())
    assert (
        f"Of {len(levels)} requirements ({each['1']} of level 1, {each['2']} of level 2), "
        f"**{held} are held, {not_applicable} are not applicable, {not_held} are not held**"
    ) in text


def test_each_mitigation_names_a_file_and_a_test() -> None:
    """An unmitigated one has the reason."""
    for number, requirement, state, why in requirements():
        assert len(requirement) > 3, number
        if state == "held":
            assert set(_FILE.findall(_TEST.sub("", why))), number
            assert _TEST.search(why), number
        else:
            assert re.match(r"[^`]{6,}", why), number


def test_every_threat_names_a_file_and_a_test(page: Page) -> None:
    """Each has its remaining risk."""
    rows = page.rows("## Threats")
    assert len(rows) > 20
    for threat, _, stops, tests, remains in rows:
        assert _FILE.search(stops), threat
        assert _TEST.search(tests), threat
        assert remains, threat


def test_every_named_file_and_test_exists() -> None:
    """Including those in tables that no other test reads."""
    text = PAGE.read_text(encoding="utf-8") + ASVS.read_text(encoding="utf-8")
    names: dict[str, set[str]] = {}
    for file, test in _TEST.findall(text):
        names.setdefault(file, set()).add(test)
    assert len(names) > 50
    for file, tests in names.items():
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        assert tests <= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}, file
    files = {file for file in _FILE.findall(_TEST.sub("", text)) if "." in file}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_cryptography_is_used_only_where_the_page_says(page: Page) -> None:
    """And only these algorithms: a weak one does not get in unnoticed."""
    using, primitives, hashes = set[str](), set[str](), set[str]()
    for path, module in modules().items():
        for name, what in imported(module):
            root = name.partition(".")[0]
            if root in CRYPTOGRAPHY and what != "compare_digest":
                using.add(path)
            if ".hazmat." in f"{name}.":
                primitives.add(what)
            if root == "hashlib":
                own = {what} if what else used(module) & (HASHES | {"md5", "sha1", "new"})
                hashes |= own
                using |= {path} if own - {"sha256"} else set()
    assert using == listed(page, "Keys and algorithms")
    assert primitives == PRIMITIVES
    assert hashes == HASHES


def test_connections_are_made_only_where_the_page_says(page: Page) -> None:
    """An operator who writes firewall rules has to know all of them."""
    found = {
        path
        for path, module in modules().items()
        if {name.partition(".")[0] for name, _ in imported(module)} & NETWORK
        or used(module) & CONNECTING
    }
    assert found == listed(page, "Connections")


def test_no_client_follows_redirects() -> None:
    """A redirect target is not requested: it could be internal."""
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.keyword) and node.arg == "follow_redirects":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
            # Without the argument, httpx2 follows none.
            assert not (isinstance(node, ast.Name) and node.id == "urlopen"), path


def test_no_dangerous_function_is_used() -> None:
    """No code, command, object or document out of input; no randomness that can be predicted."""
    for path, module in modules().items():
        roots = {name.partition(".")[0] for name, _ in imported(module)}
        assert not roots & DANGEROUS, path
        for name, files in NEEDED.items():
            assert name not in roots or path in files, path
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                called = node.func
                own = called.id if isinstance(called, ast.Name) else ""
                of_os = called.attr if isinstance(called, ast.Attribute) else ""
                of_os = of_os if of_os in {"popen", "system"} else ""
                assert not {own, of_os} & CALLS, f"{path}:{node.lineno}"
                assert "shell" not in {keyword.arg for keyword in node.keywords}, path


def test_no_script_sets_a_member_that_input_names() -> None:
    """Not `__proto__` nor another: members are set by a number, or by a name in the script."""
    found = set[tuple[str, str]]()
    for script in (script for pattern in SCRIPTS for script in ROOT.glob(pattern)):
        for by in _SET.findall(script.read_text(encoding="utf-8")):
            if not re.fullmatch(
                r'"[\w-]+"|[0-9]|(at|i|n|x|y|bit|rate|data\.length|[-+>%0-9 ])+', by
            ):
                found.add((script.name, by))
    assert found == {("remembered.js", "name")}  # of a list in that script


def test_each_log_is_where_the_page_says(page: Page) -> None:
    """One module decides where lines go; the content of tables is declared."""
    begins = {"basicConfig", "addHandler", "FileHandler", "PrintLogger", "WriteLoggerFactory"}
    found = {
        path
        for path, module in modules().items()
        if {name.partition(".")[0] for name, _ in imported(module)} & {"logging", "structlog"}
        and used(module) & begins
    }
    assert found == {"src/countersign/base/cli.py"}
    assert found < listed(page, "Logs")
    forms = " ".join(row[1] for row in page.rows("## Logs"))
    tables = re.findall(r"rows of `(\w+)`", forms)
    assert len(tables) == 3
    assert set(tables) <= set(metadata.tables)


def test_the_ways_in_are_all_listed(page: Page) -> None:
    """A route without a key is one of a way in, or named as public."""
    _, _, section = page.prose.partition("\n## Authentication\n")
    section, _, _ = section.partition("\n## ")
    named = {name.rstrip("/") for name in re.findall(r"`(/[\w./-]*)`", section)} - {"/v1"}
    for route in route_table():
        if route.scope is not None:
            assert route.path.startswith("/v1/"), route.address
        else:
            parts = route.path.rstrip("/").split("/")
            begins = {"/".join(parts[:n]) for n in range(min(2, len(parts)), len(parts) + 1)}
            assert begins & named, route.address


def test_the_times_on_the_page_match_the_code(page: Page) -> None:
    """And how many there may be."""
    ends = {row[0]: row[3] for row in page.rows("## Authentication")}
    days, minutes = timedelta(days=1), timedelta(minutes=1)
    assert f"{LIFETIME_MAX // (60 * minutes)} hours at most" in ends["Client token, `cst_…`"]
    assert ends["Link of the copy"] == f"{KEPT // days} days after the end"
    assert ends["Cookie of a remembered buyer"] == f"{COOKIE_KEPT // days} days"
    assert ends["Passkey"] == (
        f"a sign-in {SIGNED_IN // minutes} minutes after it, to erase {FRESH // minutes}; "
        f"the passkey {PASSKEY_KEPT // days} days after its last use"
    )
    assert f"within {KEY_CACHE_SECONDS + 2:g} seconds" in ends["API key, `Authorization: Bearer`"]
    assert KEPT_MAX == 10
    assert "ten remembered passkeys and cookies" in " ".join(page.prose.split())


def test_costly_requests_are_bounded_as_the_page_says(page: Page) -> None:
    """A bound that changes in the code changes here."""
    bounds = dict(page.rows("## Resource limits"))
    assert f"{room.DOCUMENTS_WAITING_MAX} waiting" in bounds["PDF of a certificate or dossier"]
    assert f"{room.WAITING_MAX} requests" in bounds["Waiting for a proof"]
    assert f"{ProviderHttp.total_seconds:g} seconds" in bounds["Requests to an identity provider"]
    assert bounds["Webhooks"].startswith(f"{CONCURRENT_MAX} at a time")
    assert f"{ENDPOINTS_MAX} endpoints" in bounds["Webhooks"]
    assert LOOKUPS_MAX == 8
    assert "eight for each account" in bounds["DNS lookups"]
    assert WAIT_SECONDS_MAX == DEADLINE_SECONDS == 10
    assert "ten seconds" in bounds["Waiting for a proof"]
    assert "ten seconds" in bounds["Database work"]


def test_every_table_is_classed() -> None:
    """Each table of the database is in the table of data places, with its protection."""
    rows = read(ROOT / "docs" / "personal-data.md").rows("## What lies where")
    classed = Counter(name for row in rows for name in re.findall(r"`(\w+)`", row[0]))
    assert set(metadata.tables) == set(classed)
    assert set(classed.values()) == {1}


def test_the_time_for_weak_parts_is_stated(page: Page) -> None:
    """A number of days, or a release, for each kind."""
    rows = page.rows("## Dependencies")
    assert len(rows) == 3
    assert all(re.search(r"within [0-9]+ days|next release", time) for _, time in rows)
