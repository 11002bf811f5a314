"""Child processes: started in a group of their own, paused, resumed, and always stopped."""

import os
import pwd
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from bench.errors import BenchError

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05
TAIL_CHARACTERS: Final = 3000


def free_port() -> int:
    """Return a port of the loopback interface that no one listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Holding(NamedTuple):
    """Resources that processes hold at a moment."""

    own_mb: float
    """Memory that no file backs: the processes' own allocations."""
    pss_mb: float
    """All resident memory, a page that several share in parts."""
    handles: int
    """Open files, sockets and the like."""


@dataclass(slots=True)
class Child:
    """A long-running process and its descendants; leaving the context stops them all."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Start the process; its output goes to the log."""
        with self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    self.command,
                    env=dict(self.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    user=self.user,
                    group=_group_of(self.user),
                    extra_groups=None if self.user is None else [],
                )
            except OSError as error:
                message = f"{self.name} cannot be started: {error}"
                raise BenchError(message) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process and whatever it started."""
        self.stop()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        if self._process is None:
            message = f"{self.name} was not started"
            raise BenchError(message)
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait until the process is of use; if it ends before, show its last words."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                message = (
                    f"{self.name} was not ready in {START_SECONDS:.0f} s:\n{self.last_words()}"
                )
                raise BenchError(message)
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raise if the process has ended."""
        if self._process is not None and self._process.poll() is not None:
            message = f"{self.name} ended by itself:\n{self.last_words()}"
            raise BenchError(message)

    def last_words(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-TAIL_CHARACTERS:].strip()

    def pause(self) -> None:
        """Hold the whole group still, so that it takes no time from another server."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the group go on."""
        self._signal_group(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """CPU time of the process and its descendants so far, including ended ones.

        0 where there is no `/proc`.
        """
        return sum(self._family().values()) / os.sysconf("SC_CLK_TCK")

    def loop_seconds(self) -> float:
        """CPU time of the first thread of each of these processes, which runs its event loop."""
        ticks = 0
        for pid in self._family():
            with suppress(OSError):  # it has just ended
                stat = Path("/proc", str(pid), "task", str(pid), "stat").read_text()
                ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def holding(self) -> Holding:
        """Resources held by the process and its descendants; needs Linux's `/proc`."""
        sizes, handles = Counter[str](), 0
        for pid in self._family():
            place = Path("/proc", str(pid))
            try:
                for line in (place / "smaps_rollup").read_text().splitlines()[1:]:
                    name, number, *_ = line.split()
                    sizes[name] += int(number)
                handles += sum(1 for _ in (place / "fd").iterdir())
            except OSError:
                continue  # it has just ended
        return Holding(sizes["Anonymous:"] / 1024, sizes["Pss:"] / 1024, handles)

    def _family(self) -> dict[int, int]:
        """The process and its descendants, with the ticks of the processor that each took."""
        taken, parents = {}, {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = file.read_text().rpartition(")")
            except OSError:
                continue  # it has just ended
            pid, facts = int(name.partition(" ")[0]), rest.split()
            parents[pid], taken[pid] = int(facts[1]), sum(map(int, facts[11:15]))
        family, own = dict[int, int](), {self.pid}
        while own:
            family |= {pid: taken[pid] for pid in own if pid in taken}
            own = {pid for pid, parent in parents.items() if parent in own}
        return family

    def stop(self) -> None:
        """Ask the process to end, then kill the rest of its group."""
        if self._process is None:
            return
        self.resume()
        if self._process.poll() is None:
            self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._signal_group(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return


def _group_of(user: str | None) -> int | None:
    if user is None:
        return None
    return pwd.getpwnam(user).pw_gid


def run(command: Sequence[str], environment: Mapping[str, str], *, user: str | None = None) -> str:
    """Run a command to its end and return its standard output."""
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=START_SECONDS,
            user=user,
            group=_group_of(user),
            extra_groups=None if user is None else [],
        )
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip() or error.stdout.strip())[-TAIL_CHARACTERS:]
        message = f"`{Path(command[0]).name} {' '.join(command[1:3])}` failed:\n{said}"
        raise BenchError(message) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"`{Path(command[0]).name}` cannot be run: {error}"
        raise BenchError(message) from error
    return done.stdout
