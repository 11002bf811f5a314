"""A witness by c2sp.org/tlog-witness, and a local server for several of them."""

from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign_evidence.note import Verifier, open_note, parse_checkpoint
from countersign_evidence.tree import EMPTY_ROOT
from tests.support.merkle import verify_consistency

NAME = "witness.example/w1"


class Witness:
    """A witness by c2sp.org/tlog-witness, written from the specification.

    `at` gives the time that it signs with; while `away`, it answers nothing but 503.
    """

    def __init__(
        self,
        keys: Callable[[], list[Verifier]],
        name: str = NAME,
        at: Callable[[], int] = lambda: int(time.time()),
    ) -> None:
        self._keys = keys
        self._name = name
        self._key = Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())
        self._at = at
        self.verifier = Verifier(name, 4, self._key.public_key().public_bytes_raw())
        self.seen: dict[str, tuple[int, bytes]] = {}
        self.refusals = 0
        self.away = False

    def __call__(self, body: bytes) -> tuple[int, str, bytes]:
        if self.away:
            return 503, "text/plain", b""
        head, _, note = body.partition(b"\n\n")
        first, *lines = head.decode().split("\n")
        text, _ = open_note(note, self._keys())
        checkpoint = parse_checkpoint(text)
        size, root = self.seen.get(checkpoint.origin, (0, EMPTY_ROOT))
        if int(first.removeprefix("old ")) != size:
            self.refusals += 1
            return 409, "text/x.tlog.size", f"{size}\n".encode()
        path = [b64decode(line) for line in lines]
        if size:
            verify_consistency(size, checkpoint.size, path, root, checkpoint.root)
        self.seen[checkpoint.origin] = (checkpoint.size, checkpoint.root)
        return 200, "text/plain", self.cosign(text)

    def cosign(self, text: bytes) -> bytes:
        """The signature line under the text of a checkpoint."""
        now = self._at()
        signature = self._key.sign(f"cosignature/v1\ntime {now}\n".encode() + text)
        encoded = b64encode(self.verifier.key_id + now.to_bytes(8, "big") + signature)
        return f"\u2014 {self._name} {encoded.decode()}\n".encode()


@contextmanager
def served(answer: Callable[[bytes], tuple[int, str, bytes]]) -> Iterator[str]:
    """Serve POST requests on loopback; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, media_type, content = answer(body)
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(what: Callable[[], bool]) -> None:
    """Until it is so; the test's own time-out bounds it."""
    while not what():
        time.sleep(0.02)
