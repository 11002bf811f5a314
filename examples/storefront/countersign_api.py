"""This shop's use of Countersign: five requests, and the signature of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

TIMEOUT_SECONDS = 10
AGE_SECONDS_MAX = 300


class Refused(Exception):
    """Countersign refused a request, or did not answer; `code` is that of the API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Countersign:
    """The service, for the account of this key. The key never leaves this process."""

    def __init__(self, base_url: str, key: str, webhook_secret: str = "") -> None:
        self.base_url = base_url.rstrip("/")
        self._key = key
        self._webhook_secret = webhook_secret

    def requirements(
        self, classes: list[str], ship_to: Mapping[str, str], residence: str
    ) -> dict[str, Any]:
        """The requirements of an order."""
        body = {"product_classes": classes, "ship_to": ship_to, "residence_state": residence}
        return self._ask("POST", "/v1/requirements", body)

    def create_session(self, body: Mapping[str, Any], once: str) -> dict[str, Any]:
        """Create a checkout session; the same `once` gives the same session."""
        return self._ask("POST", "/v1/checkout_sessions", body, once)

    def session(self, session_id: str) -> dict[str, Any]:
        """Read a checkout session: only this says how it ended."""
        return self._ask("GET", f"/v1/checkout_sessions/{quote(session_id, safe='')}")

    def cancel(self, session_id: str) -> dict[str, Any]:
        """Cancel a checkout session: its link collects nothing any more."""
        return self._ask("POST", f"/v1/checkout_sessions/{quote(session_id, safe='')}/cancel", {})

    def event(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any] | None:
        """The event that a webhook brings; None if it is not signed with our secret."""
        try:
            id_, stamp = headers["webhook-id"], headers["webhook-timestamp"]
            if not self._webhook_secret or abs(time.time() - int(stamp)) > AGE_SECONDS_MAX:
                return None
            key = base64.b64decode(self._webhook_secret.removeprefix("whsec_"))
            digest = hmac.digest(key, f"{id_}.{stamp}.".encode() + body, hashlib.sha256)
            expected = b"v1," + base64.b64encode(digest)
            given = headers["webhook-signature"].encode().split(b" ")
            matches = [hmac.compare_digest(expected, one) for one in given]
        except (KeyError, ValueError):
            return None
        event: dict[str, Any] | None = json.loads(body) if any(matches) else None
        return event

    def _ask(
        self, method: str, path: str, body: object = None, once: str | None = None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        if once is not None:
            headers["Idempotency-Key"] = once
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base_url + path, data, headers, method=method)  # noqa: S310 - the operator's address
        try:
            with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                answer: dict[str, Any] = json.load(response)
        except HTTPError as refusal:
            with refusal:
                raise _refused(refusal) from None
        except (OSError, HTTPException, ValueError) as error:
            raise Refused("no_answer", str(error)) from None
        return answer


def _refused(refusal: HTTPError) -> Refused:
    try:
        error = json.load(refusal)["error"]
        return Refused(error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return Refused("no_answer", f"status {refusal.code}")
