"""A real S3 endpoint on the loopback: moto's server, in a process that can be frozen.

Run as a program, this is that process: it serves on the given port, and closes and opens the port
again when it reads `down` and `up`. Its content stays. It ignores the header whose name it reads,
until it reads `heeding`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, Final
from unittest import mock

import httpx2
import obstore
from obstore.store import ObjectStore as Store
from obstore.store import from_url

from tests.support.service import free_port

BUCKET: Final = "heads"


@dataclass
class ObjectStore:
    """Its address and credentials."""

    port: int
    process: subprocess.Popen[str]
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI-not-to-be-seen",
        }

    def url(self, name: str) -> str:
        """The URL of a place of this name, as the setting has it."""
        return f"s3://{BUCKET}/{name}"

    def objects(self, name: str) -> set[str]:
        """The names of the objects in a place."""
        return {one["path"] for page in obstore.list(self._opened(name)) for one in page}

    def empty(self, name: str) -> None:
        """Lose all objects of a place."""
        obstore.delete(self._opened(name), [*self.objects(name)])

    def put(self, name: str, path: str, content: bytes) -> None:
        """Put an object there, whatever is there."""
        obstore.put(self._opened(name), path, content)

    def delete(self, name: str, path: str) -> None:
        """Delete an object there."""
        obstore.delete(self._opened(name), path)

    @contextmanager
    def ignoring(self, header: str) -> Iterator[None]:
        """Pass over a condition of writes meanwhile, as stores do that do not know it."""
        self._say(header)
        try:
            yield
        finally:
            self._say("heeding")

    @contextmanager
    def down(self) -> Iterator[None]:
        """Refuse connections meanwhile."""
        self._say("down")
        try:
            yield
        finally:
            self._say("up")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Take connections and answer nothing meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _say(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == word + "\n"

    def _opened(self, name: str) -> Store:
        with mock.patch.dict(os.environ, self.environment):
            return from_url(self.url(name), client_options={"allow_http": True})


@contextmanager
def running_store() -> Iterator[ObjectStore]:
    """Run one with an empty bucket."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    store = ObjectStore(port, process)
    try:
        store._say("up")
        made = httpx2.put(f"{store.environment['AWS_ENDPOINT_URL']}/{BUCKET}", verify=False)
        made.raise_for_status()
        yield store
    finally:
        process.kill()
        process.communicate()


def _serve(port: int) -> None:
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import (  # noqa: PLC0415
        BaseWSGIServer,
        WSGIRequestHandler,
        make_server,
    )

    application = DomainDispatcherApplication(create_backend_app)
    one_at_a_time, serving = Lock(), list[BaseWSGIServer]()
    ignored = ""

    def answer(environment: Any, start: Any) -> Any:  # noqa: ANN401 - WSGI
        environment.pop(ignored, None)
        with one_at_a_time:  # S3 compares and writes at once
            return application(environment, start)

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            """Requests are no news."""

    for line in sys.stdin:
        if line == "up\n" and not serving:
            serving.append(
                make_server("127.0.0.1", port, answer, threaded=True, request_handler=Quiet)
            )
            Thread(target=serving[0].serve_forever, daemon=True).start()
        elif line == "down\n" and serving:
            serving[0].shutdown()
            serving.pop().server_close()
        elif line not in {"up\n", "down\n"}:
            ignored = f"HTTP_{line.strip().replace('-', '_').upper()}"
        print(line, end="", flush=True)  # noqa: T201 - it is done


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
