"""The PHP client: files, errors, webhooks, and its manifest for Composer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest

from countersign_client import Countersign
from tests.cli.serving import running, wait_for
from tests.clients.conftest import Place
from tests.clients.messages import messages
from tests.docs.markdown import ROOT, read
from tests.support.service import free_port

pytestmark = [pytest.mark.php, pytest.mark.one_engine]
CLIENT = ROOT / "clients" / "php"
FILES = """<?php
require "countersign.php";
[, $url, $key, $ack_id] = $argv;
$countersign = new Countersign($url, $key);
foreach (["certificate", "dossier", "proof"] as $kind) {
    file_put_contents($kind, $countersign->get("/v1/acknowledgments/$ack_id/$kind"));
}
foreach (["/v1/acknowledgments/ack_none/dossier", "/nowhere"] as $path) {
    try {
        $countersign->get($path);
    } catch (CountersignError $error) {
        echo $error->getCode(), " ", $error->getMessage(), "\\n";
    }
}
"""


def test_files_of_an_acknowledgment_are_saved(place: Place, tmp_path: Path) -> None:
    """Byte for byte; a file that is not there is an error like any other."""
    key, _ = place.vendor()
    shutil.copy(CLIENT / "countersign.php", tmp_path)
    (tmp_path / "files.php").write_text(FILES, encoding="utf-8")
    with Countersign(api_key=key, base_url=place.server.url) as client:
        initials = ["JD" for _ in client.notices.retrieve("ab1263").bullets]
        ack_id = client.notices.acknowledge("ab1263", initials_per_line=initials).ack_id
        command = ["php", "files.php", place.server.url, key, ack_id]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert (tmp_path / "proof").read_text() == client.acknowledgments.proof(ack_id)
    assert (tmp_path / "certificate").read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "dossier").read_bytes().startswith(b"PK")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["404 not_found"] * 2


def test_the_shown_webhook_accepts_sent_messages_and_nothing_else(tmp_path: Path) -> None:
    """docs/webhooks.md as PHP serves it; Ed25519 signatures alone are for other clients."""
    (block,) = [b for b in read(ROOT / "docs" / "webhooks.md").blocks if b.language == "php"]
    asked = [one for one in messages() if one.secret.startswith("whsec_")]
    (secret,) = {one.secret for one in asked}
    shutil.copy(CLIENT / "countersign.php", tmp_path)
    (tmp_path / "hook.php").write_text(block.text.replace("whsec_...", secret), encoding="utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    command = ["php", "-d", "display_errors=1", "-S", url.removeprefix("http://"), "hook.php"]
    log = tmp_path / "log"
    with running(command, dict(os.environ), log, tmp_path) as process:
        wait_for(process, log, "started")
        for one in asked:
            headers = {name.encode(): value.encode() for name, value in one.headers.items()}
            answer = httpx2.post(url, content=one.body, headers=headers)
            assert (answer.status_code == 204) is one.authentic, one
            assert (answer.status_code == 400) is not one.authentic, answer.text
            assert answer.text == ""


def test_the_page_about_laravel_is_short_php(tmp_path: Path) -> None:
    """Its framework is not here: PHP reads it, and it is 60 lines at most."""
    page = ROOT / "docs" / "laravel.md"
    (block,) = [b for b in read(page).blocks if b.language == "php"]
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 60
    (tmp_path / "web.php").write_text(block.text, encoding="utf-8")
    subprocess.run(["php", "-l", "web.php"], cwd=tmp_path, capture_output=True, check=True)


def test_composer_finds_the_client() -> None:
    """Its manifest names the file, what it needs of PHP, and the version of the other clients."""
    manifest = json.loads((CLIENT / "composer.json").read_bytes())
    other = json.loads((ROOT / "clients" / "typescript" / "package.json").read_bytes())
    assert (manifest["version"], manifest["license"]) == (other["version"], other["license"])
    assert all((CLIENT / name).is_file() for name in manifest["autoload"]["classmap"])
    extensions = [name.removeprefix("ext-") for name in manifest["require"] if "ext-" in name]
    loaded = subprocess.check_output(["php", "-m"], text=True).split()
    assert set(extensions) <= set(loaded)
    assert re.search(r"PHP (\d\.\d) or later", (CLIENT / "countersign.php").read_text())
