"""WordPress with WooCommerce as they are released, unpacked and installed once for each version.

They lie in `../shared/shops` next to the checkout, or are Debian's. The built shops are kept in
`build/shops`, under names with the digests of their sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cli.serving import running, wait_until

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
ARCHIVES: Final = ROOT.parent / "shared" / "shops"
KEPT: Final = ROOT / "build" / "shops"
DEBIAN: Final = Path("/usr/share/wordpress")
PROGRAMS: Final = ("php", "mariadbd", "mariadb-install-db", "mariadb")
EXTENSIONS: Final = ("curl", "mbstring", "mysqli", "xml")
_OURS: Final = {"wp-config.php", "wp-content"}
_CONFIG: Final = """<?php
$settings = array(
    'DB_NAME' => 'wordpress', 'DB_USER' => 'root', 'DB_PASSWORD' => '',
    'DB_HOST' => 'localhost:{socket}', 'DB_CHARSET' => 'utf8mb4', 'DB_COLLATE' => '',
    'WP_HTTP_BLOCK_EXTERNAL' => true, 'WP_ACCESSIBLE_HOSTS' => '127.0.0.1',
    'DISABLE_WP_CRON' => true, 'AUTOMATIC_UPDATER_DISABLED' => true,
    // Application passwords are for HTTPS, and for machines like this one.
    'WP_ENVIRONMENT_TYPE' => 'local', 'WP_DEBUG' => true, 'SCRIPT_DEBUG' => false,
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


@dataclass(frozen=True)
class Release:
    """A WooCommerce and the WordPress that it runs in; an empty WordPress is Debian's."""

    woocommerce: str
    wordpress: str
    theme: str

    @property
    def archives(self) -> list[str]:
        """The files in ARCHIVES."""
        names = [f"woocommerce-{self.woocommerce}"]
        return names + ([f"wordpress-{self.wordpress}"] if self.wordpress else [])


NEW: Final = Release("10.0.2", "6.8", "twentytwentyfive")
OLD: Final = Release("7.2.3", "", "plain")
RELEASES: Final = {release.woocommerce: release for release in (NEW, OLD)}
SUBSCRIPTIONS: Final = "woocommerce-subscriptions-core-7.6.0"


def program(name: str) -> str | None:
    # Debian has servers where only root looks.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def command(name: str) -> str:
    found = program(name)
    assert found is not None, name
    return found


def missing() -> str | None:
    """The missing requirements for a shop."""
    absent = [name for name in PROGRAMS if not program(name)]
    if not absent:
        loaded = subprocess.run(["php", "-m"], capture_output=True, text=True, check=False).stdout
        absent = [f"PHP's {name}" for name in EXTENSIONS if name not in loaded.split()]
    if absent:
        return f"no {', '.join(absent)}: see the marker `shops` in CONTRIBUTING.md"
    if not (DEBIAN / "wp-settings.php").is_file():
        return f"no WordPress in {DEBIAN}"
    found = (ARCHIVES / "README.md").is_file()
    return None if found else "no shops: ../shared/shops is not beside the checkout"


@dataclass(frozen=True)
class Prepared:
    """A release on this machine, and the database of a shop that was installed with it."""

    release: Release
    wordpress: Path
    woocommerce: Path
    database: Path

    def copy_database(self, folder: Path) -> None:
        shutil.copytree(self.database, folder)


def prepared(release: Release) -> Prepared:
    """Unpack and install missing shops; another process may do the same."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = {name.partition("-")[0]: _unpacked(name) for name in release.archives}
        sources.setdefault("wordpress", DEBIAN)
        made = hashlib.sha256((sources["wordpress"] / "wp-includes/version.php").read_bytes())
        for path in (Path(__file__), HERE / "install.php", HERE / "backstage.php"):
            made.update(path.read_bytes())
        name = f"{sources['woocommerce'].name}-database-{made.hexdigest()[:12]}"
        database = _kept(
            name,
            lambda empty: _install(
                Prepared(release, sources["wordpress"], sources["woocommerce"], empty)
            ),
        )
    return Prepared(release, sources["wordpress"], sources["woocommerce"], database)


def _kept(name: str, make: Callable[[Path], None]) -> Path:
    """The directory of this name, made completely or not at all."""
    place = KEPT / name
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            unfinished = Path(folder) / "made"
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(place)
    return place


def _unpacked(name: str) -> Path:
    archive = ARCHIVES / f"{name}.tar.xz"
    named = re.search(rf"^([0-9a-f]{{64}})  {archive.name}$", _readme(), re.MULTILINE)
    assert named is not None, archive

    def unpack(folder: Path) -> None:
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == named[1], archive
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        # A case-insensitive mirror lost one of two names.
        cache = folder / "src" / "Caching" / "WpCacheEngine.php"
        if cache.is_file() and not cache.with_name("WPCacheEngine.php").exists():
            shutil.copyfile(cache, cache.with_name("WPCacheEngine.php"))

    return _kept(f"{name}-{named[1][:12]}", unpack)


def subscriptions() -> Path | None:
    """Where WooCommerce Subscriptions' library is: its checkout, or unpacked; else None."""
    if given := os.environ.get("COUNTERSIGN_TESTS_SUBSCRIPTIONS"):
        return Path(given)
    return _unpacked(SUBSCRIPTIONS) if (ARCHIVES / f"{SUBSCRIPTIONS}.tar.xz").is_file() else None


def _readme() -> str:
    return (ARCHIVES / "README.md").read_text(encoding="utf-8")


@contextmanager
def running_database(data: Path, folder: Path) -> Iterator[Path]:
    """Run MariaDB with this data; gives its socket."""
    socket, log = folder / "sock", folder / "database.log"
    line = [
        *(command("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}"),
        *(*_as_root(), f"--pid-file={folder / 'pid'}", "--skip-networking", f"--tmpdir={folder}"),
        # A crash of the server alone loses no commit.
        *("--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"),
        *("--innodb-log-file-size=8M", "--skip-name-resolve", "--performance-schema=0"),
    ]
    stopping = threading.Event()
    with ExitStack() as started:
        process = started.enter_context(running(line, os.environ, log))

        def supervise() -> None:
            """Restart after a crash, as systemd does: MariaDB 10.11 segfaults now and then.

            In `ha_maria::drop_table`, after a temporary table for SHOW COLUMNS could not be made.
            """
            nonlocal process
            while process.wait() < 0 and not stopping.is_set():
                process = started.enter_context(running(line, os.environ, log))

        wait_until(lambda: "ready for connections" in log.read_text(), "the database")
        threading.Thread(target=supervise, daemon=True).start()
        try:
            yield socket
        finally:
            stopping.set()
        # A kept one has to be complete.
        process.terminate()
        assert process.wait(30) == 0


def _as_root() -> list[str]:
    # Both refuse to be root unless they are named so.
    return ["--user=root"] if os.geteuid() == 0 else []


def _install(shop: Prepared) -> None:
    subprocess.run(
        [
            *(command("mariadb-install-db"), "--no-defaults", f"--datadir={shop.database}"),
            *(*_as_root(), "--auth-root-authentication-method=normal"),
            # `--rpm`: as root it would else change the owner of a helper of the system.
            *("--skip-test-db", "--skip-name-resolve", "--rpm", "--innodb-log-file-size=8M"),
        ],
        check=True,
        capture_output=True,
    )
    with (
        tempfile.TemporaryDirectory() as name,
        running_database(shop.database, Path(name)) as socket,
    ):
        folder = Path(name)
        create = [
            "--no-defaults",
            "-u",
            "root",
            "-S",
            str(socket),
            "-e",
            "CREATE DATABASE wordpress",
        ]
        subprocess.run([command("mariadb"), *create], check=True, capture_output=True)
        site = make_site(shop, folder, "http://127.0.0.1", socket, "salt")
        for step in ("wordpress", "woocommerce", "settings"):
            php = [command("php"), "-d", f"auto_prepend_file={site}/prepend.php"]
            done = subprocess.run(
                [*php, str(HERE / "install.php"), step, shop.release.theme],
                env={"PATH": os.environ["PATH"], "BACKSTAGE": name},
                cwd=site,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout.endswith("installed"), done.stdout + done.stderr


def make_site(shop: Prepared, folder: Path, url: str, socket: Path, salt: str) -> Path:
    """A folder that has WordPress by links, and its own configuration and content."""
    site = folder / "site"
    site.mkdir()
    for path in shop.wordpress.iterdir():
        if path.name not in _OURS:
            (site / path.name).symlink_to(path)
    config = _CONFIG.format(folder=site, url=url, socket=socket, salt=salt)
    (site / "wp-config.php").write_text(config)
    (site / "prepend.php").write_text(f"<?php\ndefine('ABSPATH', '{site}/');\n")
    content = site / "wp-content"
    for name in ("plugins", "mu-plugins", "themes", "uploads"):
        (content / name).mkdir(parents=True)
    (content / "plugins" / "woocommerce").symlink_to(shop.woocommerce)
    (content / "mu-plugins" / "backstage.php").symlink_to(HERE / "backstage.php")
    (content / "themes" / "plain").symlink_to(HERE / "plain")
    if shop.wordpress != DEBIAN:
        theme = Path("themes") / shop.release.theme
        (content / theme).symlink_to(shop.wordpress / "wp-content" / theme)
    return site
