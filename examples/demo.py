"""Start Countersign and a shop of this folder: `make demo`, `demo-oscar`, `demo-node`.

Ctrl-C ends both. The database is in ./var, in a folder with the name of the command. Each start
makes a new test key, which works for a day.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ACCOUNT = "Ridgeline Workshop"
PEOPLE = (
    ("Cora", "compliance", "staff"),
    ("Devi", "developer", "members", "--account", ACCOUNT),
)
"""The people invited to the console: name, role and place."""
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 20
COMMAND = [sys.executable, "-m", "countersign"]


class DemoError(Exception):
    """The demonstration cannot continue; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Shop:
    """One of the shops: its data, its command, its webhooks."""

    data: str
    command: tuple[str, ...]
    webhooks: str
    event_types: tuple[str, ...] | None = None
    """The events that it wants; None: all."""
    notices: tuple[Path, ...] = ()
    """More notices, for the products that the shop sells with them."""


_HERE = Path(__file__).parent
SHOPS = {
    "storefront": Shop(
        data="demo",
        command=(
            sys.executable,
            str(_HERE / "storefront" / "shop.py"),
        ),
        webhooks="/webhooks",
        event_types=tuple(
            f"checkout_session.{end}" for end in ("completed", "declined", "expired")
        ),
        notices=(
            _HERE / "storefront" / "invented_notice.toml",
            _HERE / "notices" / "ca-bpc-17500-6-2025-01-01.toml",
        ),
    ),
    "oscar": Shop(
        data="demo-oscar",
        command=(sys.executable, str(_HERE / "oscar-shop" / "manage.py"), "open_shop"),
        webhooks="/countersign/webhook/",
    ),
    "node": Shop(
        data="demo-node",
        command=("node", str(_HERE / "node-shop" / "shop.mjs")),
        webhooks="/webhooks",
    ),
}


def main(wanted: Shop) -> int:
    """Run until Ctrl-C or until one of the two ends; gives the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    port = os.environ.get("COUNTERSIGN_PORT") or "8080"
    shop_port = os.environ.get("SHOP_PORT") or "8000"
    data = Path("var", wanted.data).resolve()
    running: list[subprocess.Popen[bytes]] = []
    # Settings of another deployment must not lead the demonstration there.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERSIGN_")}
    # Browsers make passkeys for localhost, and for no address in numbers.
    base_url = f"http://localhost:{port}"
    service = clean | {
        "COUNTERSIGN_DATA_DIR": str(data),
        "COUNTERSIGN_CONSOLE": "true",
        "COUNTERSIGN_PORT": port,
        "COUNTERSIGN_PUBLIC_URL": base_url,
        # The shop's webhooks are on this machine, without https.
        "COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE": "true",
    }
    try:
        _countersign(service, "init")
        for notice in wanted.notices:
            # Never reviewed: no official text has these words.
            _countersign(service, "notices", "publish", str(notice))
        key = _key(service)
        links = [line for who in PEOPLE for line in _invited(service, *who)]
        running.append(_start([*COMMAND, "serve"], service))
        _await(running[0], f"{base_url}/readyz")
        print("\n".join([*links, f"The console, for who came in: {base_url}/console"]), flush=True)
        shop = clean | {
            "COUNTERSIGN_BASE_URL": base_url,
            "COUNTERSIGN_API_KEY": key,
            "SHOP_WEBHOOK_SECRET": _webhooks(
                wanted, f"{base_url}/v1/webhook_endpoints", key, f"http://localhost:{shop_port}"
            ),
            "SHOP_DATA_DIR": str(data / "shop"),
            "SHOP_PORT": shop_port,
            "SHOP_MORE_NOTICES": "yes" if wanted.notices else "",
        }
        running.append(_start([*wanted.command], shop))
        while all(process.poll() is None for process in running):
            time.sleep(0.2)
    except DemoError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        return 0
    finally:
        # The shop first: it asks the service.
        for process in reversed(running):
            process.terminate()
            process.wait(STOP_SECONDS_MAX)
    return 1


def _key(service: dict[str, str]) -> str:
    """A test key for the account of the shop, which the first start makes."""
    create = ("keys", "create", "--account", ACCOUNT, "--mode", "test", "--expires-in", "24h")
    try:
        return _countersign(service, *create)
    except DemoError:
        _countersign(service, "accounts", "create", ACCOUNT)
        _countersign(service, "accounts", "brand", ACCOUNT, "--color", "#2f5d46")
        return _countersign(service, *create)


def _invited(service: dict[str, str], name: str, role: str, *where: str) -> list[str]:
    """The line with a person's invitation link; none for a person who was invited before."""
    place, *account = where
    try:
        said = _countersign(service, place, "invite", name, "--role", role, *account)
    except DemoError as error:
        if "already" in str(error):
            return []
        raise
    return [f"{name} ({role}) makes a passkey and comes in, once: {said}"]


def _webhooks(wanted: Shop, endpoints: str, key: str, shop: str) -> str:
    """Have the events that the shop wants reported to it; gives the secret."""
    for endpoint in _ask("GET", endpoints, key)["data"]:
        _ask("DELETE", f"{endpoints}/{endpoint['endpoint_id']}", key)
    body: dict[str, object] = {"url": shop + wanted.webhooks}
    if wanted.event_types is not None:
        body["event_types"] = wanted.event_types
    return str(_ask("POST", endpoints, key, body)["secret"])


def _ask(method: str, url: str, key: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, headers, method=method), timeout=10) as answer:  # noqa: S310 - the loopback
            return json.load(answer)
    except HTTPError as refusal:
        raise DemoError(f"{method} {url}: {refusal.read().decode()}") from None


def _countersign(service: dict[str, str], *words: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *words], env=service, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise DemoError(f"countersign {' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    # In a session of its own: Ctrl-C ends this program, which then ends the two in their order.
    return subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603


def _await(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - the loopback
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise DemoError("Countersign did not start.")


if __name__ == "__main__":
    sys.exit(main(SHOPS[sys.argv[1] if len(sys.argv) > 1 else "storefront"]))
