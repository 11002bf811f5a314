"""What the documentation takes from the code. `make docs` writes it; the tests compare.

python -m tests.docs.generated
"""

from __future__ import annotations

import ast
import base64
import hashlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
from click.testing import CliRunner

from countersign.base import config
from countersign.base.db import tables
from countersign.base.db.tables import PERSONAL_INFO, metadata
from countersign.base.errors import REFUSALS
from countersign.operate.doctor.promises import PROMISES
from countersign.operate.doctor.sight import FINDINGS
from countersign.root import Later
from countersign.root import main as command_line

DOCS = Path(__file__).parents[2] / "docs"
CLI = DOCS / "cli.md"
CONFIGURATION = DOCS / "configuration.md"
COMPONENT_GUIDE = DOCS / "component.md"
DOCTOR = DOCS / "doctor.md"
INTEGRATE = DOCS / "integrate.md"
PERSONAL_DATA = DOCS / "personal-data.md"
ENDS = Path(inspect.getfile(tables)).with_suffix("").with_name("ends.toml")
COMPONENT = DOCS.parent / "src/countersign/hosted/pages/component/countersign-notice.js"
WIDTH = 80

_CLI_HEAD = """\
# Commands

<!-- Made from the code by `make docs`: change the help texts there, not here. -->

In a checkout the command is `.venv/bin/countersign`. Results for programs (an id, a key, a digest)
go to standard output, messages to standard error; `--json` prints the complete result as JSON. The
exit status is 0, or 1 with `error (code): message`, or 2 for a mistake in the command itself.
Commands can run while a server is running. Before an act that cannot be undone, a command requests
a confirmation; `--yes` confirms it.
"""
_OTHER_ERRORS = "| the message says how; most are only for [staff](staff-api.md) |"
_DOCTOR_HEAD = """\
# Everything that `doctor` can say

<!-- Made by `make docs` from findings.toml and promises.toml in src/countersign/operate/doctor. -->

[Health](health.md) describes the command; [on call](on-call.md) starts from symptoms. `…` stands
for a value.

Broken is work for now: the timer [calls](on-call.md#being-called). A warning is work for today, and
is told once a day.
"""
_ENDS_HEAD = "| Table | Content | Ends | Ended by | Personal columns | Other columns |"
_PROMISES_HEAD = """\
## Promises

What the deployment owes to somebody. The age of the oldest thing owed decides, whatever the cause.
The same limits are in `/metrics`, in `deploy/alerts.yaml` and in `GET /v1/deployment`.
"""


def cli_page() -> str:
    """docs/cli.md: the help of every command."""
    parts = [_CLI_HEAD]
    for words, _ in every_command(command_line, ("countersign",)):
        parts.append(f"## {' '.join(words)}\n\n```text\n{help_of(words)}```\n")
    return "\n".join(parts)


def every_command(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """This command and all below it, each with the words that call it."""
    yield words, loaded(command)
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from every_command(child, (*words, name))


def loaded(command: click.Command) -> click.Command:
    """The command itself, where only its name and its help are known."""
    return command.load() if isinstance(command, Later) else command


def help_of(words: tuple[str, ...]) -> str:
    """What `… --help` prints on a terminal of 80 columns."""
    result = CliRunner().invoke(
        command_line, [*words[1:], "--help"], prog_name="countersign", terminal_width=WIDTH
    )
    return result.output


def integrity() -> str:
    """The SRI hash of the browser component."""
    digest = hashlib.sha384(COMPONENT.read_bytes()).digest()
    return f"sha384-{base64.b64encode(digest).decode()}"


def component_guide() -> str:
    """docs/component.md, with the integrity of the file as it is now."""
    text = COMPONENT_GUIDE.read_text(encoding="utf-8")
    return re.sub(r'sha384-[^"\s]+', integrity(), text)


def doctor_page() -> str:
    """docs/doctor.md: what `countersign doctor` says that is not fine."""
    rows = [
        f"| `{check}` | {words['severity']} | {_plain(words['found'])} | "
        f"{_plain(words.get('what_to_do', ''))} |\n"
        for check, names in FINDINGS.items()
        for words in names.values()
        if "severity" in words
    ]
    top = "| Check | How bad | Found | What to do |\n| --- | --- | --- | --- |\n"
    owed = [
        f"| `{name}` | {_hours(one.ticket)} | {_hours(one.page)} | {_plain(one.found)} | "
        f"{_plain(one.what_to_do)} |\n"
        for name, one in PROMISES.items()
    ]
    limits = "| Promise | Warning after | Broken after | Found | What to do |\n"
    limits += "| --- | --- | --- | --- | --- |\n"
    return f"{_DOCTOR_HEAD}\n{top}{''.join(rows)}\n{_PROMISES_HEAD}\n{limits}{''.join(owed)}"


def _hours(seconds: int | None) -> str:
    if seconds is None:
        return "never"
    units = ((86400, "d"), (3600, "h"), (60, "min"))
    return next(
        f"{seconds // size} {unit}" for size, unit in units if seconds >= 2 * size or size == 60
    )


def errors_guide() -> str:
    """docs/integrate.md: its last row of errors has those that no other row has."""
    text = INTEGRATE.read_text(encoding="utf-8")
    start = text.index(_OTHER_ERRORS)
    end = text.index("\n", start)
    rows = text[text.index("## Errors") : start]
    codes = (f"{error.status} `{error.code}`" for error in REFUSALS)
    others = [code for code in codes if code not in rows]
    return f"{text[:start]}{_OTHER_ERRORS} {', '.join(others)} |{text[end:]}"


def ends() -> dict[str, dict[str, str]]:
    """By table: what it holds, when that ends, and who ends it."""
    return tomllib.loads(ENDS.read_text(encoding="utf-8"))


def personal_data_page() -> str:
    """docs/personal-data.md: every table and column, with its end."""
    text = PERSONAL_DATA.read_text(encoding="utf-8")
    start = text.index(_ENDS_HEAD)
    rows = [_ENDS_HEAD, "| --- | --- | --- | --- | --- | --- |"]
    for name, said in ends().items():
        by: dict[str, list[str]] = {}
        for column in metadata.tables[name].c:
            personal = column.info.get(PERSONAL_INFO)
            by.setdefault(personal.subject if personal else "", []).append(f"`{column.name}`")
        others = ", ".join(by.pop("", []))
        own = "; ".join(f"{', '.join(columns)} ({subject})" for subject, columns in by.items())
        rows.append(
            f"| `{name}` | {said['holds']} | {said['ends']} | {said['by']} | {own} | {others} |"
        )
    return "\n".join([text[:start] + rows[0], *rows[1:], text[text.index("\n\n", start) + 1 :]])


def configuration_page() -> str:
    """docs/configuration.md, with each setting: its purpose, its default and an example."""
    page = CONFIGURATION.read_text(encoding="utf-8")
    parts = [page[: page.index("-->") + 4]]
    for name, (purpose, example) in described_settings().items():
        default = config.SETTINGS[name].default
        shown = "none" if default is None else f"`{default}`" if default else "empty"
        parts.append(
            f"## {config.PREFIX}{name.upper()}\n\n{purpose}\n\n"
            f"- Default: {shown}\n- Example: `{example}`\n"
        )
    return "\n".join(parts)


def described_settings() -> dict[str, tuple[str, str]]:
    """The purpose of each setting and an example, from the text below its field."""
    (declared,) = ast.parse(inspect.getsource(config.Settings)).body
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, tuple[str, str]] = {}
    for field, text in pairwise(declared.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            words = " ".join(ast.literal_eval(text.value).split())  # type: ignore[attr-defined]
            purpose, _, example = words.rpartition(" Example: ")
            found[field.target.id] = (purpose, example.removesuffix(".").strip("`"))
    return found


def _plain(words: str) -> str:
    """The words with `…` in the place of values."""
    return re.sub(r"\{[^}]*\}", "…", words).replace("|", "\\|")


def write() -> None:
    """Write the pages."""
    DOCTOR.write_text(doctor_page(), encoding="utf-8")
    INTEGRATE.write_text(errors_guide(), encoding="utf-8")
    CONFIGURATION.write_text(configuration_page(), encoding="utf-8")
    PERSONAL_DATA.write_text(personal_data_page(), encoding="utf-8")
    CLI.write_text(cli_page(), encoding="utf-8")
    COMPONENT_GUIDE.write_text(component_guide(), encoding="utf-8")


if __name__ == "__main__":
    write()
