"""Output of the command line never contains a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.service import Deployment


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:s3cret@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x?password=s3cret"],
)
def test_a_database_that_cannot_be_reached_is_named_without_its_password(
    tmp_path: Path, url: str
) -> None:
    """A password may stand in two places of a URL."""
    lost = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": url})
    done = lost.run("accounts", "list", check=False)
    assert done.returncode == 1
    assert "storage_unavailable" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "https://x.example\n",
        "http://x>;rel=a",
        "https://u:p@x.example",
        "https://x.example:99999",
        "https://x.example/\u00e9",
    ],
)
def test_a_public_address_that_could_do_harm_in_a_header_is_refused(
    tmp_path: Path, url: str
) -> None:
    """It stands in the headers of answers."""
    wrong = Deployment(data_dir=tmp_path / "data", settings={"PUBLIC_URL": url})
    done = wrong.run("init", check=False)
    assert done.returncode == 1
    assert "COUNTERSIGN_PUBLIC_URL" in done.stderr
