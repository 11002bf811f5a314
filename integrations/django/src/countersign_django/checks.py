"""System checks: wrong settings are found before a buyer notices."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's
from django.core.exceptions import ImproperlyConfigured

from countersign_client import Countersign, InvalidSignature, Webhooks
from countersign_django.conf import configuration

LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


@register(Tags.security)
def settings_work(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 - Django passes what it likes
    """Whether the service can be reached safely, and its messages be verified."""
    try:
        conf = configuration()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="countersign.E001")]
    found: list[CheckMessage] = [
        # A warning: a build has no secrets, and runs commands of Django too.
        Warning(f"COUNTERSIGN has no {name}: {what}", id="countersign.W001")
        for name, value, what in (
            ("BASE_URL", conf.base_url, "there is no service."),
            ("API_KEY", conf.api_key, "the service refuses every request."),
            (
                "WEBHOOK_SECRET",
                conf.webhook_secret,
                "an order waits for its buyer to come back.",
            ),
        )
        if not value
    ]
    if conf.api_key and not re.fullmatch(r"csign_[sr]k_[!-~]+(?<!\.\.\.)", conf.api_key):
        hint = _hint(
            conf.api_key,
            "It begins with csign_sk_ or csign_rk_, in one line: `countersign dev` shows one, and "
            "`countersign keys create` makes one.",
        )
        message = "COUNTERSIGN's API_KEY is not a key of the service."
        found.append(Error(message, hint=hint, id="countersign.E002"))
    if conf.base_url and not _leads_somewhere(conf.base_url):
        hint = "Write it like https://countersign.example.com: no part of it may follow a ? or #."
        if "://" not in conf.base_url:
            hint = f"Is it https://{conf.base_url}?"
        message = "COUNTERSIGN's BASE_URL is not an address: it begins with https://."
        found.append(Error(message, hint=hint, id="countersign.E003"))
    elif (url := urlsplit(conf.base_url)).scheme == "http" and url.hostname not in LOOPBACK:
        message = "COUNTERSIGN's BASE_URL is plain http: the key can be read on the way."
        found.append(Error(message, id="countersign.E004"))
    if conf.webhook_secret and not _verifies(conf.webhook_secret):
        hint = _hint(
            conf.webhook_secret,
            "It begins with whsec_ and is shown when the endpoint is made, or when `csign listen` "
            "starts. (Or with whpk_, which needs countersign-client[tokens].)",
        )
        message = "COUNTERSIGN's WEBHOOK_SECRET is not a webhook secret."
        found.append(Error(message, hint=hint, id="countersign.E005"))
    seconds: Any = conf.timeout_seconds
    if not (isinstance(seconds, int | float) and seconds > 0):
        message = "COUNTERSIGN's TIMEOUT_SECONDS is no number of seconds."
        found.append(Error(message, id="countersign.E006"))
    return found


def _hint(refused: str, otherwise: str) -> str:
    """The probable mistake in a key or secret, which is not shown."""
    if refused.endswith(("...", "…")):
        return "It ends with dots, as in the guide: set it in full, as the service showed it."
    if refused != refused.strip():
        return "A space or a new line is around it."
    if refused.startswith("csign_"):
        return f"It is an API key, or a part of one. {otherwise}"
    if refused.startswith("wh"):
        return f"It is a webhook secret, or a part of one. {otherwise}"
    return otherwise


def _leads_somewhere(base_url: str) -> bool:
    """Whether a client takes this address."""
    try:
        Countersign(api_key="none", base_url=base_url).close()
    except ValueError:
        return False
    return True


def _verifies(secret: str) -> bool:
    """Whether messages can be verified with this secret."""
    some = {"webhook-id": "evt_1", "webhook-timestamp": "0", "webhook-signature": ""}
    try:
        Webhooks().unwrap(b"", some, secret=secret, now=0)
    except InvalidSignature:
        return True
    except (ValueError, ImportError):
        pass
    return False


@register(Tags.security, deploy=True)
def key_counts(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 - Django passes what it likes
    """Whether a shop in production has a live key: `manage.py check --deploy`."""
    try:
        is_test = configuration().is_test
    except ImproperlyConfigured:
        return []
    message = "COUNTERSIGN's API_KEY is a test key: no buyer is verified, and nothing counts."
    return [Warning(message, id="countersign.W002")] if is_test else []
