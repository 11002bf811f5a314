"""Walk through Countersign as a checkout does, and print every exchange.

Needs a running server and a test key (`make run` gives both), and nothing but Python:

    python3 examples/quickstart.py --key csign_sk_test_…

The key can also come from COUNTERSIGN_API_KEY, the server's address from --base-url or
COUNTERSIGN_BASE_URL. Ends with status 0 if every response was as expected, and 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

TIMEOUT_SECONDS = 10


class UnexpectedAnswerError(Exception):
    """The server sent an answer that this walk does not expect."""


def main() -> int:
    """Walk through; gives the exit status."""
    arguments = _arguments()
    if not arguments.key:
        print("Give a test key: --key csign_sk_test_…, or COUNTERSIGN_API_KEY.", file=sys.stderr)
        return 1
    service = Service(arguments.base_url, arguments.key)
    try:
        walk(service, arguments.notice)
    except UnexpectedAnswerError as error:
        print(f"\nNot as expected: {error}", file=sys.stderr)
        return 1
    except (KeyError, TypeError) as error:
        print(f"\nNot as expected: the answer has another form: {error!r}", file=sys.stderr)
        return 1
    print("\nAll responses were as expected.")
    return 0


def walk(service: Service, notice_id: str) -> None:
    """Fetch a notice, have it initialed, verify a buyer, and read everything back."""
    print("1. Fetch the notice that is in force. Show every line of it.")
    notice = service.get(f"/v1/notices/{quote(notice_id, safe='')}")
    lines = notice["bullets"]
    expect("whether there are lines to initial", bool(lines), given=True)

    print("2. Verify the buyer. A test key uses the sandbox: no one is checked.")
    verified = service.post(
        "/v1/buyers/verify",
        {
            "provider_identity_session_id": "vs_example",
            "shipping_zip": "94105",
            "test_mode": True,
        },
    )
    expect("status", verified["status"], "verified")
    cbid = verified["cbid"]

    print("3. Ask at a later checkout whether that buyer is verified.")
    status = service.get(f"/v1/buyers/{quote(cbid, safe='')}/status")
    expect("status", status["status"], "verified")
    expect("expires_at", status["expires_at"], verified["expires_at"])

    print("4. Send the initials that the buyer typed, one for each line.")
    acknowledgment = {
        "initials_per_line": ["JD" for _ in lines],
        "notice_version": notice["version"],
        "session_id": f"cs_{uuid.uuid4().hex}",  # random: no one can guess the order
        "cbid": cbid,
        "ip": "203.0.113.7",
        "user_agent": "Mozilla/5.0 (example)",
    }
    path = f"/v1/notices/{quote(notice_id, safe='')}/acknowledge"
    once = str(uuid.uuid4())
    receipt = service.post(path, acknowledgment, idempotency_key=once)
    expect("notice_version", receipt["notice_version"], notice["version"])

    print("5. The same again, as after a lost answer: the same receipt, and nothing new stored.")
    again = service.post(path, acknowledgment, idempotency_key=once)
    expect("the receipt", again, receipt)

    print("6. One line too few is refused.")
    short = acknowledgment | {"initials_per_line": ["JD" for _ in lines[1:]]}
    refused = service.post(path, short, status=422)
    expect("the code", refused["error"]["code"], "initials_count_mismatch")

    print("7. Read the acknowledgment back.")
    stored = service.get(f"/v1/acknowledgments/{quote(receipt['ack_id'], safe='')}")
    for name, value in acknowledgment.items():
        expect(name, stored[name], value)


class Service:
    """A server and a key for it."""

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._key = key

    def get(self, path: str) -> Any:  # noqa: ANN401 - any JSON
        """GET; gives the answer's body."""
        return self._exchange("GET", path, {}, None, 200)

    def post(
        self, path: str, body: object, *, idempotency_key: str | None = None, status: int = 200
    ) -> Any:  # noqa: ANN401 - any JSON
        """POST JSON; gives the answer's body. `status` is the expected one."""
        headers = {"Content-Type": "application/json"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        return self._exchange("POST", path, headers, body, status)

    def _exchange(
        self, method: str, path: str, headers: dict[str, str], body: object, expected: int
    ) -> Any:  # noqa: ANN401 - any JSON
        print(f"\n   {method} {path}")
        for name, value in headers.items():
            print(f"   {name}: {value}")
        data = None
        if body is not None:
            print(_indented(body))
            data = json.dumps(body).encode()
        url = self._base_url + path
        headers = {"Authorization": f"Bearer {self._key}", **headers}
        status, replayed, text = _send(Request(url, data, headers, method=method))  # noqa: S310 - see _arguments
        try:
            answer = json.loads(text)
        except ValueError:
            msg = f"{url} answered {status} with something that is not JSON. Is it Countersign?"
            raise UnexpectedAnswerError(msg) from None
        print(f"   → {status}" + (" (Idempotent-Replayed: true)" if replayed else ""))
        print(_indented(answer) + "\n")
        if status != expected:
            msg = f"{method} {path} answered {status}, not {expected}: {json.dumps(answer)}"
            raise UnexpectedAnswerError(msg)
        return answer


def expect(what: str, got: object, given: object) -> None:
    """Compare a part of a response with the expected value."""
    if got != given:
        msg = f"{what} is {got!r}, not {given!r}"
        raise UnexpectedAnswerError(msg)


def _send(request: Request) -> tuple[int, bool, bytes]:
    """Gives the status, whether the answer was replayed, and the body."""
    try:
        try:
            response = urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310 - see _arguments
        except HTTPError as refusal:
            response = refusal
        with response:
            replayed = response.headers.get("Idempotent-Replayed") == "true"
            return response.status, replayed, response.read()
    except (URLError, HTTPException, OSError) as error:
        msg = f"there is no answer from {request.full_url}: {error}. Is the server running?"
        raise UnexpectedAnswerError(msg) from None


def _indented(value: object) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join("   " + line for line in text.splitlines())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Walk through a running Countersign server.")
    parser.add_argument(
        "--base-url",
        default=os.environ.get("COUNTERSIGN_BASE_URL", "http://127.0.0.1:8080"),
        help="address of the server (default: COUNTERSIGN_BASE_URL, or %(default)s)",
    )
    parser.add_argument(
        "--key",
        default=os.environ.get("COUNTERSIGN_API_KEY"),
        help="a test key (default: COUNTERSIGN_API_KEY)",
    )
    parser.add_argument("--notice", default="ab1263", help="notice to use (default: %(default)s)")
    arguments = parser.parse_args()
    if not arguments.base_url.startswith(("http://", "https://")):
        parser.error("--base-url begins with http:// or https://")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
