"""WordPress with WooCommerce and the plugin, on PHP's own web server and a MariaDB of this run."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.cli.serving import wait_until
from tests.support.service import free_port
from tests.woocommerce.shops import (
    DEBIAN,
    ROOT,
    Release,
    command,
    make_site,
    prepared,
    running_database,
)
from tools.release import pack_plugin

PLUGIN: Final = ROOT / "integrations" / "woocommerce"
MAIN: Final = "countersign-woocommerce/countersign-woocommerce.php"
_WORKERS: Final = 3


@dataclass(frozen=True, kw_only=True)
class WordPress:
    """A running WordPress with both plugins."""

    release: Release
    url: str
    folder: Path
    secret: str
    known: tuple[Path, ...]
    """Where WordPress and WooCommerce are, with deprecations of their own."""

    @property
    def plugin(self) -> Path:
        """As it was installed from its archive."""
        return self.folder / "wp-content" / "plugins" / Path(MAIN).parent

    def php(self, code: str, **given: Any) -> Any:  # noqa: ANN401 - JSON
        """Run PHP inside WordPress, with these variables; returns its result."""
        return self.php_as(httpx2.Cookies(), code, **given)

    def php_as(self, person: httpx2.Cookies, code: str, **given: Any) -> Any:  # noqa: ANN401 - JSON
        """The same for the person who is signed in with these cookies."""
        with httpx2.Client(cookies=person, timeout=60, verify=False) as client:
            response = client.post(
                self.url,
                json={"code": code, "given": given or {"_": 0}},
                headers={"X-Backstage": self.secret},
            )
        assert response.status_code == 200, response.text
        return response.json()["returned"]

    def command(self, code: str) -> str:
        """Run `php -r CODE` in the folder of WordPress; returns its output."""
        own = {"PATH": os.environ["PATH"], "BACKSTAGE": self.secret}
        # The program itself is elsewhere, by links.
        line = [command("php"), "-r", f"require 'prepend.php'; {code}"]
        done = subprocess.run(
            line, env=own, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def complaints(self) -> list[str]:
        """Messages of PHP and WordPress, without deprecations in others' code."""
        log = self.folder / "debug.log"
        lines = log.read_text().splitlines() if log.exists() else []
        words = ("PHP ", "WordPress database error")
        return [line for line in lines if any(w in line for w in words) and not self._known(line)]

    def _known(self, line: str) -> bool:
        if "Deprecated" in line:
            return any(f"in {place}/" in line for place in self.known)
        # WooCommerce asks about an order in a table of its own as if it were a post.
        return "map_meta_cap" in line and "shop_order_placehold" in line


@contextmanager
def _serving(site: Path, port: int, environment: dict[str, str]) -> Iterator[None]:
    line = [command("php"), "-d", f"auto_prepend_file={site}/prepend.php"]
    for option in ("enable_cli=1", "validate_timestamps=0", "memory_consumption=192"):
        line += ["-d", f"opcache.{option}"]
    line += ["-d", "opcache.max_accelerated_files=16000"]
    line += ["-S", f"127.0.0.1:{port}", "-t", str(site)]
    log = site.parent / "php.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            line,
            env=environment | {"PHP_CLI_SERVER_WORKERS": str(_WORKERS)},
            cwd=site,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            # Its workers would outlive it.
            start_new_session=True,
        )
    try:
        wait_until(lambda: "started" in log.read_text(), "PHP's web server")
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def running_wordpress(folder: Path, release: Release) -> Iterator[WordPress]:
    """Run a shop that was installed before, with the plugin as a release has it."""
    port, secret = free_port(), secrets.token_hex(16)
    url = f"http://127.0.0.1:{port}"
    shop, data = prepared(release), folder / "db"
    shop.copy_database(data)
    with running_database(data, folder) as socket:
        site = make_site(shop, folder, url, socket, secrets.token_hex(8))
        packed = pack_plugin(PLUGIN, ROOT / "LICENSE", folder, epoch=1_795_000_000)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(site / "wp-content" / "plugins")
        environment = {"PATH": os.environ["PATH"], "BACKSTAGE": secret}
        with _serving(site, port, environment):
            wp = WordPress(
                release=release,
                url=url,
                folder=site,
                secret=secret,
                known=(shop.wordpress, shop.woocommerce, DEBIAN),
            )
            activate = """require_once ABSPATH . 'wp-admin/includes/plugin.php';
                $error = activate_plugin($plugin);
                return is_wp_error($error) ? $error->get_error_message() : '';"""
            assert wp.php(activate, plugin=MAIN) == ""
            yield wp
