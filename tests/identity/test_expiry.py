"""A document's expiry in every form that a provider could write it in, at every provider."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

import pytest

from countersign.base.values import Reason
from countersign.core.buyers.decision import decide
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules, shortfalls
from countersign.identity.model import ProviderResult
from tests.identity import test_didit as didit
from tests.identity import test_onfido as onfido
from tests.identity import test_persona as persona
from tests.identity import test_plaid as plaid
from tests.identity import test_stripe as stripe
from tests.identity import test_veriff as veriff
from tests.identity.asking import day, reply
from tests.identity.test_onfido import _desk  # noqa: F401 - the server of Onfido's responses
from tests.support.every import every

NOW: Final = day("2026-11-20T21:31:00")
READ: Final[dict[str, Callable[[object], ProviderResult]]] = {
    "stripe": lambda said: stripe.read(reply(stripe.document(expiration_date=said))),
    "persona": lambda said: persona.result_of(
        persona.proved_by(persona.licence(expiration_date=said))
    ),
    "veriff": lambda said: veriff.read(
        veriff.changed(document={**veriff.DOCUMENT, "validUntil": said})
    ),
    "plaid": lambda said: plaid.read(reply(plaid.extracted(expiration_date=said))),
    "didit": lambda said: didit.read(didit.with_document(expiration_date=said)),
    "onfido": lambda said: onfido.read(shown=onfido.properties(date_of_expiry=said)),
}
"""An adapter's document with this expiry."""
TEXTS: Final = tuple(READ)[1:]

UNREADABLE: Final[tuple[object, ...]] = (
    *("01/01/2020", "01012020", "Jan 1 2020", "2020-02-30", "0000-00-00", "2020-13", "2020-00"),
    *("20201301", "1.1.2020", "2020-13-01", "2020-01-01T99:00:00Z", "2020-01-01x", "0000", "20"),
    *("EXPIRED", " ", "2020-01-01\n", "\uff12020-01-01", "2020-W01-1", 20200101, 1577836800),
    *("1 XXX 2020", "31 FEB 2020", "20 JAN 20", "2020-1-1T00:00:00Z", "INDEFINITELY NOT"),
    *(True, ["2020-01-01"], {"date": "2020-01-01"}),
)
PARTS: Final[tuple[tuple[object, date | None], ...]] = (
    ({"day": 1, "month": 1, "year": 2020}, date(2020, 1, 1)),
    ({"day": None, "month": 2, "year": 2020}, date(2020, 2, 29)),
    ({"month": 12, "year": 2020}, date(2020, 12, 31)),
    ({"day": None, "month": None, "year": 2020}, date(2020, 12, 31)),
    ({"day": 1, "month": None, "year": 2020}, date(2020, 12, 31)),
    ({"year": 2020}, date(2020, 12, 31)),
    ({"day": 30, "month": 2, "year": 2020}, None),
    ({"day": 0, "month": 0, "year": 0}, None),
    ({"day": 1, "month": 13, "year": 2020}, None),
    ({"day": None, "month": 0, "year": 2020}, None),
    ({"day": None, "month": None, "year": 20200}, None),
    ({"day": 1, "month": 1, "year": None}, None),
    ({"day": "1", "month": "1", "year": "2020"}, None),
    ({"day": 1.0, "month": 1, "year": 2020}, None),
    ({"day": True, "month": True, "year": 2020}, None),
    ("2020-01-01", date(2020, 1, 1)),
    (2020, None),
    ([], None),
)


def reasons(found: ProviderResult, expiry: DocumentExpiry) -> tuple[Reason, ...]:
    """The reasons against this result by a rule about the expiry, at its own ZIP code."""
    zip_ = found.addresses[0].postal_code or ""
    rules = VerificationRules(document_expiry=expiry)
    return decide(found, rules, shipping_zip=zip_, subject_reference="buyer-1", now=NOW).reasons


@every("provider", TEXTS)
@every(
    ("written", "last"),
    [
        ("2020-01-01", date(2020, 1, 1)),
        ("2020-01-01T00:00:00Z", date(2020, 1, 1)),
        ("2020-01-01T23:59:59.000+02:00", date(2020, 1, 1)),
        ("2020-01-01 00:00:00", date(2020, 1, 1)),
        ("2020-02", date(2020, 2, 29)),
        ("2019-12", date(2019, 12, 31)),
        ("2020", date(2020, 12, 31)),
        *[(said, date(2020, 1, 1)) for said in ("20200101", " 2020-01-01 ", "2020-1-1")],
        *[(said, date(2020, 1, 31)) for said in ("31 JAN 2020", "31-Jan-2020")],
    ],
)
def test_an_unambiguous_expiry_is_read(provider: str, written: str, last: date) -> None:
    """A month and a year last to their last day, and an expired document is an expired one."""
    found = READ[provider](written)
    assert found.document is not None
    assert found.document.expires_on == last
    assert reasons(found, DocumentExpiry.UNEXPIRED_IF_KNOWN) == (Reason.DOCUMENT_EXPIRED,)


@every("provider", TEXTS)
@every("written", ["INDEF", "Permanent"])
def test_a_document_that_never_expires_passes_the_strictest_rule(
    provider: str, written: str
) -> None:
    """Its last day is the last of all."""
    found = READ[provider](written)
    assert found.document is not None
    assert (found.document.expires_on, found.document.expiry_unread) == (date.max, False)
    assert reasons(found, DocumentExpiry.UNEXPIRED) == ()


@every(("parts", "last"), PARTS)
def test_the_parts_of_an_expiry_are_read_if_they_give_one_day(
    parts: object, last: date | None
) -> None:
    """Stripe's month or year without a day lasts to its last day; nothing else is guessed at."""
    found = READ["stripe"](parts)
    assert found.document is not None
    assert found.document.expires_on == last
    against = Reason.DOCUMENT_EXPIRED if last else Reason.DOCUMENT_EXPIRY_UNKNOWN
    for rule in (DocumentExpiry.UNEXPIRED_IF_KNOWN, DocumentExpiry.UNEXPIRED):
        assert reasons(found, rule) == (against,)


@every("provider", READ)
@every("written", UNREADABLE)
def test_an_unreadable_expiry_is_not_a_missing_one(provider: str, written: object) -> None:
    """Under both rules that ask for an unexpired document it is unknown, and named in the log."""
    found = READ[provider](written)
    assert found.document is not None
    assert (found.document.expires_on, found.document.expiry_unread) == (None, True)
    assert found.unread
    for rule in (DocumentExpiry.UNEXPIRED_IF_KNOWN, DocumentExpiry.UNEXPIRED):
        assert reasons(found, rule) == (Reason.DOCUMENT_EXPIRY_UNKNOWN,)
    assert reasons(found, DocumentExpiry.IGNORED) == ()


@pytest.mark.parametrize("provider", READ)
def test_a_document_without_an_expiry_passes_only_if_allowed(provider: str) -> None:
    """Each provider writes null if there is none."""
    found = READ[provider](None)
    assert reasons(found, DocumentExpiry.UNEXPIRED_IF_KNOWN) == ()
    assert reasons(found, DocumentExpiry.UNEXPIRED) == (Reason.DOCUMENT_EXPIRY_UNKNOWN,)


@pytest.mark.parametrize(
    "parts", [{}, {"day": None, "month": None, "year": None}], ids=["empty", "null"]
)
def test_an_expiry_with_empty_parts_is_missing(parts: dict[str, Any]) -> None:
    """Stripe's members may all be null."""
    assert reasons(READ["stripe"](parts), DocumentExpiry.UNEXPIRED_IF_KNOWN) == ()


def test_plaid_knows_that_a_document_has_expired_whatever_is_written_on_it() -> None:
    """Its analysis says more than a date that cannot be read."""
    analysis = {"extracted_data": {"expiration_date": "expired"}}
    shown = plaid.document(extracted_data={"expiration_date": "01/01/2020"}, analysis=analysis)
    found = plaid.read(reply(plaid.documents(shown)))
    assert reasons(found, DocumentExpiry.UNEXPIRED_IF_KNOWN) == (Reason.DOCUMENT_EXPIRED,)


def test_a_date_garbled_by_onfidos_report_may_come_from_the_declared_output() -> None:
    """It does not matter which of the two cannot be read, as long as one can."""
    garbled = onfido.properties(date_of_expiry="31.12.30")
    run = onfido.changed(output={"dob": "1990-01-01", "expiry": "2030-12-31"})
    found = onfido.read(run, garbled, output=onfido.DECLARED)
    assert found.document is not None
    assert (found.document.expires_on, found.document.expiry_unread) == (date(2030, 12, 31), False)
    neither = onfido.changed(output={"dob": "1990-01-01", "expiry": "soon"})
    found = onfido.read(neither, onfido.properties(date_of_expiry=None), output=onfido.DECLARED)
    assert found.document is not None
    assert found.document.expiry_unread


def test_an_account_that_ignores_expiry_changes_nothing_for_others() -> None:
    """The stored proof says that the document has an expiry, and that it was not read."""
    found = READ["didit"]("01/01/2020")
    rules = VerificationRules(document_expiry=DocumentExpiry.IGNORED)
    made = decide(found, rules, shipping_zip="94111", subject_reference=None, now=NOW)
    assert made.facts is not None
    for rule in (DocumentExpiry.UNEXPIRED_IF_KNOWN, DocumentExpiry.UNEXPIRED):
        asked = VerificationRules(document_expiry=rule)
        assert shortfalls(made.facts, asked) == (Reason.DOCUMENT_EXPIRY_UNKNOWN,)
    assert shortfalls(made.facts, rules) == ()
