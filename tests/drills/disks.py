"""Small real file systems: only root can mount them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS: Final = ("mkfs.ext4", "mount", "umount", "losetup")


def missing() -> str | None:
    """The missing requirement for mounting one; None: nothing."""
    if os.geteuid() != 0:
        return "no root, which mounts file systems"
    found = {name: shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") for name in PROGRAMS}
    absent = [name for name, path in found.items() if path is None]
    if absent:
        return f"no {', '.join(absent)}"
    if not Path("/dev/loop-control").exists():
        return "no loop devices, so no file system in a file"
    return None


def _run(*words: str | Path) -> str:
    done = subprocess.run(
        [*map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"},
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Disk:
    """An ext4 file system in a file, mounted."""

    image: Path
    place: Path

    def mount(self) -> None:
        """Mount it, as at a start of the machine."""
        _run("mount", "-o", "loop,errors=remount-ro", self.image, self.place)

    def unmount(self) -> None:
        """Take it away; no process may use it."""
        _run("umount", self.place)

    def break_off(self) -> None:
        """Have the kernel find an error in it: from now on it can only be read."""
        device = _run("losetup", "-j", self.image).partition(":")[0].rpartition("/")[2]
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("1", encoding="ascii")

    @property
    def free(self) -> int:
        """Bytes."""
        return shutil.disk_usage(self.place).free

    def fill(self) -> Path:
        """Leave no space; gives the file that takes it."""
        file = self.place / "of-another-program"
        with file.open("wb") as filler:
            for size in (self.free, 65536, 4096):
                try:
                    while True:
                        os.posix_fallocate(filler.fileno(), filler.seek(0, 2), size)
                        filler.seek(0, 2)
                except OSError:
                    continue
        return file


@contextmanager
def disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Make one, for the length of the block."""
    made = Disk(folder / "disk.img", folder / "disk")
    made.place.mkdir()
    with made.image.open("wb") as image:
        image.truncate(megabytes * 2**20)
    # No journal of 64 MB, and nothing kept for root alone.
    _run("mkfs.ext4", "-q", "-m", "0", "-J", "size=4", made.image)
    made.mount()
    try:
        yield made
    finally:
        if os.path.ismount(made.place):
            _run("umount", "--lazy", made.place)
