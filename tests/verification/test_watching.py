"""The operator sees that a set-up refuses everybody: in the answer, in the log, in the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from countersign.base.errors import (
    ProviderSessionNotBound,
    VerificationMisconfigured,
    WebhookRefused,
)
from countersign.server.app import App
from countersign_simulators.stripe import PLAIN_RESTRICTED_KEY
from tests.verification.inside import Insider, Stage
from tests.verification.test_settling import playing_another, undecided


def metrics(stage: Stage) -> str:
    """The metrics for Prometheus."""
    registry = CollectorRegistry()
    registry.register(App(stage.opened).metrics)
    return generate_latest(registry).decode()


def without_permission(vendor: Insider) -> Mapping[str, object]:
    """Credentials that may not read sensitive results."""
    return dict(vendor.playing.simulator.credentials) | {"api_key": PLAIN_RESTRICTED_KEY}


def lines(captured: list[Any], event: str) -> list[Any]:
    """The lines with this event."""
    return [line for line in captured if line["event"] == event]


def test_a_key_without_its_permission_is_the_operators_business(stage: Stage) -> None:
    """Not "age unknown" for every buyer; nothing is written, and the next key settles it."""
    vendor = stage.insider()
    vendor.configure(without_permission(vendor))
    session = vendor.part("verified")
    with capture_logs() as captured, pytest.raises(VerificationMisconfigured):
        vendor.verify(session)
    [line] = lines(captured, "sensitive_results_withheld")
    assert (line["account"], line["provider"]) == (vendor.account_id, "stripe")
    assert stage.rows("SELECT * FROM buyers") == []
    counted = 'provider="stripe",reason="verification_misconfigured",status="error"} 1.0'
    assert counted in metrics(stage)
    vendor.configure()
    assert vendor.verify(session).view.status == "verified"


def test_each_verdict_is_counted_with_its_reason(stage: Stage) -> None:
    """Requests to the provider and waiting sessions are counted too."""
    vendor = stage.insider()
    vendor.verify(vendor.part("verified"))
    vendor.verify(vendor.part("verified", 1), "99999")
    undecided(vendor)
    seen = metrics(stage)
    for line in (
        'countersign_verifications_total{provider="stripe",reason="",status="verified"} 1.0',
        'countersign_verifications_total{provider="stripe",reason="zip_mismatch",status="failed"}',
        'countersign_provider_seconds_count{provider="stripe"} 3.0',
        'countersign_provider_unknown_fields_total{provider="stripe"} 0.0',
    ):
        assert line in seen, line


def test_missing_facts_are_logged_once_a_minute_for_each_account(stage: Stage) -> None:
    """One line is enough, and a storm of buyers is no storm of lines."""
    vendor = stage.insider()
    with capture_logs() as captured:
        for _ in range(3):
            vendor.verify(vendor.part("no_date_of_birth"))
    assert [line["reason"] for line in lines(captured, "verification_lacks_facts")] == [
        "age_unknown"
    ]


def test_a_wrong_webhook_secret_is_logged_and_counted(stage: Stage) -> None:
    """Else no one knows why sessions in review take hours."""
    vendor = stage.insider()
    session, decided, _ = undecided(vendor)
    wrong = dict(vendor.playing.simulator.credentials) | {"webhook_secrets": ["whsec_of_others"]}
    vendor.configure(wrong)
    with playing_another(vendor, session, decided), capture_logs() as captured:
        for _ in range(2):
            with pytest.raises(WebhookRefused):
                vendor.hint(session)
    [line] = lines(captured, "provider_webhook_refused")
    assert line["account"] == vendor.account_id
    assert 'countersign_provider_webhooks_refused_total{provider="stripe"} 2.0' in metrics(stage)


def test_the_reason_for_an_unbound_session_is_given(stage: Stage) -> None:
    """One code: somebody else's session, or one of the test mode or another integration."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with pytest.raises(ProviderSessionNotBound, match="another subject"):
        vendor.verify(session, subject_reference="somebody-else")

    with (
        capture_logs() as captured,
        pytest.raises(ProviderSessionNotBound, match="test mode or of another integration"),
    ):
        vendor.verify(vendor.part("test_mode"))
    assert lines(captured, "session_not_live")
