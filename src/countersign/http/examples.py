"""Identifiers in the examples of the OpenAPI document, and the parameters of paths."""

from typing import Final

CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"
EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"

PATH_PARAMETERS: Final = {
    "notice_id": ("Identifier of the notice.", "ab1263"),
    "ack_id": ("Identifier of the acknowledgment.", ACK_ID),
    "cbid": ("The buyer identifier.", CBID),
    "clearance_id": ("Identifier of the clearance.", CLEARANCE_ID),
    "event_id": ("Identifier of the event.", EVENT_ID),
    "endpoint_id": ("Identifier of the webhook endpoint.", ENDPOINT_ID),
}
"""Description and example by name."""
