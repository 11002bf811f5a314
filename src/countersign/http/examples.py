"""Identifiers in the examples of the OpenAPI document."""

from typing import Final

CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"
EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"
RECEIPT: Final = """\
evidence.example.com/receipt/v1
record UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw=
index 0

evidence.example.com/receipt/v1
evidence.example.com/v1/log/test/1
1
HquBULd52pMW0uW2N11k7pGo4SxQ/Hc4anzyLnkLR98=
sealed-by 2026-11-21T21:31:00.000Z

\u2014 evidence.example.com/v1/log/test/1 \
i6denVROSMkOe4IWj7YfxyBeC9rnHo2nx7SICBuNKDTxIOShd/QAHnahieK+3wvFtUYdqg6IDRajbZ+sNBBQmV1d+QM=
"""
