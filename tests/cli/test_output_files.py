"""Files that commands write: whole, or not at all."""

from pathlib import Path

import pytest

from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence


@pytest.fixture
def vendor(initialised: Bench) -> str:
    """Give the id of an account."""
    return initialised.account("vendor")


def test_an_export_that_fails_leaves_the_file_that_was_there(
    initialised: Bench, tmp_path: Path
) -> None:
    """An account that does not exist, say."""
    file = tmp_path / "out.csv"
    file.write_text("the export of last year")
    words = initialised.refused(
        "acknowledgments", "export", "--account", "nope", "--output", str(file)
    )
    assert "account_not_found" in words
    assert file.read_text() == "the export of last year"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


@pytest.mark.parametrize("place", ["missing/out", "file/out", "folder"])
def test_a_place_that_cannot_be_written_is_refused_in_words(
    initialised: Bench, vendor: str, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("no directory")
    (tmp_path / "folder").mkdir()
    ack_id, *_ = make_evidence(initialised, vendor, tmp_path)
    output = ("--output", str(tmp_path / place))
    for command in (("acknowledgments", "export", "--account", vendor), ("dossier", ack_id)):
        done = initialised.run(*command, *output, check=False)
        assert done.returncode in {1, 2}
        assert "Traceback" not in done.stderr


def test_an_export_of_nothing_names_the_other_mode(initialised: Bench, vendor: str) -> None:
    """Newcomers have test acknowledgments, and the command is about live ones."""
    done = initialised.run("acknowledgments", "export", "--account", vendor)
    assert "--mode test" in done.stderr.replace("\n", " ")
