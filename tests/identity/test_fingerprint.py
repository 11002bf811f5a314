"""A document's fingerprint: one for a document in any provider's words, none when in doubt."""

from __future__ import annotations

import string
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from countersign.identity.fingerprint import fingerprints, issuer, kind_of, number_of
from tests.identity import test_didit as didit
from tests.identity.asking import fingerprint, keyed
from tests.support.every import every

STATES: Final = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California",
    "CO": "Colorado", "CT": "Connecticut", "DE": "Delaware", "DC": "District of Columbia",
    "FL": "Florida", "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois",
    "IN": "Indiana", "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana",
    "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota",
    "MS": "Mississippi", "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada",
    "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York",
    "NC": "North Carolina", "ND": "North Dakota", "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon",
    "PA": "Pennsylvania", "RI": "Rhode Island", "SC": "South Carolina", "SD": "South Dakota",
    "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont", "VA": "Virginia",
    "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming",
    "AS": "American Samoa", "GU": "Guam", "MP": "Northern Mariana Islands", "PR": "Puerto Rico",
    "VI": "U.S. Virgin Islands",
}  # fmt: skip
LICENCES: Final = {
    "stripe": ("US", "driving_license"),
    "persona": ("US", "dl"),
    "veriff": ("USA", "DRIVERS_LICENSE"),
    "plaid": ("US", "drivers_license"),
    "didit": ("USA", "Driver's License"),
    "onfido": ("USA", "driving_licence"),
}
NUMBERS: Final = st.text(string.ascii_uppercase + string.digits, min_size=6, max_size=14).filter(
    lambda text: number_of(text) is not None
)
PLACES: Final = st.sampled_from(sorted(STATES))


def spellings(code: str) -> list[str]:
    """How a state is written."""
    name = STATES[code]
    return [code, code.lower(), name, name.upper(), f"US-{code}", f"US_{code}", f"USA {code}",
            f"US {name}", f"USA-{name}", f" {code} "]  # fmt: skip


@given(PLACES, NUMBERS, st.data())
def test_a_licence_is_the_same_in_the_words_of_all_six_providers(
    code: str, number: str, data: st.DataObject
) -> None:
    """Otherwise a buyer revoked at one provider would be verified again at the next."""
    prints = set()
    for country, kind in LICENCES.values():
        region = data.draw(st.sampled_from(spellings(code)))
        written = data.draw(st.sampled_from([number, number.lower(), f" {number} "]))
        prints.add(fingerprint(country, region, kind, written))
    assert len(prints) == 1
    assert prints != {None}


@given(PLACES, PLACES, NUMBERS, st.data())
def test_licences_of_two_states_are_never_the_same(
    one: str, other: str, number: str, data: st.DataObject
) -> None:
    """Each state numbers its own: the same number is somebody else's."""
    assume(one != other)
    kinds = st.sampled_from(list(LICENCES.values()))
    prints = [
        fingerprint(country, data.draw(st.sampled_from(spellings(code))), kind, number)
        for code in (one, other)
        for country, kind in [data.draw(kinds)]
    ]
    assert prints[0] != prints[1]
    assert None not in prints


@every("region", [None, "", "  ", "US", "N/A", "UNKNOWN", "AE", "AP", "XX", "Ontario"])
@every("kind", ["driving_license", "Identity Card", "military_id"])
@every("country", ["US", "USA", "United States", "U.S.A."])
def test_a_card_of_no_known_state_is_nobodys(country: str, kind: str, region: str | None) -> None:
    """The state is not guessed: two people must not become one buyer."""
    assert fingerprint(country, region, kind, "Y7714093") is None


@every(
    ("word", "kind"),
    [
        *((kind, "licence") for _, kind in LICENCES.values()),
        ("uk_driving_licence", "licence"),
        ("id_card", "id_card"),
        ("ID_CARD", "id_card"),
        ("id", "id_card"),
        ("Identity Card", "id_card"),
        ("national_identity_card", "id_card"),
        ("passport", "passport"),
        ("PASSPORT", "passport"),
        ("pp", "passport"),
        ("RESIDENCE_PERMIT", "residence_permit"),
        ("Residence Permit", "residence_permit"),
        ("residence_permit_card", "residence_permit"),
        ("resident_card", "residence_permit"),
        ("pr", "residence_permit"),
        ("passport_card", "PASSPORTCARD"),
        ("ppc", "PPC"),
        ("consular_id", "CONSULARID"),
    ],
)
def test_every_word_for_a_kind_maps_to_one_of_four_or_itself(word: str, kind: str) -> None:
    """A passport card is no passport: it has a number of its own."""
    assert kind_of(word) == kind


@every(
    ("country", "region", "found"),
    [
        ("DEU", None, ("DE", None)),
        ("de", "BY", ("DE", "BY")),
        ("Germany", "", ("GERMANY", None)),
        ("GBR", None, ("GB", None)),
        ("PRI", None, ("US", "PR")),
        ("GU", "anything", ("US", "GU")),
        ("United States of America", "State of Maine", ("US", "ME")),
        ("US", "Commonwealth of Virginia", ("US", "VA")),
        ("US", "Commonwealth of the Northern Mariana Islands", ("US", "MP")),
        ("US", "Washington, D.C.", ("US", "DC")),
        ("USA", "\uff23\uff21", ("US", "CA")),
        ("", "CA", None),
        (None, "CA", None),
    ],
)
def test_an_issuer_has_one_spelling(
    country: str | None, region: str | None, found: tuple[str, str | None] | None
) -> None:
    """ISO and USPS codes if known, else the given text."""
    assert issuer(country, region) == found


def test_a_passport_is_its_countrys_whatever_region_is_named() -> None:
    """Some providers name the holder's state next to it."""
    plain = fingerprint("US", None, "passport", "P77120031")
    assert plain == fingerprint("USA", "California", "PASSPORT", "p 7712-0031") is not None
    assert plain != fingerprint("CA", None, "passport", "P77120031")
    assert plain != fingerprint("US", None, "residence_permit", "P77120031")


def test_provinces_number_their_licences_too() -> None:
    """A Canadian licence without its province identifies no one, a German one needs no region."""
    assert fingerprint("CAN", None, "dl", "S1234-56789") is None
    assert fingerprint("CAN", "ON", "dl", "S1234-56789") == fingerprint(
        "CA", "on", "driving_licence", "S123456789"
    )
    assert fingerprint("DEU", None, "dl", "B072RRE2I55") is not None


@every(
    ("number", "kept"),
    [
        ("d 123-4567", "D1234567"),
        ("D1234567", "D1234567"),
        ("12.345.678/9", "123456789"),
        ("123XX4567", None),
        ("MORGA657054SM9IJ", "MORGA657054SM9IJ"),
        ("000012345", "000012345"),
        ("", None),
        ("1234", None),
        ("ABCDE", None),
        ("AB123", None),
        ("000000000", None),
        ("11111", None),
        ("UNKNOWN", None),
        ("NOT AVAILABLE", None),
        ("ILLEGIBLE", None),
        ("REDACTED", None),
        ("[redacted]", None),
        ("*****1234", None),
        ("\u2588\u2588\u2588\u258812345", None),
        ("-----12345", None),
        ("12345-----", None),
        ("...12345", None),
        ("12345.", None),
        ("12--345678", None),
        ("D1     2345", None),
        ("12xxxx8901", None),
        ("D1XXXXX7234", None),
        ("XXX-XX-12345", None),
        ("12-X-X-X-345", None),
        ("12_345", None),
        ("\uff11\uff12\uff13\uff14\uff15\uff16", None),
        ("\u0661\u0662\u0663\u0664\u0665\u0666", None),
        ("D1234567\n", None),
        ("D\x00123456", None),
        ("1" + "23" * 32, None),
    ],
)
def test_a_number_that_can_be_of_many_is_no_number(number: str, kept: str | None) -> None:
    """Masked, cut off, blank or a word: it would make one buyer of many."""
    assert number_of(number) == kept
    answer = fingerprint("US", "CA", "dl", number)
    assert (answer is None) == (kept is None)


@given(st.text(max_size=20))
def test_no_text_raises_and_a_number_keeps_its_letters_and_digits(text: str) -> None:
    """Whatever a provider sends for a number, there is an answer."""
    kept = number_of(text)
    if kept is not None:
        assert kept == "".join(char for char in text.upper() if char.isalnum())
    fingerprint(text, text, text, text)


@pytest.mark.parametrize("absent", range(4))
def test_without_country_kind_or_number_there_is_no_fingerprint(absent: int) -> None:
    """Half a document would be the same document as somebody else's."""
    words: list[str | None] = ["US", "CA", "dl", "D1234567"]
    assert fingerprint(*words) is not None
    for nothing in (None, "", " ", "-"):
        words[absent] = nothing
        assert fingerprint(*words) is None


def test_a_simulators_documents_never_meet_real_ones() -> None:
    """Nor do those of another address: a rehearsal must not verify a real person."""
    places = [None, "http://127.0.0.1:9000", "http://127.0.0.1:9001", "https://api.stripe.com"]
    prints = [fingerprints(keyed, place)("US", "CA", "dl", "D1234567") for place in places]
    assert len(set(prints)) == len(places)
    slash = fingerprints(keyed, "http://127.0.0.1:9000/")("US", "CA", "dl", "D1234567")
    assert slash == prints[1]


@pytest.mark.parametrize(
    ("written", "logged"),
    [("DRIVERS", ["DRIVERS"]), ("Jane D0e, card", ["other"]), ("Driver's License", [])],
)
def test_an_unknown_kind_of_document_is_logged(written: str, logged: list[str]) -> None:
    """The same licence in this word would be another buyer's; a sentence is not repeated."""
    with capture_logs() as lines:
        didit.read(didit.with_document(document_type=written))
    found = [line["kind"] for line in lines if line["event"] == "document_kind_unknown"]
    assert found == logged
