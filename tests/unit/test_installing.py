"""A release's installation: built here, and installed into separate environments."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.release import INSTALL, ROOT, build_package, install_file

pytestmark = [pytest.mark.long, pytest.mark.later]  # it installs, as a newcomer and CI do

OURS = re.compile(r"countersign|_editable_impl_countersign", re.IGNORECASE)
SITE = Path(sysconfig.get_path("purelib"))
DOSSIER = ROOT / "spec/vectors/dossier/good/acknowledgment-alone.zip"
NEEDLESS = "alembic", "granian", "jinja2", "psycopg", "sqlalchemy", "structlog", "typst"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of the service and of the evidence, with the file that installs them."""
    target = tmp_path_factory.mktemp("dist")
    for package in (".", "packages/evidence"):
        build_package(ROOT / package, target, "1767225600", "--target", "wheel")
    (target / INSTALL).write_text(install_file(target), encoding="utf-8")
    return target


def environment(folder: Path, names: set[str]) -> Path:
    """The interpreter of a new environment that has these packages of ours, as links."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    place = Path(printed(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    for name in names:
        (place / name).symlink_to(SITE / name)
    return python


def printed(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def install(python: Path, *what: str | Path) -> None:
    """Without a network: an index would be an error."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    printed(*pip, "install", "--quiet", "--no-index", *what)
    printed(*pip, "check")


def folders_of(found: Distribution) -> set[str]:
    """The folders of a package in site-packages."""
    return {
        file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__"}
    }


def needed(name: str) -> set[str]:
    """The packages that one requires, recursively, without extras."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for one in map(Requirement, distribution(waiting.pop()).requires or ()):
            is_needed = one.marker is None or one.marker.evaluate({"extra": ""})
            if is_needed and one.name not in found:
                found.add(one.name)
                waiting.append(one.name)
    return found


def test_a_release_is_installed_from_its_own_files(release: Path, tmp_path: Path) -> None:
    """With their hashes, and without a registry: none is asked for a name of ours."""
    others = {name for one in distributions() for name in folders_of(one) if not OURS.match(name)}
    python = environment(tmp_path / "installed", {n for n in others if (SITE / n).exists()})
    install(python, "--require-hashes", "-r", release / INSTALL)
    version = printed(python.with_name("countersign"), "--version").split()[-1]
    assert f"countersign-evidence=={version} --hash=sha256:" in (release / INSTALL).read_text()
    assert f"countersign-evidence=={version}" in (ROOT / "pyproject.toml").read_text()
    # A file that was exchanged is not installed.
    (wheel,) = release.glob("countersign_evidence-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(subprocess.CalledProcessError):
        install(python, "--force-reinstall", "--require-hashes", "-r", release / INSTALL)


def test_no_list_for_a_registry_has_a_name_of_ours() -> None:
    """A stranger could register it there."""
    for path in ROOT.glob("requirements*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.startswith("countersign")] == []


def test_evidence_is_checked_without_the_service(release: Path, tmp_path: Path) -> None:
    """No web server, no database, no templates: a dossier is judged, and its PDF not compared."""
    names = needed("countersign-evidence")
    assert names.isdisjoint(NEEDLESS)
    links = {folder for name in names for folder in folders_of(distribution(name))}
    python = environment(tmp_path / "reader", links)
    (wheel,) = release.glob("countersign_evidence-*.whl")
    install(python, wheel)
    # The check of a signer is an optional extra.
    every = """import importlib, pkgutil, countersign_evidence as evidence
for module in pkgutil.walk_packages(evidence.__path__, evidence.__name__ + "."):
    if not module.name.endswith(".timestamp_signer"):
        importlib.import_module(module.name)"""
    printed(python, "-c", every)
    command = python.with_name("countersign-evidence")
    done = subprocess.run(
        [command, "verify", DOSSIER, "--own-key"], check=True, capture_output=True, text=True
    )
    assert "\n\nCONSISTENT" in done.stdout
    assert "dossier.pdf was not compared: the package countersign-service is not" in done.stderr
    assert "verify.py and verify.html in the dossier: of another release" in done.stderr
    assert {"check-alarm", "mirror", "monitor", "verify"} <= {*printed(command, "--help").split()}
