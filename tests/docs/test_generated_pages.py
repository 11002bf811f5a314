"""Generated pages match the code; `make docs` renews them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from countersign.base.config import FILE_VARIABLE, PREFIX, SETTINGS, load_settings
from countersign.base.db.tables import metadata
from countersign.root import TABLE
from countersign.root import main as command_line
from tests.docs import generated
from tests.docs.markdown import ROOT, Block, every_page, read
from tools.commands import table_text

CONFIGURATION = read(ROOT / "docs" / "configuration.md")
_SECTION = re.compile(
    r"^## COUNTERSIGN_(\w+)\n\n[^\n]+\n\n- Default: (.+)\n- Example: `(.+)`$", re.MULTILINE
)
DOCUMENTED = {
    name.lower(): (default, example)
    for name, default, example in _SECTION.findall(CONFIGURATION.prose)
}
"""The settings of the page: default and example of each."""


def test_cli_md_shows_the_help_of_every_command() -> None:
    """A changed help text has to be brought into the page: `make docs`."""
    assert generated.CLI.read_text(encoding="utf-8") == generated.cli_page()


def test_integrate_md_lists_the_errors_missing_in_other_rows() -> None:
    """A new refusal has to be brought into the page: `make docs`."""
    assert generated.INTEGRATE.read_text(encoding="utf-8") == generated.errors_guide()


def test_doctor_md_shows_everything_that_the_doctor_can_say() -> None:
    """A new finding has to be brought into the page: `make docs`."""
    assert generated.DOCTOR.read_text(encoding="utf-8") == generated.doctor_page()


def test_personal_data_md_names_every_table_with_its_columns_and_its_end() -> None:
    """A new table or column has to say what it holds, when that ends, and who ends it."""
    ends = generated.ends()
    assert ends.keys() == metadata.tables.keys()
    assert all(said.keys() == {"holds", "ends", "by"} for said in ends.values())
    page = generated.PERSONAL_DATA.read_text(encoding="utf-8")
    assert page == generated.personal_data_page()


def test_the_table_has_every_command_as_it_is_declared() -> None:
    """A new command, another name, another help line: `make docs` writes the table again."""
    assert TABLE.read_text(encoding="utf-8") == table_text()


def test_a_list_of_commands_loads_no_room_and_a_command_its_own() -> None:
    """`--help` is read from the table; only the called command is imported."""

    def imported(*words: str) -> set[str]:
        call = "import sys; from countersign.root import main; main(standalone_mode=False)"
        code = f"{call}; print(*sys.modules, sep='\\n', file=sys.stderr)"
        command = [sys.executable, "-c", code, *words, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return {name for name in done.stderr.split() if name.startswith("countersign.")}

    assert imported() == {"countersign.root"}
    rooms = {name.split(".")[1] for name in imported("keys", "create")}
    assert not rooms & {"webhooks", "checkout", "buyers", "acknowledgments", "log", "server"}


def test_the_shown_help_is_what_the_installed_command_prints() -> None:
    """The page is made inside one process; the command itself prints the same."""
    words = ("countersign", "keys", "create")
    done = subprocess.run(
        [Path(sys.prefix, "bin", words[0]), *words[1:], "--help"],
        # click leaves two columns free where it looks for the width itself.
        env=os.environ | {"COLUMNS": str(generated.WIDTH + 2)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == generated.help_of(words)


def test_configuration_md_matches_the_settings_in_the_code() -> None:
    """A changed purpose, default or example has to be brought into the page: `make docs`."""
    page = generated.CONFIGURATION.read_text(encoding="utf-8")
    assert page == generated.configuration_page()


def test_configuration_md_shows_every_setting_with_its_default() -> None:
    """In the order of the code; no removed one is described."""
    shown = {None: "none", "": "empty"}
    defaults = {n: shown.get(s.default, f"`{s.default}`") for n, s in SETTINGS.items()}
    assert list(defaults.items()) == [(n, default) for n, (default, _) in DOCUMENTED.items()]
    assert CONFIGURATION.prose.count(f"\n## {PREFIX}") == len(DOCUMENTED)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_example_of_a_setting_is_accepted(name: str) -> None:
    """A server starts with a copied example; that of the host needs a name, too."""
    _, example = DOCUMENTED[name]
    named = {PREFIX + "PUBLIC_URL": DOCUMENTED["public_url"][1]}
    loaded = load_settings(named | {PREFIX + name.upper(): example})
    assert getattr(loaded, name) == SETTINGS[name].read(example)


def test_the_shown_settings_file_is_accepted(tmp_path: Path) -> None:
    """It is read, and its values arrive."""
    (block,) = [block for block in CONFIGURATION.blocks if block.language == "toml"]
    file = tmp_path / "countersign.toml"
    file.write_text(block.text, encoding="utf-8")
    settings = load_settings({FILE_VARIABLE: str(file)})
    assert (settings.metrics_port, settings.public_url) == (
        9090,
        "https://countersign.example.com",
    )


def _command_lines() -> list[tuple[str, list[str]]]:
    """Every `countersign …` of the code blocks, with the place where it stands."""
    found = []
    for block in _blocks():
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.lstrip().startswith("#") or "countersign" not in line:
                continue
            words = shlex.split(line.removeprefix("$ "), comments=True)
            calls = [
                number
                for number, word in enumerate(words)
                if Path(word).name == "countersign" and words[number + 1 : number + 2]
            ]
            found += [(str(block), words[number + 1 :]) for number in calls]
    return [(place, words) for place, words in found if words[0] in command_line.commands]


def _blocks() -> list[Block]:
    return [
        block
        for path in every_page()
        for block in read(path).blocks
        if block.language in {"bash", "console", "ini"}
    ]


@pytest.mark.parametrize(("place", "words"), _command_lines(), ids=lambda value: str(value)[:60])
def test_a_documented_command_exists_with_its_options(place: str, words: list[str]) -> None:
    """No page shows a command or an option that does not exist."""
    command: click.Command = command_line
    left = list(words)
    while isinstance(command, click.Group):
        assert left, f"{place}: {words} is not a whole command"
        assert left[0] in command.commands, f"{place}: there is no command {left[0]}"
        command = command.commands[left.pop(0)]
    options = {
        option for parameter in generated.loaded(command).params for option in parameter.opts
    }
    unknown = {word for word in left if word.startswith("--")} - options
    assert not unknown, f"{place}: {words}"


def test_a_documented_setting_exists() -> None:
    """No page names a COUNTERSIGN_ variable that has no meaning."""
    known = {PREFIX + name.upper() for name in SETTINGS} | {
        FILE_VARIABLE,
        # Of the example and of the tests, and the mistakes that a decision is about.
        "COUNTERSIGN_API_KEY",
        # Of one command: a secret that is better not in a file.
        "COUNTERSIGN_PROVIDER_CREDENTIALS",
        "COUNTERSIGN_BASE_URL",
        # Of the plugin for WooCommerce, in wp-config.php.
        "COUNTERSIGN_WEBHOOK_SECRET",
        "COUNTERSIGN_RESIDENCE",
        "COUNTERSIGN_TESTS_REQUIRE_ALL",
        "COUNTERSIGN_TESTS_CHROMIUM",
        "COUNTERSIGN_TESTS_SUBSCRIPTIONS",
        "COUNTERSIGN_PROT",
        "COUNTERSIGN_SERVICE_HOST",
    }
    files = [*every_page(), ROOT / "Containerfile", ROOT / "examples" / "quickstart.py"]
    for path in files:
        text = path.read_text(encoding="utf-8")
        named = {word.rstrip("_") for word in _variables(text)}
        assert named <= known, f"{path}: {named - known}"


def _variables(text: str) -> set[str]:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
    return {word for word in words if word.startswith(PREFIX) and word != PREFIX}
