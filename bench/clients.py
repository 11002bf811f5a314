"""What the clients add to a call: ``python -m bench.clients``; see ``--help``.

One call after the other on one connection to a server that always returns the same status, in
Python (sync and async) and in Node.js: by the client, and by bare httpx2 or `fetch` that reads the
same JSON. Processor time of the calling process for each call, so that other load matters little.
Then the time that an import takes, and what an installation without anything else weighs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2
import msgspec

from bench.errors import BenchError
from countersign_client import AsyncCountersign, Countersign

ROOT: Final = Path(__file__).parents[1]
NODE: Final = ROOT / "clients" / "typescript"
TURN: Final = 100
"""So many calls by one, then by the other: both meet the same other load."""
PATH: Final = "/v1/buyers/cbid_1/status"
_BODY: Final = (
    b'{"cbid":"cbid_1","status":"verified","verified_at":"2026-11-20T21:31:00Z",'
    b'"expires_at":"2027-11-20T21:31:00Z"}'
)
_RESPONSE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class _Constant(asyncio.Protocol):
    """Answers each request alike; requests come one by one, without a body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        if self._read.endswith(b"\r\n\r\n") and isinstance(self._transport, asyncio.Transport):
            self._read = b""
            self._transport.write(_RESPONSE)


def _serve(port: Any) -> None:  # noqa: ANN401 - one end of a pipe
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Constant, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def sync_calls(url: str, calls: int) -> tuple[float, float]:
    """Microseconds of a call by bare httpx2 and by the client."""
    headers = {"Authorization": "Bearer csign_sk_test_x"}
    with httpx2.Client(headers=headers) as bare, Countersign(api_key="x", base_url=url) as client:
        acts: list[Callable[[], object]] = [
            lambda: msgspec.json.decode(bare.get(url + PATH).content),
            lambda: client.buyers.status("cbid_1"),
        ]
        spent = [0.0, 0.0]
        for number in range(calls // TURN + 1):
            for place, act in enumerate(acts):
                begun = time.process_time()
                for _ in range(TURN):
                    act()
                # The first turn warms up.
                spent[place] += (time.process_time() - begun) if number else 0.0
        return spent[0] / calls * 1e6, spent[1] / calls * 1e6


async def async_calls(url: str, calls: int) -> tuple[float, float]:
    """The same in an event loop."""
    headers = {"Authorization": "Bearer csign_sk_test_x"}
    async with (
        httpx2.AsyncClient(headers=headers) as bare,
        AsyncCountersign(api_key="x", base_url=url) as client,
    ):

        async def by_hand() -> object:
            return msgspec.json.decode((await bare.get(url + PATH)).content)

        acts: list[Callable[[], Awaitable[object]]] = [
            by_hand,
            lambda: client.buyers.status("cbid_1"),
        ]
        spent = [0.0, 0.0]
        for number in range(calls // TURN + 1):
            for place, act in enumerate(acts):
                begun = time.process_time()
                for _ in range(TURN):
                    await act()
                spent[place] += (time.process_time() - begun) if number else 0.0
        return spent[0] / calls * 1e6, spent[1] / calls * 1e6


_PROGRAM: Final = """
const [built, url, path, calls] = process.argv.slice(2);
const { Countersign } = await import(`${built}/index.js`);
const client = new Countersign({ apiKey: "x", baseUrl: url });
const acts = [
  async () => (await fetch(url + path, { headers: { Authorization: "Bearer x" } })).json(),
  () => client.buyers.status("cbid_1"),
];
const found = [0, 0];
for (let turn = -5; turn < calls / 100; turn++) {
  for (const [place, act] of acts.entries()) {
    const begun = process.cpuUsage();
    for (let i = 0; i < 100; i++) await act();
    const { user, system } = process.cpuUsage(begun);
    if (turn >= 0) found[place] += (user + system) / Number(calls);
  }
}
console.log(JSON.stringify(found));
process.exit();
"""


def node_calls(url: str, calls: int, folder: Path) -> tuple[float, float]:
    """The same in Node.js, by `fetch`."""
    built = folder / "dist"
    if not built.exists():
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "program.mjs").write_text(_PROGRAM)
        _run("npm", "exec", "--no", "--", "tsc", "--outDir", str(built), cwd=NODE)
    printed = _run("node", str(folder / "program.mjs"), str(built), url, PATH, str(calls))
    bare, client = json.loads(printed)
    return bare, client


def import_seconds(statement: str) -> float:
    """The processor time that a statement takes in a new interpreter, without its start."""
    program = (
        f"import time; begun = time.process_time(); {statement}; print(time.process_time() - begun)"
    )
    return median(float(_run(sys.executable, "-c", program)) for _ in range(9))


def installed_bytes(folder: Path, extras: str) -> int:
    """What an installation of the client alone weighs, without pip."""
    wheels, place = folder / "wheels", folder / f"environment{extras}"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if not wheels.exists():
        client = str(ROOT / "clients" / "python")
        _run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(wheels), client)
    venv.create(place, with_pip=False)
    (wheel,) = wheels.glob("*.whl")
    _run(*pip, "--python", str(place), "install", "--no-compile", f"{wheel}{extras}")
    packages = next(place.rglob("site-packages"))
    return sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="calls in one round, in hundreds")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}"
    rows: dict[str, list[tuple[float, float]]] = {}
    with TemporaryDirectory(prefix="countersign-bench-") as name:
        folder = Path(name)
        for _ in range(options.rounds):
            rows.setdefault("Python", []).append(sync_calls(url, options.calls))
            rows.setdefault("Python, async", []).append(
                asyncio.run(async_calls(url, options.calls))
            )
            if shutil.which("node"):
                rows.setdefault("Node.js", []).append(node_calls(url, options.calls, folder))
        server.terminate()
        print(f"{'':16}{'bare µs':>10}{'client µs':>11}{'ratio':>8}")
        for what, several in rows.items():
            bare, client = (median(pair[place] for pair in several) for place in (0, 1))
            ratio = median(pair[1] / pair[0] for pair in several)
            print(f"{what:16}{bare:10.0f}{client:11.0f}{ratio:8.2f}")
        for statement in ("import httpx2, msgspec", "import countersign_client"):
            print(f"{statement}: {import_seconds(statement) * 1000:.0f} ms")
        for extras in ("", "[cli]", "[tokens,cli]"):
            size = installed_bytes(folder, extras) / 1e6
            print(f"countersign-client{extras}: {size:.1f} MB installed")


if __name__ == "__main__":
    main()
