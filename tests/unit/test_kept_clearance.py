"""The kept answer of a clearance: repeated for as long as it is valid, and no longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from countersign.domain.clearance import Clearance
from countersign.domain.idempotency import LIFETIME, IdempotencyEntry
from countersign.domain.mode import Mode
from countersign.http.handlers.clearances import _remembering
from countersign.http.reply import Call

NOW = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)


def entry(response: bytes) -> IdempotencyEntry:
    return IdempotencyEntry(
        slot=b"slot",
        account_id="acct_1",
        mode=Mode.LIVE,
        fingerprint=b"body",
        response=response,
        created_at=NOW,
        expires_at=NOW + LIFETIME,
    )


@pytest.mark.parametrize(
    ("valid_for", "kept_for"),
    [
        (timedelta(minutes=15), timedelta(minutes=15)),
        (timedelta(days=30), LIFETIME),
        (None, LIFETIME),
    ],
)
def test_what_was_cleared_is_repeated_only_while_it_is_valid(
    valid_for: timedelta | None, kept_for: timedelta
) -> None:
    """A repeated request is no way to a clearance that has run out; a refusal stays a day."""
    call = Call(
        method="POST",
        path="/v1/clearances",
        parameter="",
        query_string=b"",
        headers={},
        raw_headers=[],
        peer="127.0.0.1",
    )
    call.entry = entry
    remember = _remembering(call)
    assert remember is not None
    clearance = Clearance(
        clearance_id="clr_1",
        cleared=valid_for is not None,
        reasons=(),
        obligations=(),
        expires_at=None if valid_for is None else NOW + valid_for,
        token=None,
    )
    assert remember(clearance).expires_at == NOW + kept_for
