"""Rules for every adapter: valid session ids, and refused credentials."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import msgspec
import pytest

from countersign.base.errors import InvalidArgument
from countersign.identity.registry import IdentityProviders, provider_names
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock, keyed
from tests.support.every import every

UUID: Final = "7f1c2a34-0b5d-3e6f-8a90-1234567890ab"
INQUIRY: Final = "inq_ExampleAbC1234567890123456"
NO_UUIDS: Final = (
    *("vs_123", UUID.upper(), UUID[:-1], f"{UUID}0", f"{UUID}\n", f" {UUID}", f"../{UUID}"),
    *(f"{UUID}/tasks", f"..%2F{UUID}", f"\uff17{UUID[1:]}", f"{{{UUID}}}", UUID.replace("-", "")),
)
MALFORMED: Final = {
    "stripe": (
        *("vs_", "vs_short", "vr_1ExampleAbCdEfGhIj", "vs_1Example/../../x", "vs_1Example0000\n"),
        *("vs_" + "a" * 201, "vs_\uff11Example000000", " vs_1Example0000000", "vs_1Example%2F000"),
    ),
    "persona": (
        *("inq_", "inq_short", "vs_1ExampleAbCdEfGhIj", "inq_Example/../../accounts"),
        *(f"{INQUIRY}\n", "inq_" + "a" * 65, "inq_\uff11Example1234567890", f" {INQUIRY}"),
        "inq_Example%2F1234567890",
    ),
    "plaid": (
        *("idv_", "idv_short", "idvtmp_ExampleAbC123", "idv_Example/../../x", "idv_Example00\n"),
        *("idv_" + "a" * 65, "idv_\uff11Example000", " idv_Example00", "idv_Example%2F00"),
    ),
    **dict.fromkeys(("veriff", "didit", "onfido"), NO_UUIDS),
}
HIDDEN: Final = "S1mulated"


def credentials_of(name: str) -> dict[str, Any]:
    """The simulator's credentials, as `--credentials` prints them."""
    return dict(SIMULATORS[name](FixedClock().now).credentials)


@every(
    ("name", "malformed"),
    [(name, bad) for name in provider_names() for bad in ("", *MALFORMED[name])],
)
def test_an_invalid_session_id_is_not_sent(name: str, malformed: str) -> None:
    """The pattern is checked before anything is sent: another spelling of an id is invalid."""
    credentials = json.dumps(credentials_of(name)).encode()

    async def refused() -> int:
        async with serve(SIMULATORS[name](FixedClock().now)) as served:
            provider = IdentityProviders(keyed, FixedClock())(name, credentials, served.url)
            with pytest.raises(ValueError, match="not a session id"):
                await provider.retrieve(malformed)
            await provider.close()
            return len(served.requests)

    assert asyncio.run(refused()) == 0


@every(
    ("name", "flaw", "named"),
    [
        ("stripe", {"api_key": ""}, "api_key"),
        ("stripe", {"api_key": f"sk_live_{HIDDEN}_secret"}, "api_key"),
        ("stripe", {"api_key": f"pk_live_{HIDDEN}_public"}, "api_key"),
        ("stripe", {"api_key": f"rk_live_{HIDDEN} a space"}, "api_key"),
        ("stripe", {"api_key": f"rk_live_{HIDDEN}_newline\n"}, "api_key"),
        ("stripe", {"webhook_secrets": ("",)}, "webhook_secrets"),
        ("stripe", {"webhook_secrets": (f"{HIDDEN}_signing_secret",)}, "webhook_secrets"),
        ("stripe", {"subject_metadata_key": ""}, "subject_metadata_key"),
        ("stripe", {"verification_flow": f"vs_{HIDDEN}_flow"}, "verification_flow"),
        ("persona", {"api_key": ""}, "api_key"),
        ("persona", {"inquiry_template_id": f"tmpl_{HIDDEN}"}, "inquiry_template_id"),
        ("persona", {"api_key": f"persona_production_{HIDDEN}\n"}, "api_key"),
        ("persona", {"api_key": f"persona_sandbox_{HIDDEN}_key"}, "api_key"),
        ("persona", {"environment": "sandbox"}, "api_key"),
        ("persona", {"environment_id": "production"}, "environment_id"),
        ("persona", {"webhook_secrets": ("",)}, "webhook_secrets"),
        ("persona", {"webhook_secrets": (f"{HIDDEN} with spaces",)}, "webhook_secrets"),
        ("veriff", {"api_key": ""}, "api_key"),
        ("veriff", {"api_key": f"with space {HIDDEN}"}, "api_key"),
        ("veriff", {"shared_secrets": ()}, "shared_secrets"),
        ("veriff", {"shared_secrets": ("sufficient-1", "")}, r"shared_secrets\[1\]"),
        ("veriff", {"api_key": HIDDEN, "shared_secrets": (HIDDEN,)}, "shared_secrets"),
        ("veriff", {"integration_id": "x"}, "integration_id"),
        ("veriff", {"host": "stationapi.veriff.com.example.org"}, "host"),
        ("veriff", {"host": "https://stationapi.veriff.com"}, "host"),
        ("veriff", {"host": "veriff.com"}, "host"),
        ("plaid", {"client_id": ""}, "client_id"),
        ("plaid", {"client_id": f"with a space in {HIDDEN}"}, "client_id"),
        ("plaid", {"secret": ""}, "secret"),
        ("plaid", {"secret": "short"}, "secret"),
        ("plaid", {"secret": f"with_a_newline_in_{HIDDEN}\n"}, "secret"),
        ("plaid", {"client_id": HIDDEN, "secret": HIDDEN}, "secret"),
        ("plaid", {"template_id": f"idv_{HIDDEN}"}, "template_id"),
        ("didit", {"api_key": ""}, "api_key"),
        ("didit", {"workflow_id": HIDDEN}, "workflow_id"),
        ("didit", {"api_key": f"with space {HIDDEN}"}, "api_key"),
        ("didit", {"api_key": f"{HIDDEN}_newline\n"}, "api_key"),
        ("didit", {"webhook_secrets": ("sufficient-1", "")}, r"webhook_secrets\[1\]"),
        ("didit", {"webhook_secrets": tuple(f"{HIDDEN}{n}" for n in range(6))}, "webhook_secrets"),
        ("didit", {"api_key": HIDDEN, "webhook_secrets": (HIDDEN,)}, "webhook_secrets"),
        ("onfido", {"api_token": ""}, "api_token"),
        ("onfido", {"api_token": f"sk_live_{HIDDEN}.en"}, "api_token"),
        ("onfido", {"api_token": f"api_live_us.{HIDDEN} en"}, "api_token"),
        ("onfido", {"api_token": f"api_live_us.{HIDDEN}\n"}, "api_token"),
        ("onfido", {"environment": "sandbox"}, "environment"),
        ("onfido", {"region": "eu"}, "region"),
        ("onfido", {"workflow_id": f"{UUID}/../{HIDDEN}"}, "workflow_id"),
        ("onfido", {"webhook_secrets": ("",)}, "webhook_secrets"),
        ("onfido", {"webhook_secrets": ("S1mulat",)}, "webhook_secrets"),
        ("onfido", {"output": {"postal_code": {"member": "", "source": "document"}}}, "output"),
        ("onfido", {"output": {"country": {"member": "a..b", "source": "document"}}}, "output"),
        ("onfido", {"output": {"country": {"member": "country", "source": "document"}}}, "output"),
    ],
)
def test_credentials_that_cannot_work_are_refused_by_name_and_without_their_value(
    name: str, flaw: dict[str, Any], named: str
) -> None:
    """Errors found without a request are reported with a remedy, and without secrets."""
    content = credentials_of(name) | flaw
    with pytest.raises(InvalidArgument, match=rf"cannot work: .*{named}") as refused:
        IdentityProviders(keyed, FixedClock()).review(name, json.dumps(content).encode())
    assert "S1mulat" not in str(refused.value)


@every(
    ("name", "wrong"),
    [
        *((name, {"key": 1}) for name in provider_names()),
        *((name, {"environment": "production"}) for name in ("persona", "plaid", "veriff")),
        ("onfido", {"region": "mars"}),
        ("onfido", {"output": {"date_of_birth": {"member": "dob", "source": "user_entered"}}}),
        ("onfido", {"output": {"name": None}}),
    ],
)
def test_invalid_credentials_are_refused(name: str, wrong: dict[str, Any]) -> None:
    """A misspelt member, or an unknown word."""
    content = credentials_of(name) | wrong
    with pytest.raises(InvalidArgument, match=f"not credentials for {name}"):
        IdentityProviders(keyed, FixedClock()).review(name, json.dumps(content).encode())


@pytest.mark.parametrize("name", provider_names())
def test_the_simulators_credentials_are_accepted_and_hidden(name: str) -> None:
    """`--credentials` prints a credentials file; its repr shows nothing."""
    content = json.dumps(credentials_of(name)).encode()
    providers = IdentityProviders(keyed, FixedClock())
    assert list(providers.review(name, content)) == []
    provider = providers(name, content, None)
    credentials = msgspec.json.decode(content, type=provider.credentials_type)
    assert repr(credentials) == f"<{type(credentials).__name__}: hidden>"


@pytest.mark.parametrize(
    ("name", "other", "warnings"),
    [
        ("veriff", {"host": "saas-eu.veriff.com"}, 0),
        ("veriff", {"integration_id": None}, 1),
        ("didit", {"webhook_secrets": []}, 1),
    ],
)
def test_optional_differences_are_accepted(name: str, other: dict[str, Any], warnings: int) -> None:
    """Another host of the provider; no webhooks or no integration, with a warning."""
    content = json.dumps(credentials_of(name) | other).encode()
    assert len(IdentityProviders(keyed, FixedClock()).review(name, content)) == warnings
