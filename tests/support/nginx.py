"""A real nginx with the file of `deploy/`, as an operator would run it."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Final

from tests.cli.serving import running, wait_until
from tests.support.service import free_port

PROGRAM: Final = shutil.which(
    "nginx", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
)
DEPLOYED: Final = Path(__file__).parents[2] / "deploy" / "nginx.conf"


def by_tls(port: int) -> Callable[[], HTTPConnection]:
    """How to connect to a proxy, without asking who signed its certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return lambda: HTTPSConnection("127.0.0.1", port, timeout=30, context=context)


def written(place: Path, port: int) -> tuple[Path, int]:
    """Write the files that nginx's packages bring, including this one; and a certificate.

    Only machine-dependent parts differ: the ports, the certificate; and the server behind it drains
    for one second instead of five.
    """
    place.mkdir()
    front = free_port()
    made = ("-newkey", "ed25519", "-nodes", "-subj", "/CN=countersign.example.com")
    files = ("-keyout", str(place / "key"), "-out", str(place / "cert"))
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    text = DEPLOYED.read_text(encoding="utf-8")
    for there, here in (
        ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
        ("listen 443 ssl", f"listen 127.0.0.1:{front} ssl"),
        ("127.0.0.1:8080", f"127.0.0.1:{port}"),
        ("keepalive_timeout 4s;", "keepalive_timeout 800ms;"),
        ("/etc/letsencrypt/live/countersign.example.com/fullchain.pem", str(place / "cert")),
        ("/etc/letsencrypt/live/countersign.example.com/privkey.pem", str(place / "key")),
    ):
        assert text.count(there) == 1, there
        text = text.replace(there, here)
    (place / "countersign.conf").write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {place}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = place / "main.conf"
    main.write_text(
        f"daemon off; pid {place}/pid; error_log {place}/error.log; worker_processes 2;\n"
        f"events {{}}\nhttp {{ access_log {place}/access.log;\n{temporary}"
        f"include {place}/countersign.conf; }}\n"
    )
    return main, front


@contextmanager
def nginx(place: Path, port: int) -> Iterator[int]:
    """Run it in front of a server; gives the port of its TLS."""
    main, front = written(place, port)
    assert PROGRAM is not None
    with running([PROGRAM, "-p", str(place), "-c", str(main)], {}, place / "said") as process:

        def answers() -> bool:
            assert process.poll() is None, (place / "said").read_text()
            connection = by_tls(front)()
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            except OSError:
                return False
            finally:
                connection.close()

        wait_until(answers, "nginx in front")
        yield front
        process.terminate()  # its children end with it
        process.wait(20)
