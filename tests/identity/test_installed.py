"""Identity providers are installed packages: another one changes nothing here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from countersign.base.errors import IdentityProviderRefused, InvalidArgument
from countersign.identity import registry
from tests.cli.serving import running, wait_for
from tests.docs.markdown import ROOT
from tests.support.service import PREFIX, free_port

EXAMPLE: Final = ROOT / "examples" / "identity-provider"
SESSION: Final = "gate_00000000000000a1"
PASSED: Final = {
    "id": SESSION,
    "status": "passed",
    "live": True,
    "reference": None,
    "decided_at": "2026-11-20T21:30:00Z",
    "document": {
        "number": "G1",
        "kind": "drivers_license",
        "country": "US",
        "region": "CA",
        "expires_on": "2099-01-31",
        "first_name": "Maxine",
        "last_name": "Mustermensch",
        "born": "1990-05-01",
        "street": "1 Main St",
        "city": "San Francisco",
        "state": "CA",
        "zip": "94110",
    },
}


@contextmanager
def gatekeeper() -> Iterator[str]:
    """Play the invented provider of the example; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == f"/sessions/{SESSION}"
            body = json.dumps(PASSED if known else {"error": "no such session"}).encode()
            self.send_response(200 if known else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


Look = Callable[[str, str], None]


class Service:
    """A deployment whose processes find the packages in a separate folder."""

    def __init__(self, folder: Path, packages: Path) -> None:
        self.folder = folder
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
        self.environment = inherited | {
            "PYTHONPATH": str(packages),
            "COUNTERSIGN_DATA_DIR": str(folder / "data"),
            "COUNTERSIGN_PORT": str(free_port()),
        }

    def run(self, *words: str, fails: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "countersign", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    @contextmanager
    def serving(self, key: str) -> Iterator[httpx2.Client]:
        log, url = self.folder / "log", f"http://127.0.0.1:{self.environment['COUNTERSIGN_PORT']}"
        serve = [sys.executable, "-m", "countersign", "serve"]
        with (
            running(serve, self.environment, log, self.folder) as process,
            httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client,
        ):
            wait_for(process, log, "Countersign serves")
            yield client


@pytest.mark.later
@pytest.mark.long
def test_a_buyer_is_verified_by_a_provider_of_another_package(tmp_path: Path) -> None:
    """The service is unchanged; once the package is gone, the account has to act."""
    packages, credentials = tmp_path / "packages", tmp_path / "credentials.json"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(packages)]
    subprocess.run([*install, str(EXAMPLE)], check=True)
    credentials.write_text('{"api_key": "invented-key"}')
    service = Service(tmp_path, packages)
    service.run("init")
    service.run("accounts", "create", "vendor")
    key = service.run("keys", "create", "--account", "vendor", "--mode", "live").strip()
    sent = {"provider_identity_session_id": SESSION, "shipping_zip": "94110"}
    with gatekeeper() as url:
        options = ("--credentials-file", str(credentials), "--dangerous-base-url", url, "--check")
        service.run(
            *("accounts", "verification", "set", "vendor", "--provider", "gatekeeper", "--yes"),
            *options,
        )
        with service.serving(key) as client:
            answer = client.post("/v1/buyers/verify", json=sent)
            assert (answer.status_code, answer.json()["status"]) == (200, "verified"), answer.text
            elsewhere = client.post("/v1/buyers/verify", json=sent | {"shipping_zip": "10001"})
            assert elsewhere.json()["reasons"] == ["zip_mismatch"]
    service.environment["PYTHONPATH"] = ""
    with service.serving(key) as client:
        answer = client.post("/v1/buyers/verify", json=sent)
        assert answer.json()["error"]["code"] == "verification_misconfigured"
    assert "provider_unusable" in (tmp_path / "log").read_text()


def offer(folder: Path, name: str, source: str) -> None:
    """Have a package in this folder that names a provider."""
    metadata = folder / "somebodys_package-1.dist-info"
    metadata.mkdir(parents=True)
    metadata.joinpath("METADATA").write_text("Name: somebodys-package\nVersion: 1\n")
    entry = f"[countersign.identity_providers]\n{name} = somebodys_module:Provider\n"
    metadata.joinpath("entry_points.txt").write_text(entry)
    folder.joinpath("somebodys_module.py").write_text(source)


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    """Look again for installed packages, with such a package."""

    def again(name: str, source: str) -> None:
        offer(tmp_path, name, source)
        monkeypatch.syspath_prepend(tmp_path)
        registry._installed.cache_clear()

    yield again
    sys.modules.pop("somebodys_module", None)
    registry._installed.cache_clear()


_OWN: Final = "from countersign.identity.stripe import Stripe"
_BASE: Final = "from countersign.identity.base import IdentityProvider as Base"


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("gate", "raise OSError('no key file')", "OSError: no key file"),
        ("gate", "", "AttributeError"),
        ("gate", "import no_such_module", "ModuleNotFoundError"),
        ("gate", "class Provider: pass", "no subclass"),
        ("gate", f"{_OWN}\nclass Provider(Stripe): pass", "the name stripe"),
        ("gate", f"{_BASE}\nclass Provider(Base): name = 'gate'", "lacks credentials_type"),
        ("sandbox", f"{_OWN} as Provider", "reserved"),
        ("The Gate", f"{_OWN} as Provider", "small letters"),
        ("stripe", f"{_OWN} as Provider", "countersign-service and somebodys-package"),
    ],
)
def test_an_invalid_provider_is_refused_with_name_package_and_cause(
    look: Look, name: str, source: str, said: str
) -> None:
    """Whatever the package does wrong, nothing of it is used."""
    look(name, source)
    with pytest.raises(IdentityProviderRefused, match="somebodys-package") as refused:
        registry.refuse_unusable()
    assert said in refused.value.message
    assert name in refused.value.message


@pytest.mark.later  # it starts four processes; refusals are tested above
def test_a_server_does_not_start_with_a_provider_that_cannot_be_used(tmp_path: Path) -> None:
    """Nor with two of one name; commands that need no provider still work."""
    offer(tmp_path / "packages", "stripe", f"{_OWN} as Provider")
    service = Service(tmp_path, tmp_path / "packages")
    service.run("init")
    said = service.run("serve", fails=True)
    assert "identity_provider_refused" in said
    assert "Traceback" not in said
    service.run("accounts", "list")


def test_the_services_own_providers_are_installed_like_any_other() -> None:
    own = ("didit", "onfido", "persona", "plaid", "stripe", "veriff")
    assert registry.provider_names() == own
    registry.refuse_unusable()
    with pytest.raises(InvalidArgument, match="didit, onfido"):
        registry._adapter("gatekeeper")
    found: list[Any] = [registry._adapter(name) for name in own]
    assert [adapter.name for adapter in found] == [*own]
