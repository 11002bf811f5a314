"""The real WordPress of the system, on PHP's own web server and a MariaDB of this run."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.cli.serving import running, wait_until
from tests.support.service import free_port
from tools.release import pack_plugin

SOURCE: Final = Path("/usr/share/wordpress")
HERE: Final = Path(__file__).parent
PLUGIN: Final = HERE.parents[1] / "integrations" / "woocommerce"
PROGRAMS: Final = ("php", "mariadbd", "mariadb-install-db", "mariadb")
_OURS: Final = {"wp-config.php", "wp-content"}
_CONFIG: Final = """<?php
$settings = array(
    'DB_NAME' => 'wordpress', 'DB_USER' => 'root', 'DB_PASSWORD' => '',
    'DB_HOST' => 'localhost:{socket}', 'DB_CHARSET' => 'utf8mb4', 'DB_COLLATE' => '',
    'WP_HTTP_BLOCK_EXTERNAL' => true, 'DISABLE_WP_CRON' => true, 'WP_DEBUG' => true,
    'WP_DEBUG_DISPLAY' => false, 'WP_DEBUG_LOG' => '{folder}/debug.log', 'WP_HOME' => '{url}',
    'WP_SITEURL' => '{url}', 'WP_CONTENT_DIR' => '{folder}/wp-content',
);
foreach ($settings as $name => $value) {{
    define($name, $value);
}}
foreach (array('AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE') as $name) {{
    define("{{$name}}_KEY", "{salt}{{$name}}");
    define("{{$name}}_SALT", "{{$name}}{salt}");
}}
$table_prefix = 'wp_';
require_once ABSPATH . 'wp-settings.php';
"""


def missing() -> str | None:
    """What this machine lacks to run WordPress."""
    absent = [name for name in PROGRAMS if not _program(name)]
    if absent:
        return f"no {', '.join(absent)}: see the marker `wordpress` in CONTRIBUTING.md"
    return None if (SOURCE / "wp-settings.php").is_file() else f"no WordPress in {SOURCE}"


def _program(name: str) -> str | None:
    # Debian has servers where only root looks.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _command(name: str) -> str:
    found = _program(name)
    assert found is not None, name
    return found


@dataclass(frozen=True, kw_only=True)
class WordPress:
    """A running WordPress with both plugins."""

    url: str
    folder: Path
    secret: str

    def php(self, code: str, **given: Any) -> Any:  # noqa: ANN401 - JSON
        """Run PHP inside WordPress, with these variables; gives what it returns."""
        return self.php_as(httpx2.Cookies(), code, **given)

    def php_as(self, person: httpx2.Cookies, code: str, **given: Any) -> Any:  # noqa: ANN401 - JSON
        """The same for the person who is signed in with these cookies."""
        with httpx2.Client(cookies=person, timeout=30, verify=False) as client:
            response = client.post(
                self.url,
                json={"code": code, "given": given or {"_": 0}},
                headers={"X-Backstage": self.secret},
            )
        assert response.status_code == 200, response.text
        return response.json()["returned"]

    def command(self, code: str) -> str:
        """Run `php -r CODE` in the folder of WordPress; gives what it prints."""
        own = {"PATH": os.environ["PATH"], "BACKSTAGE": self.secret}
        host = {"SHOP_HOST": self.url.removeprefix("http://")}
        # The program itself is elsewhere, by links.
        command = [_command("php"), "-r", f"require 'prepend.php'; {code}"]
        done = subprocess.run(
            command, env=own | host, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def complaints(self) -> list[str]:
        """What PHP and WordPress had to say, but for WordPress's own deprecated code."""
        log = self.folder / "debug.log"
        lines = log.read_text().splitlines() if log.exists() else []
        words = ("PHP ", "WordPress database error")
        old = f"in {SOURCE}/"
        return [line for line in lines if any(w in line for w in words) and old not in line]


@contextmanager
def _running_database(folder: Path) -> Iterator[Path]:
    data, socket = folder / "db", folder / "sock"
    # Both refuse to be root unless they are named so.
    person = ["--user=root"] if os.geteuid() == 0 else []
    subprocess.run(
        [
            *(_command("mariadb-install-db"), "--no-defaults", f"--datadir={data}"),
            *(*person, "--auth-root-authentication-method=normal"),
            # `--rpm`: as root it would else change the owner of a helper of the system.
            *("--skip-test-db", "--skip-name-resolve", "--rpm"),
        ],
        check=True,
        capture_output=True,
    )
    command = [
        *(_command("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}"),
        *(*person, f"--pid-file={folder / 'pid'}", "--skip-networking"),
        *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"),
    ]
    log = folder / "database.log"
    with running(command, os.environ, log):
        wait_until(lambda: "ready for connections" in log.read_text(), "the database")
        create = ["--no-defaults", "-u", "root", "-S", str(socket), "-e"]
        query = "CREATE DATABASE wordpress"
        subprocess.run([_command("mariadb"), *create, query], check=True, capture_output=True)
        yield socket


def _make_site(folder: Path, url: str, socket: Path) -> Path:
    """A folder that has WordPress by links, and its own configuration and content."""
    site = folder / "site"
    site.mkdir()
    for path in SOURCE.iterdir():
        if path.name not in _OURS:
            (site / path.name).symlink_to(path)
    config = _CONFIG.format(folder=site, url=url, socket=socket, salt=secrets.token_hex(8))
    (site / "wp-config.php").write_text(config)
    (site / "prepend.php").write_text(f"<?php\ndefine('ABSPATH', '{site}/');\n")
    content = site / "wp-content"
    for name in ("plugins", "mu-plugins", "themes/plain"):
        (content / name).mkdir(parents=True)
    (content / "plugins" / "woocommerce").symlink_to(HERE / "stub")
    # As it is installed from a release.
    packed = pack_plugin(PLUGIN, PLUGIN.parents[1] / "LICENSE", folder, epoch=1_795_000_000)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(content / "plugins")
    (content / "mu-plugins" / "backstage.php").symlink_to(HERE / "backstage.php")
    (content / "themes" / "plain" / "style.css").write_text("/* Theme Name: Plain */\n")
    (content / "themes" / "plain" / "index.php").write_text("<?php echo 'Plain';\n")
    return site


@contextmanager
def running_wordpress(folder: Path) -> Iterator[WordPress]:
    """Install and run WordPress with the plugin and the stand-in for WooCommerce."""
    port, secret = free_port(), secrets.token_hex(16)
    url = f"http://127.0.0.1:{port}"
    with _running_database(folder) as socket:
        site = _make_site(folder, url, socket)
        environment = {
            "PATH": os.environ["PATH"],
            "BACKSTAGE": secret,
            "SHOP_HOST": f"127.0.0.1:{port}",
        }
        php = [_command("php"), "-d", f"auto_prepend_file={site}/prepend.php"]
        php += ["-d", "opcache.enable_cli=1", "-d", "opcache.validate_timestamps=0"]
        installed = subprocess.run(
            [*php, str(HERE / "install.php")],
            env=environment,
            cwd=site,
            capture_output=True,
            text=True,
            check=False,
        )
        assert installed.stdout.endswith("installed"), installed.stdout + installed.stderr
        log = folder / "php.log"
        command = [*php, "-S", f"127.0.0.1:{port}", "-t", str(site)]
        with running(command, environment, log, site):
            wait_until(lambda: "started" in log.read_text(), "PHP's web server")
            yield WordPress(url=url, folder=site, secret=secret)
