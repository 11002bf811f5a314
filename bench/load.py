"""The load generator: wrk, one thread, driven by ``requests.lua``."""

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.errors import BenchError
from bench.plan import UNIQUE, Call, Endpoint, Operation
from bench.processes import Child

SCRIPT: Final = Path(__file__).with_name("requests.lua")
MARK: Final = "BENCH "
WARM_UP_SECONDS: Final = 1
# Work after the last response is attributed to the measured server, not to the next one.
SETTLE_SECONDS: Final = 0.5
TIMEOUT_SECONDS: Final = 10
GRACE_SECONDS: Final = 30
INSTALL_SECONDS: Final = 300
HOW_TO_INSTALL: Final = (
    "The load generator wrk is not on this machine. Install the package `wrk` "
    "(Debian, Ubuntu: `sudo apt-get install wrk`; macOS: `brew install wrk`), then run this again."
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The results of one run of the load generator."""

    requests: int
    seconds: float
    per_second: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    cpu_us: float
    """Processor time of the measured processes for each request; 0 if none were."""
    loop_us: float
    """That of the server's event loops alone: a process has one, which bounds its rate."""


def ensure_wrk() -> Path:
    """Find wrk; as root on a Debian-like system install it, elsewhere say what to install."""
    found = shutil.which("wrk")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = shutil.which("wrk")
    if found is None:
        raise BenchError(HOW_TO_INSTALL)
    return Path(found)


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    installer = shutil.which("apt-get") or "apt-get"
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "wrk"]):
        try:
            subprocess.run(
                [installer, "--quiet", *arguments],
                env=environment,
                check=True,
                capture_output=True,
                timeout=INSTALL_SECONDS,
            )
        except (subprocess.SubprocessError, OSError) as error:
            message = f"{HOW_TO_INSTALL} (Installing it failed: {error})"
            raise BenchError(message) from error


@dataclass(frozen=True, slots=True)
class Load:
    """How hard and how long a server is loaded."""

    connections: int
    seconds: int


def measure(
    wrk: Path,
    endpoint: Endpoint,
    operation: Operation,
    load: Load,
    processes: Sequence[Child] = (),
) -> Measurement:
    """Load a server with one operation; every answer other than a success is a failure.

    `processes` are the server's; their CPU time covers the load and the half-second afterwards in
    which they finish their work.
    """
    with TemporaryDirectory(prefix="bench-calls-") as folder:
        calls = Path(folder) / "calls"
        _write(calls, operation.calls(endpoint))
        environment = {
            **os.environ,
            "BENCH_METHOD": operation.method,
            "BENCH_KEY": endpoint.key,
            "BENCH_CALLS": str(calls),
            "BENCH_UNIQUE": UNIQUE,
            # This and the number, of eight digits, are the unique part of a request.
            "BENCH_RUN": secrets.token_hex(7),
        }
        before = _taken(processes)
        output = _run(wrk, endpoint.port, load, environment)
        if processes:
            time.sleep(SETTLE_SECONDS)
        all_threads, loops = (b - a for a, b in zip(before, _taken(processes), strict=True))
        return _read(output, operation, all_threads, loops)


def measure_warm(
    wrk: Path,
    endpoint: Endpoint,
    operation: Operation,
    load: Load,
    processes: Sequence[Child] = (),
) -> Measurement:
    """Measure after a warm-up of the same kind, which is not counted."""
    measure(wrk, endpoint, operation, Load(load.connections, WARM_UP_SECONDS), processes)
    return measure(wrk, endpoint, operation, load, processes)


def _taken(processes: Sequence[Child]) -> tuple[float, float]:
    """Seconds of the processor: of all processes, and of the event loops of the first."""
    loops = processes[0].loop_seconds() if processes else 0.0
    return sum(child.cpu_seconds() for child in processes), loops


def _write(path: Path, calls: Sequence[Call]) -> None:
    path.write_text("".join(f"{call.path}\t{call.body}\n" for call in calls))


def _run(wrk: Path, port: int, load: Load, environment: Mapping[str, str]) -> str:
    command = [str(wrk), "--threads", "1", "--connections", str(load.connections)]
    command += ["--duration", f"{load.seconds}s", "--timeout", f"{TIMEOUT_SECONDS}s", "--latency"]
    command += ["--script", str(SCRIPT), f"http://127.0.0.1:{port}"]
    try:
        done = subprocess.run(
            command,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=load.seconds + TIMEOUT_SECONDS + GRACE_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        message = f"wrk failed: {error.stderr.strip() or error.stdout.strip()}"
        raise BenchError(message) from error
    except subprocess.TimeoutExpired as error:
        message = f"wrk did not end within {error.timeout:.0f} seconds"
        raise BenchError(message) from error
    return done.stdout


def _read(output: str, operation: Operation, cpu_seconds: float, loops: float) -> Measurement:
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        message = f"wrk wrote no result:\n{output}"
        raise BenchError(message)
    found = json.loads(lines[0].removeprefix(MARK))
    bad = {kind: found.pop(kind) for kind in ("not_2xx", "socket_errors", "timeouts")}
    if any(bad.values()):
        counts = ", ".join(f"{kind} {count}" for kind, count in bad.items())
        message = f"{operation.name}: of {found['requests']} answers: {counts}"
        raise BenchError(message)
    if not found["requests"]:
        message = f"{operation.name}: no request was answered"
        raise BenchError(message)
    return Measurement(
        per_second=found["requests"] / found["seconds"],
        cpu_us=1e6 * cpu_seconds / found["requests"],
        loop_us=1e6 * loops / found["requests"],
        **found,
    )
