"""docs/clients.md and the tabs of other guides: the shown code runs against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.clients.conftest import Place
from tests.docs.markdown import ROOT, Block, read
from tests.docs.shell import answers, compare, run_blocks
from tests.support import node
from tests.support.service import PREFIX

PAGE = read(ROOT / "docs" / "clients.md")
GUIDES = [
    read(ROOT / "docs" / f"{name}.md")
    for name in ("quickstart", "integrate", "clearances", "checkout")
]
"""The guides whose tabs are one program, from one page to the next."""
TAB = {"bash", "python", "ts", "php"}
ORDER = {
    "python": """
initials = ["JD" for _ in notice.bullets]

buyer = client.buyers.verify(
    provider_identity_session_id="vs_1Pk2x9", shipping_zip="94105", test_mode=True
)
receipt = client.notices.acknowledge(
    notice.notice_id,
    initials_per_line=initials,
    notice_version=notice.version,
    session_id="cs_9f2c4b7e1d803a65c2f8e4910b7d6a3f",
    order_reference="1001",
    cbid=buyer.cbid,
    ip="203.0.113.7",
    user_agent="Mozilla/5.0",
    idempotency_key="order-1001-notice-1",
)
decision = client.clearances.create(
    ack_id=receipt.ack_id,
    cbid=buyer.cbid,
    session_id="cs_9f2c4b7e1d803a65c2f8e4910b7d6a3f",
    order_reference="1001",
    shipping_zip="94105",
    product_class="accessory",
)
assert decision.cleared, decision.reasons
""",
    "js": """
const initials = notice.bullets.map(() => "JD");

const session_id = "cs_0b7d6a3f9f2c4b7e1d803a65c2f8e491";
const buyer = await client.buyers.verify({
  provider_identity_session_id: "vs_1Pk2x9",
  shipping_zip: "94105",
  test_mode: true,
});
const receipt = await client.notices.acknowledge(
  notice.notice_id,
  {
    initials_per_line: initials,
    notice_version: notice.version,
    session_id,
    order_reference: "1002",
    cbid: buyer.cbid,
    ip: "203.0.113.7",
    user_agent: "Mozilla/5.0",
  },
  { idempotencyKey: "order-1002-notice-1" },
);
const decision = await client.clearances.create({
  ack_id: receipt.ack_id,
  cbid: buyer.cbid,
  session_id,
  order_reference: "1002",
  shipping_zip: "94105",
  product_class: "accessory",
});
if (!decision.cleared) throw new Error(decision.reasons.join());
""",
}
"""Set-up not shown on the page: an order whose decision its later examples use."""
_NAMED = re.compile(r"^(?:const )?(\$?\w+) = ", re.MULTILINE)


def steps() -> Iterator[tuple[dict[str, Block], dict[str, Any] | None]]:
    """Each row of tabs, by language, with the response that is shown below it."""
    for page in GUIDES:
        row: dict[str, Block] = {}
        for block in page.blocks:
            if block.language in TAB and block.language not in row:
                row |= {block.language: block}
                continue
            if len(row) > 1:
                yield row, json.loads(block.text) if block.language == "json" else None
            row = {block.language: block} if block.language in TAB else {}


STEPS = list(steps())


def placeholders(place: Place) -> dict[str, str]:
    """Values in the pages, and their values here."""
    key, values = place.vendor()
    return {
        "http://127.0.0.1:8080": place.server.url,
        "csign_sk_test_...": key,
        "acct_...": values["account"],
    }


def filled(text: str, real: dict[str, str]) -> str:
    for word, value in real.items():
        text = text.replace(word, value)
    return text


def shown(language: str, place: Place) -> str:
    """The blocks of a language of the page as one program, with an order after the first."""
    first, *others = [block.text for block in PAGE.blocks if block.language == language]
    text = "\n".join([first, ORDER[language], *others])
    real = placeholders(place)
    assert all(word in text for word in real)
    return filled(text, real)


def walk(language: str, say: str, place: Place) -> str:
    """The tabs of a language as one program; each step's result is printed by `say`."""
    parts = []
    for row, answer in STEPS:
        text = row[language].text
        parts += [text, *([say.format(_NAMED.findall(text)[-1])] if answer else [])]
    return filled("\n".join(parts), placeholders(place))


def check_walk(said: list[Any]) -> None:
    """Every step returned the response shown below it."""
    expected = [answer for _, answer in STEPS if answer]
    for number, (answer, real) in enumerate(zip(expected, said, strict=True), 1):
        # Omitted members are empty in Python; the response of a session is shown shortened.
        shortened = "url" in answer
        found = {n: v for n, v in real.items() if n in answer or (v and not shortened)}
        compare(answer, found, f"step {number} $")


def readme(language: str, place: Place) -> str:
    """The example of a client's own page."""
    page = read(ROOT / "clients" / language / "README.md")
    (block,) = [block for block in page.blocks if block.language in {"python", "js"}]
    real = {"https://countersign.example.com": place.server.url}
    return filled(block.text, placeholders(place) | real)


def test_the_main_calls_are_shown_in_every_language() -> None:
    """Requirements, notice, verify, status, acknowledge, read back, clearance, session."""
    assert len(STEPS) == 9
    for row, _ in STEPS:
        assert set(row) == TAB, row.values()


def test_the_shown_python_runs(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first import to the last assertion."""
    names: dict[str, Any] = {}
    exec(compile(shown("python", place), "clients.md", "exec"), names)  # noqa: S102 - our own page
    names["client"].close()
    names["tested"].close()
    printed = capsys.readouterr().out
    assert "Show the notice again:" in printed
    assert "{'type': 'compared', 'what': 'zip'}" in printed


def test_the_tabs_in_curl_match_the_other_tabs(place: Place, tmp_path: Path) -> None:
    """The commands of the later pages, with the variables of the quickstart."""
    real = placeholders(place)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    blocks = [
        b for p in GUIDES[:1] for b in p.blocks if b.language == "bash" and b.section[0] < "6"
    ]
    blocks += [row["bash"] for row, _ in STEPS if row["bash"].page != GUIDES[0].path]
    printed = run_blocks(blocks, directory=tmp_path, environment=inherited, placeholders=real)
    check_walk([answers(printed[row["bash"]])[-1] for row, answer in STEPS if answer])


def test_the_tabs_in_python_return_what_is_shown(place: Place) -> None:
    """With the client."""
    said: list[Any] = []
    names: dict[str, Any] = {"said": said}
    exec(compile(walk("python", "said.append({})\n", place), "tabs", "exec"), names)  # noqa: S102
    names["client"].close()
    check_walk(json.loads(msgspec.json.encode(said)))


@pytest.fixture(scope="module")
def scripts(place: Place, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs in a folder, with the right types; they find the package as an installed one."""
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "countersign-client").symlink_to(built.parent)
    say = "console.log(JSON.stringify({}));\n"
    programs = {
        "shown": shown("js", place),
        "walk": walk("ts", say, place),
        "readme": readme("typescript", place),
    }
    for name, text in programs.items():
        for suffix in ("mjs", "mts"):
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    compiler = str(node.CLIENT / "node_modules/.bin/tsc")
    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"]
    checked = subprocess.run(
        [compiler, *options, *(f"{name}.mts" for name in programs)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    return folder


def run(*command: str, folder: Path, given: str = "") -> str:
    """The output of a program that ends successfully."""
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


@pytest.mark.npm
def test_the_shown_javascript_runs(scripts: Path) -> None:
    """As one module."""
    printed = run("node", "shown.mjs", folder=scripts)
    assert "Show the notice again:" in printed
    assert "{ type: 'compared', what: 'zip' }" in printed


def test_the_example_of_the_python_package_runs(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its page on a registry."""
    exec(compile(readme("python", place), "README.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.endswith(" 4\n")


@pytest.mark.npm
def test_the_example_of_the_typescript_package_runs(scripts: Path) -> None:
    """Its page on a registry."""
    assert run("node", "readme.mjs", folder=scripts).endswith(" 4\n")


@pytest.mark.npm
def test_the_tabs_in_typescript_return_what_is_shown(scripts: Path) -> None:
    """With the client; their output is not compared."""
    check_walk(answers(run("node", "walk.mjs", folder=scripts)))


@pytest.mark.php
def test_the_tabs_in_php_return_what_is_shown(place: Place, tmp_path: Path) -> None:
    """With the one file of a release."""
    shutil.copy(ROOT / "clients" / "php" / "countersign.php", tmp_path)
    say = 'echo "\\n", json_encode({}), "\\n";\n'
    (tmp_path / "walk.php").write_text(walk("php", say, place), encoding="utf-8")
    check_walk(answers(run("php", "walk.php", folder=tmp_path)))


def test_the_shown_commands_run(place: Place, tmp_path: Path) -> None:
    """`csign` with address and key from the variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    blocks = [block for block in PAGE.blocks if block.language == "bash"]
    (printed,) = run_blocks(
        blocks, directory=tmp_path, environment=inherited, placeholders=placeholders(place)
    ).values()
    assert "/c/cst_test_" in printed
    assert "  open\n" in printed
    assert all(json.loads(line)["type"] for line in printed.splitlines() if line.startswith("{"))
