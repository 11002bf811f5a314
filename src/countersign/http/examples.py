"""Identifiers in the examples of the OpenAPI document."""

from typing import Final

CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"
EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"
