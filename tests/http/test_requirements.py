"""`POST /v1/requirements`: the needs of an order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign.core.access.key import Scope
from tests.http.backstage import Operator, Vendor, another_deployment, make_client, notice_file
from tests.http.calls import SHIPPED_NOTICE, refusal
from tests.http.conftest import Configured
from tests.support.service import Server, running_server

pytestmark = pytest.mark.one_engine

PATH = "/v1/requirements"
ORDER = {"product_classes": ["accessory"], "ship_to": {"state": "CA", "zip": "94105"}}
RULE = """
[applies_to]
version = "1"
source = "Law 1"
product_classes = ["{class_}"]
delivered_to = ["WY"]
residents_of = []
identity_checks = []
"""


def about(answer: Mapping[str, Any], notice_id: str = SHIPPED_NOTICE) -> dict[str, Any]:
    """The response's part about one notice."""
    (found,) = [dict(n) for n in answer["notices"] if n["notice_id"] == notice_id]
    return found


@pytest.fixture
def only_shipped(tmp_path: Path) -> Iterator[httpx2.Client]:
    """Give a test key of a deployment that has no notices but the shipped one."""
    own = another_deployment(tmp_path / "data")
    key = own.key(own.account("alone"))
    with running_server(own) as server, server.client(key) as client:
        yield client


def test_a_test_key_gets_the_whole_answer(only_shipped: httpx2.Client) -> None:
    """By the draft of the shipped rule, marked as a draft."""
    body = ORDER | {"product_classes": ["accessory", "barrel"]}
    answer = only_shipped.post(PATH, json=body).json()
    assert answer["decision"] == "required"
    assert about(answer) == {
        "notice_id": SHIPPED_NOTICE,
        "version": "2026-01-01-incomplete",
        "required": "required",
        "rule": {"id": SHIPPED_NOTICE, "version": "1"},
        "reviewed": False,
        "reasons": ["delivered_to_state"],
        "exemption": None,
    }
    assert answer["identity"] == {
        "required": "required",
        "checks": ["age", "address"],
        "minimum_age": 18,
        "rules": [{"id": SHIPPED_NOTICE, "version": "1"}],
    }
    assert answer["obligations"] == [{"type": "compared", "what": "zip"}]
    (warning,) = answer["warnings"]
    assert (warning["type"], warning["product_class"]) == ("not_sufficient", "barrel")
    assert (answer["exemption"], answer["livemode"]) == (None, False)


def test_a_draft_never_tells_a_live_key_that_nothing_is_needed(vendor: Vendor) -> None:
    elsewhere = ORDER | {"ship_to": {"state": "NV"}, "residence_state": "NV"}
    assert about(vendor.test.post(PATH, json=elsewhere).json())["required"] == "not_required"
    live = vendor.live.post(PATH, json=elsewhere).json()
    assert (live["decision"], live["livemode"]) == ("unknown", True)
    assert about(live)["version"] is None
    assert about(live)["reasons"] == ["not_reviewed", "no_version_in_force"]
    required = vendor.live.post(PATH, json=ORDER).json()
    assert required["decision"] == "required"


def test_an_unknown_residence_counts_as_unknown(vendor: Vendor) -> None:
    body = ORDER | {"ship_to": {"state": "NV"}}
    answer = vendor.test.post(PATH, json=body).json()
    assert about(answer)["reasons"] == ["residence_unknown"]


def test_a_new_law_is_a_new_file(configured: Configured, configured_vendor: Vendor) -> None:
    """Its rule, once reviewed, decides for live keys, about a class that was not known before."""
    live, body = configured_vendor.live, ORDER | {"product_classes": ["umbrella"]}
    wyoming = body | {"ship_to": {"state": "WY"}}
    clearance = {
        "ack_id": "ack_00000000000000000000000000",
        "cbid": "cbid_00000000000000000000000000",
        "session_id": "s",
        "order_reference": "1",
        "shipping_zip": "82001",
        "product_class": "umbrella",
    }
    assert refusal(live.post("/v1/clearances", json=clearance)) == (400, "invalid_request")
    file = notice_file("umbrellas", "1", applies_to=RULE.format(class_="umbrella"))
    configured.operator.publish(file)
    draft = about(live.post(PATH, json=body).json(), "umbrellas")
    assert (draft["required"], draft["reviewed"]) == ("unknown", False)
    assert about(live.post(PATH, json=wyoming).json(), "umbrellas")["required"] == "required"
    configured.operator.publish(file, rule="1")
    reviewed = about(live.post(PATH, json=body).json(), "umbrellas")
    assert (reviewed["required"], reviewed["reviewed"]) == ("not_required", True)
    assert reviewed["version"] == "1"
    assert live.post("/v1/clearances", json=clearance).status_code == 200


def test_assertions_are_returned_and_change_nothing(vendor: Vendor) -> None:
    exemption = {"reason": "licensed dealer", "evidence_reference": "doc-2931"}
    answer = vendor.test.post(PATH, json=ORDER | {"exemption": exemption}).json()
    unstated = {"kind": None, "number": None, "expires_on": None}
    plain = vendor.test.post(PATH, json=ORDER).json()
    assert answer == plain | {"exemption": exemption | unstated}


def test_a_repeated_request_is_decided_again(vendor: Vendor) -> None:
    keyed = {"Idempotency-Key": "cart-1"}
    first = vendor.test.post(PATH, json=ORDER, headers=keyed)
    again = vendor.test.post(PATH, json=ORDER, headers=keyed)
    assert first.content == again.content
    assert again.headers["Idempotent-Replayed"] == "true"
    other = ORDER | {"product_classes": ["barrel"]}
    reused = vendor.test.post(PATH, json=other, headers=keyed)
    assert refusal(reused) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"product_classes": []}, "$.product_classes"),
        ({"product_classes": ["Two Words"]}, "$.product_classes[0]"),
        ({"ship_to": {"state": "ca"}}, "$.ship_to.state"),
        ({"ship_to": {"state": "CA", "zip": "9410"}}, "$.ship_to.zip"),
        ({"ship_to": {"zip": "94105"}}, "$.ship_to"),
        ({"residence_state": "Nevada"}, "$.residence_state"),
        ({"exemption": {"evidence_reference": "doc"}}, "$.exemption"),
        ({"exemption": {"reason": ""}}, "$.exemption.reason"),
        ({"age": 21}, "$.age"),
    ],
)
def test_a_mistake_is_refused_and_named(
    vendor: Vendor, changed: dict[str, object], where: str
) -> None:
    answer = vendor.test.post(PATH, json=ORDER | changed)
    assert refusal(answer) == (400, "invalid_request")
    assert where in answer.json()["error"]["message"]


def test_a_wrong_state_is_explained_by_a_state(vendor: Vendor) -> None:
    answer = vendor.test.post(PATH, json=ORDER | {"ship_to": {"state": "ca"}})
    assert answer.json()["error"]["message"] == (
        "Expected a value such as CA - at `$.ship_to.state`."
    )


def test_the_scope_is_that_of_reading_notices(operator: Operator, server: Server) -> None:
    account = operator.account()
    (reading, other) = operator.keys(
        account, [("test", [Scope.NOTICES_READ]), ("test", [Scope.ACKS_READ])]
    )
    with make_client(server, reading.token) as may, make_client(server, other.token) as may_not:
        assert may.post(PATH, json=ORDER).status_code == 200
        assert refusal(may_not.post(PATH, json=ORDER)) == (403, "forbidden")
