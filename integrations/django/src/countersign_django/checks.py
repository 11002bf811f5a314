"""System checks: what is wrong with the settings is found before a buyer finds it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's
from django.core.exceptions import ImproperlyConfigured

from countersign_django.conf import configuration

LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


@register(Tags.security)
def settings_work(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 - Django passes what it likes
    """Whether the service can be reached safely, and its messages be verified."""
    try:
        conf = configuration()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="countersign.E001")]
    found: list[CheckMessage] = []
    if not conf.api_key.startswith("csign_sk_"):
        hint = "Make one with `countersign keys create`; keep it out of the repository."
        found.append(Error("COUNTERSIGN has no API_KEY.", hint=hint, id="countersign.E002"))
    url = urlsplit(conf.base_url)
    if url.scheme not in {"http", "https"} or not url.hostname:
        hint = "Set it to an address such as https://countersign.example.com."
        found.append(Error("COUNTERSIGN has no BASE_URL.", hint=hint, id="countersign.E003"))
    elif url.scheme == "http" and url.hostname not in LOOPBACK:
        message = "COUNTERSIGN's BASE_URL is plain http: the key can be read on the way."
        found.append(Error(message, id="countersign.E004"))
    if conf.webhook_secret and not conf.webhook_secret.startswith(("whsec_", "whpk_")):
        hint = "It begins with whsec_ (or whpk_, the public key)."
        message = "COUNTERSIGN's WEBHOOK_SECRET is none."
        found.append(Error(message, hint=hint, id="countersign.E005"))
    if not conf.webhook_secret:
        message = "COUNTERSIGN has no WEBHOOK_SECRET: an order whose buyer never comes back waits."
        found.append(Warning(message, id="countersign.W001"))
    return found


@register(Tags.security, deploy=True)
def key_counts(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 - Django passes what it likes
    """Whether a shop in production has a live key: `manage.py check --deploy`."""
    try:
        is_test = configuration().is_test
    except ImproperlyConfigured:
        return []
    message = "COUNTERSIGN's API_KEY is a test key: no buyer is verified, and nothing counts."
    return [Warning(message, id="countersign.W002")] if is_test else []
