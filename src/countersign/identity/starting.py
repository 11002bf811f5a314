"""The base of every adapter's `start`: the needs of a session, its page, and refusals.

A provider's response names the page that a buyer's browser is sent to. A forged response, or a
mistake at the provider, must not send buyers to a look-alike page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from countersign.base.errors import ProviderUnavailable, VerificationMisconfigured
from countersign.identity.model import Finding, ProviderResult
from countersign.identity.transport import RETRY_AFTER_SECONDS, ProviderRequest

_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST: Final = re.compile(rf"(?:{_LABEL}\.){{1,8}}{_LABEL}", re.ASCII)
"""The name of a host, in small letters."""
_REST: Final = r"(?:[/?][!#-;=?-\[\]_a-z~]*)?"
"""Path, query and fragment; no double quotes, angle brackets or backslashes, which browsers read
in several ways."""
_PAGE: Final = re.compile(rf"https://({HOST.pattern}){_REST}", re.ASCII)
_AFTER_ORIGIN: Final = re.compile(_REST, re.ASCII)
ADDRESS: Final = re.compile(r"https?://[!-~]+", re.ASCII)
"""Expected in a response where the page's address should be; `is_page` judges it."""


class Refused(Exception):
    """The provider refuses to make a session, or to show a part of its result."""

    def __init__(self, result: ProviderResult) -> None:
        super().__init__()
        self.result = result


def refusal(result: ProviderResult) -> ProviderUnavailable | VerificationMisconfigured:
    """The error for the failed creation of a session."""
    if result.reason_code == "page_elsewhere":
        return VerificationMisconfigured(
            f"{result.provider} serves its page at a host that is not its own. If the host is "
            "yours, the operator has to name it in `page_hosts` of the credentials."
        )
    if result.outcome in {Finding.PROVIDER_REJECTED, Finding.NOT_FOUND}:
        return VerificationMisconfigured(
            f"{result.provider} refuses to start a session: its key may not start one, it does "
            "not know the template, or it does not allow the return address."
        )
    return ProviderUnavailable(retry_after=result.retry_after or RETRY_AFTER_SECONDS)


def check_form(member: str, value: str | None, form: re.Pattern[str], example: str) -> None:
    """Refuse an optional member of the credentials with an invalid value.

    Raises:
        ValueError: the text says what is expected.
    """
    if value is not None and form.fullmatch(value) is None:
        raise ValueError(f"`{member}`: give it as the provider shows it, such as {example}")


def post(
    path: str, body: Mapping[str, Any], headers: Mapping[str, str], *, repeatable: bool
) -> ProviderRequest:
    """A request that makes something, with a JSON body."""
    return ProviderRequest(
        method="POST",
        path=path,
        headers={"Accept": "application/json", "Content-Type": "application/json", **headers},
        body=json.dumps(body, separators=(",", ":")).encode("ascii"),
        repeatable=repeatable,
    )


def is_page(url: str, domains: Collection[str], base_url: str | None) -> bool:
    """Whether a buyer may be sent there: to a page of these domains, over HTTPS.

    At another base URL, such as a simulator's, also to a page there.
    """
    if len(url) > 4096:
        return False
    if base_url is not None:
        parts = urlsplit(base_url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if url.startswith(origin) and _AFTER_ORIGIN.fullmatch(url, len(origin)):
            return True
    page = _PAGE.fullmatch(url)
    return page is not None and any(
        page[1] == domain or page[1].endswith(f".{domain}") for domain in domains
    )
