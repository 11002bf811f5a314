"""Asking others to vouch for a checkpoint: witnesses and time-stamp authorities, over HTTP."""

from __future__ import annotations

from typing import Final, NamedTuple

import httpx2

from countersign.errors import AnchoringFailed

_SECONDS_MAX: Final = 20.0
_ANSWER_BYTES_MAX: Final = 256 * 1024


class Answer(NamedTuple):
    """An answer: status, media type and body."""

    status: int
    media_type: str
    body: bytes


class AnchorClient:
    """Posts to witnesses and authorities: no redirects, bounded in time and size."""

    async def post(self, url: str, media_type: str, body: bytes) -> Answer:
        """Post a body.

        Raises:
            AnchoringFailed: there was no answer, or it was too large.
        """
        headers = {"Content-Type": media_type}
        try:
            async with (
                httpx2.AsyncClient(timeout=_SECONDS_MAX, follow_redirects=False) as client,
                client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                received = bytearray()
                async for chunk in answer.aiter_bytes():
                    received += chunk
                    if len(received) > _ANSWER_BYTES_MAX:
                        msg = f"The response of {url} is too large."
                        raise AnchoringFailed(msg)
                kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
                return Answer(answer.status_code, kind, bytes(received))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            msg = f"{url} cannot be reached: {type(error).__name__}."
            raise AnchoringFailed(msg) from error
