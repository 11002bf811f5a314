"""docs/on-call.md, walked: each state is made, looked at, cured as the page says, and looked at.

`python -m tests.drills.on_call [WORD …]` prints the verdicts, of the states with these words.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, TypeAlias, TypeVar

import httpx2

from tests.docs.markdown import ROOT, read
from tests.drills.test_promises import ALERTS, Owing
from tests.http.calls import SHIPPED_NOTICE, initials
from tests.support import postgres

SECTIONS: Final = (
    *("The server", "Files and keys", "Disks", "The embedded database", "PostgreSQL"),
    *("Logs, heads, clock", "Other parties", "Daily work"),
)
_CODE: Final = re.compile(r"`([a-z_]+\.[a-z_]+)`")
_ALERT: Final = re.compile(r"`(Countersign\w+)`")
_READY: Final = re.compile(r"`/readyz`:? (?:`(\w+)`|(\d{3})|(no answer))")
_COMMAND: Final = re.compile(r"`((?:countersign|chmod|chown|ALTER|SELECT|ROLLBACK) [^`]+)`")
_SERIES: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_FIRES: Final = re.compile(r'alertname=\\*"(\w+)')
_GROWS: Final = ("_total", "_bucket", "_count", "_sum")
_OWN: Final = 'instance="a:9", job="countersign"'
_MACHINES: Final = re.compile(
    r"limits\.|disk\.low|data_directory\.volatile|durability\.unsafe|durability\.lossy"
    r"|damage\.no_checksums"
)
"""What this machine, or its PostgreSQL without fsync, has in any case."""
READY: Final = "ready"
_SETTLES_SECONDS: Final = 15.0
T = TypeVar("T")


class Row(NamedTuple):
    """A row of the page."""

    state: str
    symptom: str
    said_by: str
    cause: str
    cure: str

    @property
    def ready(self) -> str:
        """What `/readyz` says: a status, the state of sealing, or nothing."""
        found = _READY.search(self.symptom)
        return next(filter(None, found.groups())) if found else READY

    @property
    def codes(self) -> set[str]:
        """The findings of the doctor."""
        return set(_CODE.findall(self.said_by))

    @property
    def alerts(self) -> set[str]:
        """The rules that fire."""
        return set(_ALERT.findall(self.said_by))

    @property
    def commands(self) -> list[str]:
        """What to run, with words in capitals to fill in."""
        return _COMMAND.findall(self.cure)


def rows() -> dict[str, Row]:
    """The page, by state."""
    page = read(ROOT / "docs" / "on-call.md")
    found = [Row(*cells) for name in SECTIONS for cells in page.rows(f"### {name}")]
    assert len({row.state for row in found}) == len(found)
    return {row.state: row for row in found}


class Broken(Owing):
    """A deployment that is broken and cured by a row of the page."""

    def __init__(self, folder: Path, row: Row, **settings: str) -> None:
        super().__init__(folder, **{"RATE_LIMIT": "off"} | settings)
        self.row = row
        self.before: dict[tuple[str, str], float] = {}
        self.initials: list[str] = []
        self.accepted: set[str] = set()
        """Checks whose findings belong to the sample, not to the state."""

    def cure(self, number: int = 0, **values: object) -> None:
        """Run a command of the row: the first one, or another."""
        words = shlex.split(self.command(number, **values))
        if words[0] == "countersign":
            self.run(*words[1:])
        else:
            subprocess.run(words, check=True)

    def command(self, number: int = 0, **values: object) -> str:
        """A command of the row, filled in."""
        text = self.row.commands[number]
        for name, value in values.items():
            assert re.search(rf"\b{name}\b", text), text
            text = re.sub(rf"\b{name}\b", str(value), text)
        return text

    @property
    def data(self) -> Path:
        return self.site.data_dir

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.site.start()
        with self.vendor() as vendor:
            self.initials = initials(vendor)

    def is_refused(self) -> bool:
        """Whether an acknowledgment is refused as one that cannot be stored."""
        body = {"initials_per_line": self.initials, "session_id": "cart-2"}
        with suppress(httpx2.TransportError), self.vendor() as vendor:
            path = f"/v1/notices/{SHIPPED_NOTICE}/acknowledge"
            # The server waits up to ten seconds; the client's own five are those of a lock.
            answer = vendor.post(path, json=body, timeout=15)
            return answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE
        return False

    def ready(self) -> str:
        """What `/readyz` says."""
        try:
            answer = httpx2.get(f"{self.site.url}/readyz", timeout=3, verify=False)
        except httpx2.TransportError:
            return "no answer"
        if answer.status_code != httpx2.codes.OK:
            return str(answer.status_code)
        sealing: str = answer.json()["checks"]["sealing"]
        return READY if sealing == "ok" else sealing

    def codes(self) -> set[str]:
        """What the doctor says is not fine."""
        said = json.loads(self.run("doctor", "--seconds=20", "--json", check=False))
        lines = [x for x in said["lines"] if x["check"] not in self.accepted]
        wrong = {x["code"] for x in lines if x["severity"] in {"warning", "broken"}}
        return {code for code in wrong if not _MACHINES.match(code)} | (wrong & self.row.codes)

    def metrics(self) -> dict[tuple[str, str], float]:
        """All that the server shows now; empty without one."""
        port = self.site.settings["METRICS_PORT"]
        try:
            text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=3, verify=False).text
        except httpx2.TransportError:
            return {}
        return {(name, labels): float(value) for name, labels, value in _SERIES.findall(text)}

    def firing(self) -> set[str]:
        """The rules that fire if what was scraped goes on like this."""
        now = self.metrics()
        series = {f"up{{{_OWN}}}": f"{int(bool(now))}+0x30"}
        for (name, labels), value in now.items():
            before = self.before.get((name, labels), 0.0 if self.before else value)
            begun, growth = (before, value - before) if name.endswith(_GROWS) else (value, 0.0)
            own = f"{labels}, {_OWN}" if labels else _OWN
            if value == value:  # noqa: PLR0124 - no NaN
                series[f"{name}{{{own}}}"] = f"{begun:.6f}{growth:+.6f}x30"
        asked = {
            "interval": "1m",
            "input_series": [{"series": name, "values": of} for name, of in series.items()],
            "promql_expr_test": [
                {"expr": 'ALERTS{alertstate="firing"}', "eval_time": "20m", "exp_samples": []}
            ],
        }
        file = self.folder / "rules.yaml"
        file.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": [asked]}))
        words = ["promtool", "test", "rules", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        fires = set(_FIRES.findall(done.stdout + done.stderr))
        assert bool(fires) == bool(done.returncode), done.stdout + done.stderr
        return fires


class Ground:
    """Where deployments are made, for one state."""

    def __init__(self, folder: Path, row: Row, stack: ExitStack) -> None:
        self.folder = folder
        self.row = row
        self.stack = stack

    def made(self, **settings: str) -> Broken:
        """A deployment without a server; it is ended with the state."""
        made = Broken(self.folder, self.row, **settings)
        self.stack.callback(made.site.end)
        return made

    def started(self, **settings: str) -> Broken:
        """The same with a server."""
        made = self.made(**settings)
        made.start()
        return made

    def postgres(self, **settings: str) -> tuple[postgres.PostgresServer, Broken]:
        """A PostgreSQL of its own, and a deployment with a server."""
        options = {"fsync": "off", "full_page_writes": "off"}
        server = self.stack.enter_context(postgres.running_postgres(options))
        return server, self.started(DATABASE_URL=postgres.fresh_database(server), **settings)


State: TypeAlias = Callable[[Ground], Iterator[Broken]]
"""Gives the deployment three times: well, broken, and well again."""


class Verdict(NamedTuple):
    """Of a state: what each says, compared with the page; `nothing`: both are silent."""

    doctor: str
    readyz: str
    metric: str
    alert: str
    page: str
    seconds: str
    """Until `/readyz` said it, and until the doctor, which was asked afterwards, had said it."""
    details: str

    @property
    def is_wrong(self) -> bool:
        return "wrong" in self


def judged(state: State, row: Row, folder: Path) -> Verdict:
    """Make the state, look, cure it, and look again."""
    with ExitStack() as stack:
        making = state(Ground(folder, row, stack))
        stack.callback(making.close)  # type: ignore[attr-defined]
        made = next(making)
        made.before = made.metrics()
        next(making)
        begun = time.monotonic()
        ready = _settled(made.ready, lambda found: found == row.ready)
        readied = time.monotonic()
        codes = _settled(made.codes, lambda found: found == row.codes)
        told = time.monotonic()
        fires = _settled(made.firing, lambda found: found >= row.alerts)
        next(making)
        well = _settled(made.ready, lambda found: found == READY)
        left = _settled(made.codes, lambda found: not found)
        made.before = made.metrics()
        still = _settled(made.firing, lambda found: not found & row.alerts)
        next(making, None)
    alert = _verdict(row.alerts, fires >= row.alerts)
    cured = well == READY and not left and not still & row.alerts
    return Verdict(
        doctor=_verdict(row.codes, codes == row.codes),
        readyz="right" if ready == row.ready else "wrong",
        metric=alert,
        alert=alert,
        page="right" if cured else "wrong",
        seconds=f"{readied - begun:.1f} {told - readied:.1f}",
        details=f"{ready}; {sorted(codes)}; {sorted(fires)} -> {well}; {sorted(left)}; "
        f"{sorted(still)}",
    )


def _verdict(said: set[str], is_so: bool) -> str:
    return "wrong" if not is_so else "right" if said else "nothing"


def _settled(look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """The first look that is so; the last one if none is."""
    found, until = look(), time.monotonic() + _SETTLES_SECONDS
    while not is_so(found) and time.monotonic() < until:
        time.sleep(0.1)
        found = look()
    return found


def main(words: list[str]) -> None:
    """Print the table of verdicts."""
    from tests.drills.states import STATES  # noqa: PLC0415 - it imports this

    page = rows()
    say = partial(print, flush=True)
    say("| State | doctor | /readyz | metric | alert | page | s |\n|---|---|---|---|---|---|---|")
    for name, state in STATES.items():
        if any(word in name for word in words or [""]):
            with TemporaryDirectory(prefix="countersign-on-call-") as folder:
                try:
                    found = judged(state, page[name], Path(folder))
                except Exception as error:  # noqa: BLE001 - the others are judged all the same
                    say(f"| {name} | {type(error).__name__}: {error!s:.500} |")
                    continue
            say(f"| {name} | {' | '.join(found[:6])} |")
            if found.is_wrong:
                say(f"    {found.details}")


if __name__ == "__main__":
    main(sys.argv[1:])
