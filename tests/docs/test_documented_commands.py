"""The `bash` blocks of README, quickstart and the pages for operators work as described."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from countersign.core.notices.notice_file import shipped_notice_files
from tests.docs.conftest import MadeServer
from tests.docs.markdown import ROOT, Block, Page, read
from tests.docs.shell import check_answers, run_blocks
from tests.support.service import PREFIX, Deployment, running_server

pytestmark = pytest.mark.long

README = read(ROOT / "README.md")
QUICKSTART = read(ROOT / "docs" / "quickstart.md")
OPERATING = [
    read(path)
    for path in sorted((ROOT / "docs").glob("*.md"))
    if f"]({path.name}" in (ROOT / "docs" / "operate.md").read_text()
]
"""The pages linked from docs/operate.md."""
GOING_LIVE = "Going live with a notice"
SHOWN_ADDRESS = "http://127.0.0.1:8080"
SHOWN_KEY = "csign_sk_test_..."


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def _bash(page: Page) -> list[Block]:
    return [block for block in page.blocks if block.language == "bash"]


def _walk(page: Page, server: MadeServer, directory: Path) -> int:
    blocks = [b for b in page.blocks if b.section != GOING_LIVE and b.language in {"bash", "json"}]
    printed = run_blocks(
        [block for block in blocks if block.language == "bash"],
        directory=directory,
        environment=_environment(),
        placeholders={SHOWN_ADDRESS: server.url, SHOWN_KEY: server.key},
    )
    return check_answers(blocks, printed)


def test_make_run_shows_a_curl_line_that_works(made_server: MadeServer) -> None:
    """Copying the shown line into another terminal gives the notice."""
    line = next(line for line in made_server.shown.splitlines() if line.startswith("  curl"))
    done = subprocess.run(
        [*shlex.split(line), "-s"], capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout)["bullets"]


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=["README", "quickstart"])
def test_the_start_on_the_page_is_the_tested_one(page: Page) -> None:
    """Both pages begin with `make run`, which the fixture runs; the README with a shop, then it."""
    starts = [block.text for block in page.blocks[:2] if block.language == "console"]
    assert starts == (["$ make demo\n"] if page is README else []) + ["$ make run\n"]


def test_the_readme_flow_answers_as_shown(made_server: MadeServer, tmp_path: Path) -> None:
    """Each request of the README gets the answer that stands below it."""
    assert _walk(README, made_server, tmp_path) == 1


def test_the_quickstart_flow_answers_as_shown(made_server: MadeServer, tmp_path: Path) -> None:
    """Each request of the quickstart gets the answer that stands below it."""
    assert _walk(QUICKSTART, made_server, tmp_path) == 5


@pytest.mark.later  # it runs a page, whose steps have tests of their own
def test_a_completed_notice_goes_live_as_the_readme_says(tmp_path: Path) -> None:
    """After the shown commands a new live key is served the completed notice."""
    (shipped,) = shipped_notice_files().values()
    text = shipped.decode().replace('version = "2026-01-01-incomplete"', 'version = "2026-01-01"')
    head, _, rest = text.partition("text_gaps = [")
    text = head + rest.partition("]")[2]
    text += '\n[[bullets]]\nid = "E"\ntext = "A line that this test made up."\n'
    (tmp_path / "ab1263-complete.toml").write_text(text, encoding="utf-8")
    deployment = Deployment(data_dir=tmp_path / "data")
    printed = run_blocks(
        [block for block in _bash(README) if block.section == GOING_LIVE],
        directory=tmp_path,
        environment=_environment(),
        placeholders={"$HOME/countersign-live": str(deployment.data_dir)},
    )
    begun, shown = printed.values()
    assert "evidence.example.com/v1/log/live/1" in begun
    with running_server(deployment) as server, server.client(shown.split()[-1]) as client:
        notice = client.get("/v1/notices/ab1263").json()
    assert (notice["version"], len(notice["bullets"])) == ("2026-01-01", 5)


def test_a_backup_made_while_a_server_runs_can_be_restored(tmp_path: Path) -> None:
    """The commands of the operator's pages run; the acknowledged data is in the restored copy."""
    places = {"/var/lib/countersign": str(tmp_path / "data"), "/srv/": f"{tmp_path}/"}
    sections = ["First start", "Accounts and keys", "Who the parties are"]
    blocks = [block for page in OPERATING for block in _bash(page)]
    starting = sorted(
        (block for block in blocks if block.section in sections),
        key=lambda block: sections.index(block.section),
    )
    assert len(starting) == len(sections)
    printed = run_blocks(
        starting, directory=tmp_path, environment=_environment(), placeholders=places
    )
    key = next(
        w for w in printed[starting[1]].split() if w.startswith("csign_sk_") and "…" not in w
    )
    deployment = Deployment(data_dir=tmp_path / "data")
    with running_server(deployment) as server, server.client(key) as client:
        notice = client.get("/v1/notices/ab1263").json()
        initials = {"initials_per_line": ["JD" for _ in notice["bullets"]]}
        ack_id = client.post("/v1/notices/ab1263/acknowledge", json=initials).json()["ack_id"]
        stored = client.get(f"/v1/acknowledgments/{ack_id}").json()
        run_blocks(
            [block for block in blocks if block not in starting],
            directory=tmp_path,
            environment=_environment(),
            placeholders=places,
        )
    restored = Deployment(data_dir=tmp_path / "restored")
    with running_server(restored) as server, server.client(key) as client:
        assert client.get(f"/v1/acknowledgments/{ack_id}").json() == stored
    for directory in ("data", "backup", "backup-key"):
        assert (tmp_path / directory).stat().st_mode & 0o777 == 0o700
