"""A release: packages, their parts list, checksums, and a statement of provenance.

    python -m tools.release DIRECTORY

It builds the last commit, not the checkout, and the same bytes each time: times come
from the commit. Nothing is signed and nothing is published here; docs/releasing.md has the steps.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import uuid
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = (
    *(".", "packages/evidence", "packages/conformance", "packages/simulators", "clients/python"),
    *("packages/console", "integrations/django"),
)
NPM: Final = "clients/typescript"
PLUGIN: Final = "integrations/woocommerce"
_OFFLINE: Final = "packages/evidence/src/countersign_evidence/offline"
FILES: Final = (
    *(f"{_OFFLINE}/verify.py", f"{_OFFLINE}/verify.html"),
    *("clients/php/countersign.php", "clients/php/composer.json"),
    # With hashes: everything in the parts list can be installed.
    "requirements.txt",
)
"""Files copied into a release unchanged."""
INSTALLED: Final = ("countersign-evidence", "countersign-service")
INSTALL: Final = "countersign.txt"
"""Our packages for pip, from the files of the release, without asking a registry."""
LOCKS: Final = ("requirements.txt", "requirements-build.txt", f"{NPM}/package-lock.json")
SBOM, PROVENANCE, SUMS = "sbom.cdx.json", "provenance.json", "SHA256SUMS"
NAMES: Final = "urn:x-countersign"
"""The prefix of names without an address."""
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", re.MULTILINE)


def _run(*command: str, directory: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def sbom(requirements: str, *, name: str, version: str, made: datetime, commit: str) -> Any:  # noqa: ANN401 - JSON
    """The packages that the service is installed with, as CycloneDX 1.6.

    Some are for one platform only; all hashes are in requirements.txt.
    """
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{NAMES}:{commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(name, version) | {"type": "application"},
        },
        "components": [_component(*pin) for pin in _PIN.findall(requirements)],
    }


def _component(name: str, version: str) -> dict[str, str]:
    url = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def provenance(
    subjects: Mapping[str, str], sources: Mapping[str, str], commit: str, node: str
) -> Any:  # noqa: ANN401 - JSON
    """The built files and their commit, as an in-toto statement with SLSA's predicate.

    `subjects` and `sources` map names of files to their SHA-256, in hexadecimal. It is the claim of
    the person who ran the build: it is not signed.
    """
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{NAMES}:make-release:1",
                "externalParameters": {"commit": commit},
                "internalParameters": {
                    "signed": False,
                    "python": platform.python_version(),
                    "machine": f"{sys.platform} {platform.machine()}",
                    "node": node,
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *({"name": n, "digest": {"sha256": d}} for n, d in sources.items()),
                ],
            },
            "runDetails": {"builder": {"id": f"{NAMES}:unsigned-build-on-any-machine"}},
        },
    }


def install_file(directory: Path) -> str:
    """The lines for pip that install the wheels next to it, each with its hash."""
    lines = [
        "# After requirements.txt: pip install -r countersign.txt",
        "--no-index",
        "--find-links .",
    ]
    for name in INSTALLED:
        (wheel,) = directory.glob(f"{name.replace('-', '_')}-*.whl")
        version = wheel.name.split("-")[1]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{digest}")
    return "\n".join(lines) + "\n"


def checksums(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file of a directory, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.iterdir())
        if path.name != SUMS
    }


def pack_plugin(source: Path, licence: Path, target: Path, epoch: int) -> Path:
    """The plugin as WordPress installs it: a ZIP file with one folder; its times are `epoch`.

    Its name has the version of the plugin's header. Raises ValueError if there is none.
    """
    name = "countersign-woocommerce"
    header = (source / f"{name}.php").read_text(encoding="utf-8")
    version = re.search(r"^ \* Version: +(\S+)$", header, re.MULTILINE)
    if version is None:
        raise ValueError("the plugin's header has no version")
    packed = target / f"{name}-{version[1]}.zip"
    files = {path.relative_to(source).as_posix(): path for path in source.rglob("*.*")}
    files["LICENSE"] = licence
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, path in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{name}/{place}", time.gmtime(epoch)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes())
    return packed


def build_package(source: Path, target: Path, epoch: str, *only: str) -> None:
    """The wheel and the source of one Python package, or what `only` names (`--target wheel`)."""
    _run(
        *(sys.executable, "-m", "hatchling", "build", "--directory", str(target), *only),
        directory=source,
        SOURCE_DATE_EPOCH=epoch,
    )


def build(target: Path) -> None:
    """Build all of a release into an empty directory."""
    commit = _run("git", "rev-parse", "HEAD")
    epoch = _run("git", "log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "countersign")
        source.mkdir()
        archive = Path(scratch, "source.tar")
        _run("git", "archive", "--output", str(archive), "HEAD")
        _run("tar", "--extract", "--file", str(archive), "--directory", str(source))
        for package in PYTHON:
            build_package(source / package, target, epoch)
        (target / INSTALL).write_text(install_file(target), encoding="utf-8")
        # The packages of its lock file, as `make` installed them.
        (source / NPM / "node_modules").symlink_to(ROOT / NPM / "node_modules")
        # One after the other: npm may be set up to run no scripts of packages.
        _run("npm", "run", "--silent", "build", directory=source / NPM)
        pack = ("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(target))
        _run(*pack, directory=source / NPM)
        pack_plugin(source / PLUGIN, source / "LICENSE", target, int(epoch))
        for name in FILES:
            shutil.copyfile(source / name, target / Path(name).name)
        project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        parts = sbom(
            (source / "requirements.txt").read_text(encoding="utf-8"),
            name=project["name"],
            version=project["version"],
            made=datetime.fromtimestamp(int(epoch), UTC),
            commit=commit,
        )
        _write(target / SBOM, parts)
        locks = {n: hashlib.sha256((source / n).read_bytes()).hexdigest() for n in LOCKS}
    node = _run("node", "--version")
    _write(target / PROVENANCE, provenance(checksums(target), locks, commit, node))
    lines = [f"{digest}  {name}\n" for name, digest in checksums(target).items()]
    (target / SUMS).write_text("".join(lines), encoding="utf-8")


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Build twice, and keep the first only if the second has the same bytes."""
    target = Path(sys.argv[1])
    if target.exists() and any(target.iterdir()) and not (target / SUMS).is_file():
        sys.exit(f"{target} would be replaced, and holds something other than a release.")
    if _run("git", "status", "--porcelain"):
        sys.stderr.write("Not committed, so not in the release: see `git status`.\n")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for directory in (first, second):
            build(Path(directory))
        once, again = checksums(Path(first)), checksums(Path(second))
        if once != again:
            names = sorted(name for name in once | again if once.get(name) != again.get(name))
            sys.exit(f"Two builds of the same commit differ in {', '.join(names)}")
        # Leftovers of an earlier version do not belong to this release.
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(first, target)
    sys.stdout.write((target / SUMS).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
