"""The Containerfile and deploy/: every name in them is there, and the health check says the truth.

No image is built here: docs/container.md says how that was tried, and what was not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from countersign.base.config import FILE_VARIABLE, PREFIX, SETTINGS, load_settings
from countersign.root import main
from tests.docs.conftest import MadeServer
from tests.docs.generated import loaded
from tests.docs.markdown import ROOT
from tests.docs.test_serving_role import documented_roles
from tests.support.service import free_port

DEPLOY = ROOT / "deploy"
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def _instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)", CONTAINERFILE, re.MULTILINE)


def test_what_the_image_takes_from_the_checkout_is_there_and_not_kept_out() -> None:
    """`.dockerignore` keeps out everything that it does not name."""
    let_in = {
        line.removeprefix("!").strip("/")
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    for copied in _instructions("COPY"):
        words = [word for word in copied.split() if not word.startswith("--")]
        if "--from=" in copied:
            continue
        for source in words[:-1]:
            path = Path(source)
            assert (ROOT / path).exists(), source
            assert {str(path), *map(str, path.parents)} & let_in, source


def test_the_image_is_made_from_pinned_packages_and_does_not_run_as_root() -> None:
    """A number and no name, so that Kubernetes can see it, too."""
    assert _instructions("USER") == ["10001:10001"]
    assert _instructions("VOLUME") == [SERVICES["service"]["volumes"][0].partition(":")[2]]
    installed = re.findall(r"pip install|pip --python \S+ install", CONTAINERFILE)
    assert len(installed) == CONTAINERFILE.count("--require-hashes") + 1
    assert CONTAINERFILE.count("--no-index --no-deps /build/dist/*.whl") == 1
    assert all(base.startswith("${PYTHON_IMAGE}") for base in _instructions("FROM"))


def test_every_command_of_the_containers_exists() -> None:
    """Also with its options."""
    (entrypoint,) = map(json.loads, _instructions("ENTRYPOINT"))
    lines = [entrypoint[2]]
    for service in SERVICES.values():
        command = service.get("entrypoint", [])
        lines.append(command[2] if command[:2] == ["/bin/sh", "-c"] else shlex.join(command))
    commands = [part for line in lines for part in re.findall(r"countersign( [^&]*|$)", line)]
    assert len(commands) == 2 + 3 + 1 + 1 + 1
    for words in map(shlex.split, commands):
        found: click.Command = main
        while isinstance(found, click.Group) and words:
            found = found.commands[words.pop(0)]
        options = {option for each in loaded(found).params for option in each.opts}
        assert {word.partition("=")[0] for word in words if word[:2] == "--"} <= options


def test_every_setting_of_the_compose_file_exists() -> None:
    """And every file, secret, volume, network and service that it names."""
    for service in SERVICES.values():
        variables = {v for v in service.get("environment", {}) if v.startswith(PREFIX)}
        known = {FILE_VARIABLE, *(PREFIX + name.upper() for name in SETTINGS)}
        assert variables <= known
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for mounted in service["volumes"]:
            source = mounted.partition(":")[0]
            here = (DEPLOY / source).exists() if source.startswith(".") else source in _volumes()
            assert here, source
    secrets = {path["file"] for path in COMPOSE["secrets"].values()}
    assert all(path.startswith("./secrets/") for path in secrets)


def _volumes() -> set[str]:
    return set(COMPOSE["volumes"])


def test_only_the_proxy_is_reached_from_outside_and_the_service_believes_it_alone() -> None:
    """Records would have its address if the header were not trusted."""
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    (address,) = [network["ipv4_address"] for network in SERVICES["proxy"]["networks"].values()]
    assert SERVICES["service"]["environment"]["COUNTERSIGN_TRUSTED_PROXIES"] == address
    assert SERVICES["database"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert "reverse_proxy service:8080" in (DEPLOY / "Caddyfile").read_text(encoding="utf-8")


def test_the_roles_match_the_page_for_operators() -> None:
    """With passwords, since they are reached through a network."""
    text = (DEPLOY / "roles.sql").read_text(encoding="utf-8")
    assert [s for s in documented_roles() if s not in re.sub(r" PASSWORD :'\w+'", "", text)] == []
    passwords = re.findall(r"CREATE ROLE countersign_(\w+) LOGIN PASSWORD :'(\w+)'", text)
    assert passwords == [(name, f"{name}_password") for name in ("owner", "app", "retention")]


def test_secrets_are_made_once_and_are_settings(tmp_path: Path) -> None:
    """The two sides of a password are the same one; a second run changes nothing."""
    script = Path(shutil.copy(DEPLOY / "secrets.sh", tmp_path))
    subprocess.run(["sh", script], check=True, timeout=30)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == {Path(s["file"]).name for s in COMPOSE["secrets"].values()}
    for role in ("owner", "app"):
        settings = load_settings({FILE_VARIABLE: str(tmp_path / "secrets" / f"{role}.toml")})
        password = made[f"{role}_password"]
        assert len(password) == 48
        assert settings.database_url == (
            f"postgresql://countersign_{role}:{password}@database/countersign"
        )
    assert subprocess.run(["sh", script], check=False, stderr=subprocess.PIPE).returncode != 0
    assert {p.name: p.read_text() for p in (tmp_path / "secrets").iterdir()} == made


def test_the_health_check_says_whether_the_server_responds(made_server: MadeServer) -> None:
    """The image has it under the name that the image and the compose file use."""
    assert re.search(
        r"^COPY \S+ deploy/health.py /usr/local/bin/health$", CONTAINERFILE, re.MULTILINE
    )
    assert CONTAINERFILE.count('CMD ["health"]') == 1
    assert SERVICES["service"]["healthcheck"]["test"] == ["CMD", "health"]

    def check(port: int) -> int:
        script = [sys.executable, "-IS", str(DEPLOY / "health.py")]
        environment = {**os.environ, "COUNTERSIGN_PORT": str(port)}
        return subprocess.run(script, env=environment, check=False, timeout=30).returncode

    assert check(int(made_server.url.rpartition(":")[2])) == 0
    assert check(free_port()) == 1
