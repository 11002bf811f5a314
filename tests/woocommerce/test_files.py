"""The files of the plugin: without WordPress."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.woocommerce.conftest import EVENTS
from tests.woocommerce.wordpress import PLUGIN
from tools import translations
from tools.release import ROOT, pack_plugin

FILES = sorted(path for path in PLUGIN.rglob("*.php") if path.parent.name != "languages")
MAIN = PLUGIN / "countersign-woocommerce.php"


@pytest.mark.php
def test_every_file_is_php() -> None:
    """Readable by the oldest named PHP, as far as this machine's PHP can tell."""
    php = shutil.which("php")
    assert php is not None
    for path in FILES:
        done = subprocess.run([php, "-l", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_does_anything_when_a_browser_asks_for_it(path: Path) -> None:
    """A web server runs every file that lies in the folder of plugins."""
    text = path.read_text()
    guard = "WP_UNINSTALL_PLUGIN" if path.name == "uninstall.php" else "ABSPATH"
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert re.match(rf"<\?php\s+(namespace [\w\\]+;\s+)?defined\( '{guard}' \) \|\| exit;", code)


def test_the_words_are_of_one_domain() -> None:
    """Otherwise they could not be translated."""
    for path in FILES:
        calls = re.findall(r"\b(?:esc_html)?_{1,2}e?\( '(?:[^'\\]|\\.)*'(.*?)\)", path.read_text())
        assert all(rest.startswith(", 'countersign-woocommerce' ") for rest in calls), path


def test_translations_match_the_code() -> None:
    """`python -m tools.translations` writes them again."""
    assert {path: path.read_bytes() for path in translations.files()} == translations.files()


def test_no_text_is_left_in_english() -> None:
    spanish = (PLUGIN / "languages" / "countersign-woocommerce-es_ES.po").read_text("utf-8")
    translated = translations.read_po(spanish)
    assert [one.one for one in translations.messages() if not all(translated[one.one])] == []
    for one in translations.messages():
        marks = [
            re.findall(r"%(?:\d\$)?[sd]|{\w+}", text) for text in (one.one, *translated[one.one])
        ]
        assert all(sorted(found) == sorted(marks[0]) for found in marks), one.one


@pytest.mark.php
def test_the_code_follows_the_style_guide() -> None:
    """PSR-12, where WordPress's own style does not say otherwise."""
    sniffer = shutil.which("phpcs")
    if sniffer is None:
        pytest.skip("no phpcs: on Debian, php-codesniffer")
    command = [sniffer, "-q", f"--standard={ROOT / 'tools' / 'phpcs.xml'}", "--report=emacs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_versions_match_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    readme = (PLUGIN / "readme.txt").read_text()
    assert re.search(r"Version: +(\S+)", MAIN.read_text()).group(1) in project["version"]  # type: ignore[union-attr]
    assert re.search(r"const VERSION = '(\S+)'", MAIN.read_text()).group(1) in project["version"]  # type: ignore[union-attr]
    assert re.search(r"Stable tag: (\S+)", readme).group(1) in project["version"]  # type: ignore[union-attr]


def test_the_guide_names_the_events_that_the_plugin_reads() -> None:
    guide = (ROOT / "docs" / "woocommerce.md").read_text()
    code = (PLUGIN / "includes" / "events.php").read_text()
    assert all(f"`{one}`" in guide for one in EVENTS)
    assert set(re.findall(r"'(buyer\.\w+)'", code)) == {e for e in EVENTS if e.startswith("buyer.")}


def test_the_archive_has_one_folder_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(pack_plugin(PLUGIN, ROOT / "LICENSE", tmp_path / name, 1_795_000_001))
    assert made[0].read_bytes() == made[1].read_bytes()
    names = zipfile.ZipFile(made[0]).namelist()
    assert {name.partition("/")[0] for name in names} == {"countersign-woocommerce"}
    assert {
        "countersign-woocommerce/countersign-woocommerce.php",
        "countersign-woocommerce/includes/gate.php",
        "countersign-woocommerce/assets/checkout.js",
        "countersign-woocommerce/readme.txt",
        "countersign-woocommerce/languages/countersign-woocommerce-es_ES.mo",
        "countersign-woocommerce/LICENSE",
    } <= set(names)
