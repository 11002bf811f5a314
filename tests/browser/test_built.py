"""The committed file of the component is built from web/, and the guide describes it."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.docs import generated
from tests.docs.markdown import ROOT, read
from tests.support import node

GZIPPED_MAX = 15 * 1024
ENDS = ("done", "declined", "expired", "cancelled")
COMPONENT, GUIDE = generated.COMPONENT, generated.COMPONENT_GUIDE
SOURCE = "".join(p.read_text(encoding="utf-8") for p in sorted((node.WEB / "src").glob("*.ts")))


@pytest.mark.npm
def test_the_component_is_built_from_its_source(tmp_path: Path) -> None:
    """Byte for byte; `make web` builds it again. The types are right, and no browser is needed."""
    made = tmp_path / COMPONENT.name
    for script in (["check"], ["build", "--", f"--outfile={made}", "--log-level=warning"]):
        command = ["npm", "run", "--silent", *script]
        done = subprocess.run(command, cwd=node.WEB, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert made.read_bytes() == COMPONENT.read_bytes(), "run: make web docs"


@pytest.mark.npm
def test_the_package_has_the_file_and_its_types(tmp_path: Path) -> None:
    """With README and licence, without source files."""
    command = [
        "npm",
        "pack",
        "--silent",
        "--ignore-scripts=false",
        f"--pack-destination={tmp_path}",
    ]
    subprocess.run(command, cwd=node.WEB, capture_output=True, check=True)
    (packed,) = tmp_path.iterdir()
    with tarfile.open(packed) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        file = archive.extractfile(f"package/dist/{COMPONENT.name}")
        assert file
        assert file.read() == COMPONENT.read_bytes()
    types = {"dist/countersign-notice.d.ts", "dist/api.d.ts", "dist/view.d.ts"}
    assert names == {f"dist/{COMPONENT.name}", "package.json", "README.md", "LICENSE"} | types


@pytest.mark.node
def test_the_component_can_be_imported_without_a_browser() -> None:
    """A server that renders the shop's page imports it, too."""
    code = f"import({json.dumps(COMPONENT.as_uri())}).then(m => console.log(Object.keys(m)[0]))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    assert done.stdout == "CountersignNotice\n"


def test_the_component_is_small() -> None:
    """At most 15 KB on the wire, and as much as the guide says."""
    size = len(gzip.compress(COMPONENT.read_bytes()))
    assert size <= GZIPPED_MAX
    shown = re.search(r"([\d.]+) KB gzipped", read(GUIDE).prose)
    assert shown
    # Compressors differ a little.
    assert abs(float(shown[1]) - size / 1000) < 0.2


def test_the_guide_shows_the_integrity_of_the_file() -> None:
    """`make docs` writes it."""
    text = GUIDE.read_text(encoding="utf-8")
    assert re.findall(r'integrity="(.*?)"', text) == [generated.integrity()]
    assert generated.component_guide() == text


def test_the_guide_describes_every_part_property_and_event() -> None:
    """The guide has every one from the source, and no others."""
    page = read(GUIDE)

    def named(section: str, column: int = 0) -> set[str]:
        cells = (row[column] for row in page.rows(section))
        return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}

    parts = {name for text in re.findall(r'part: [`"]([^`"]+)', SOURCE) for name in text.split()}
    parts |= {n for text in re.findall(r'button\("([^"]+)"', SOURCE) for n in text.split()}
    parts |= set(re.findall(r'#(?:link|hosted)\("(\w+)"', SOURCE))
    assert named("## Parts", 1) == {part for part in parts if "$" not in part and "{" not in part}
    assert named("## Custom properties") == set(re.findall(r"var\((--countersign-[a-z-]+)", SOURCE))
    assert named("## Events") == {f"countersign-{n}" for n in re.findall(r'#tell\("(\w+)"', SOURCE)}
    states = re.search(r"export type NoticeState =([^;]*);", SOURCE)
    assert states
    assert named("## States") == set(re.findall(r'"(\w+)"', states[1]))


def test_the_service_has_every_word_that_the_component_shows() -> None:
    """In each language."""
    used = set(re.findall(r'#word\("(\w+)"', SOURCE))
    used |= {f"{end}_{part}" for end in ENDS for part in ("title", "intro")}
    assert len(used) > 30
    for words in WORDS.values():
        assert used <= set(words)


@pytest.mark.parametrize("folder", node.FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_packages_for_node_are_pinned_with_checksums(folder: Path) -> None:
    """From whichever registry they come: the lock file has no addresses."""
    parts = node.locked(folder)
    assert parts
    assert all(part["integrity"].startswith("sha512-") for part in parts.values())
    assert not any("resolved" in part for part in parts.values())
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    pins = wanted.get("dependencies", {}) | wanted.get("devDependencies", {})
    pins = {name: pin for name, pin in pins.items() if not pin.startswith("file:")}
    assert {name: parts[f"node_modules/{name}"]["version"] for name in pins} == pins
