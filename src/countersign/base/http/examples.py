"""Identifiers in the examples of the OpenAPI document, and the types of members that have them."""

from typing import Annotated, Final

from msgspec import Meta

from countersign.base.http.schemas import ORDER_REFERENCE_MAX, STORABLE, Opaque, Reference

ACCOUNT_ID: Final = "acct_01km9wtz3tfs8v8j2c7n5k9m0c"
CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"
ORDER: Final = "100042"
EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"
CHECKOUT_SESSION_ID: Final = "chk_01km9x4v8gen3rr1p6q1s2t3v6"
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

# What is returned.
AccountId = Annotated[str, Meta(description="The account.", examples=[ACCOUNT_ID])]
AckId = Annotated[str, Meta(examples=[ACK_ID])]
BuyerId = Annotated[str, Meta(examples=[CBID])]
ClearanceId = Annotated[str, Meta(examples=[CLEARANCE_ID])]
CheckoutSessionId = Annotated[str, Meta(examples=[CHECKOUT_SESSION_ID])]
EndpointId = Annotated[str, Meta(examples=[ENDPOINT_ID])]
NoticeId = Annotated[str, Meta(examples=["ab1263"])]
Receipt = Annotated[str, Meta(examples=[RECEIPT])]
SessionId = Annotated[str, Meta(examples=[SESSION])]

# Types of requests have limits: any text, or text that is not empty.
GivenAck = Annotated[Opaque, Meta(examples=[ACK_ID])]
GivenBuyer = Annotated[Opaque, Meta(examples=[CBID])]
GivenNotice = Annotated[Opaque, Meta(examples=["ab1263"])]
GivenSession = Annotated[Opaque, Meta(examples=[SESSION])]
AckReference = Annotated[Reference, Meta(examples=[ACK_ID])]
BuyerReference = Annotated[Reference, Meta(examples=[CBID])]
SessionReference = Annotated[Reference, Meta(examples=[SESSION])]
OrderReference = Annotated[
    str,
    Meta(
        min_length=1,
        # Counted by `NamesOrder`, when they are composed.
        extra_json_schema={**STORABLE, "maxLength": ORDER_REFERENCE_MAX},
        examples=[ORDER],
    ),
]
YOUR_REFERENCE: Final = (
    "What you call the order, such as its number: no name and no e-mail address. At most "
    f"{ORDER_REFERENCE_MAX} characters, which are composed (Unicode NFC)."
)
