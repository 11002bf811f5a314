"""Readers of evidence stay small whatever the file is."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.offline import builder

MEMORY_MAX = 256 * 1024 * 1024
DOSSIER_MAX = 16_000_000
# The peak of the process itself, in KiB on Linux; the program's outcome must not matter.
MEASURE = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    if sys.argv[0] == "countersign":
        runpy.run_module("countersign", run_name="__main__")
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    sys.stderr.write(f"status {end.code}\\n")
with open("/proc/self/status") as status:  # getrusage counts what stood here before exec, too
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
sys.stderr.write(f"peak {int(peak) * 1024}\\n")
"""


def overlapping() -> bytes:
    """A ZIP file whose directory names the same 15 MB as the content of each of 64 files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("0", bytes(DOSSIER_MAX - 100_000))
        for number in range(1, 64):
            archive.filelist.append(_renamed(archive.filelist[0], str(number)))
    return target.getvalue()


def _renamed(entry: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    other = zipfile.ZipInfo(name, entry.date_time)
    for of in ("CRC", "compress_size", "file_size", "header_offset", "external_attr"):
        setattr(other, of, getattr(entry, of))
    return other


def of_many_names() -> bytes:
    """A ZIP file of nothing but empty files."""
    header = b"PK\x03\x04" + bytes(22) + b"\x01\x00\x00\x00"
    return b"".join(header + bytes([33 + n % 90]) for n in range(DOSSIER_MAX // 31))


def of_many_values() -> bytes:
    """A dossier whose disclosures.json is millions of strings."""
    return builder.with_file(builder.DISCLOSURES, b"[" + b'"ab",' * 2_900_000 + b'"ab"]')


def of_a_hostile_stamp() -> bytes:
    """A dossier with a time-stamp of millions of empty values, without an end."""
    return builder.stamped(b"\x30\x80" + b"\x05\x00" * 400_000).dossier()


@pytest.mark.parametrize(
    ("reader", "make"),
    [
        ("script", overlapping),
        ("script", of_many_names),
        ("script", of_many_values),
        ("script", of_a_hostile_stamp),
        ("command", overlapping),
        ("command", of_many_values),
    ],
)
def test_no_file_takes_much_memory(
    make: Callable[[], bytes], reader: str, script: Path, tmp_path: Path
) -> None:
    """A hostile dossier of 16 MB fails, within 256 MB."""
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(make())
    program = [str(script)] if reader == "script" else ["countersign", "verify"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *program, dossier],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert "status 1\n" in done.stderr, done.stderr[-500:]
    assert done.stdout.splitlines()[-1].startswith("FAILED at step ")
    assert int(done.stderr.rpartition("peak ")[2]) < MEMORY_MAX


def test_a_folder_of_large_files_is_not_read_whole(script: Path, tmp_path: Path) -> None:
    """Together they may be no larger than a dossier; files outside of SHA256SUMS are not read."""
    files = builder.summed(builder.material().files())
    listed = "".join(f"{'0' * 64}  timestamps/{number}.tsr\n" for number in range(60))
    builder.unpacked({**files, "SHA256SUMS": files["SHA256SUMS"] + listed.encode()}, tmp_path)
    stamps = tmp_path / "timestamps"
    stamps.mkdir()
    for number in range(60):
        for name in (f"{number}.tsr", f"{number}.txt"):
            with (stamps / name).open("wb") as file:
                file.truncate(DOSSIER_MAX)
    for program in ([str(script)], ["countersign", "verify"]):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *program, tmp_path],
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        assert done.stdout.splitlines()[-1].startswith("FAILED at step 1 (container)")
        assert int(done.stderr.rpartition("peak ")[2]) < MEMORY_MAX
