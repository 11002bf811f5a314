"""Client for Countersign: notices, acknowledgments, buyer verification and clearances.

`Countersign` waits for responses, `AsyncCountersign` is for `await`. Both have the operations of
the API by what they are about (`client.notices.retrieve("ab1263")`) and raise a `CountersignError`.
"""

from countersign_client import errors, types
from countersign_client.call import Page
from countersign_client.client import AsyncCountersign, Countersign
from countersign_client.declaring import AsyncListing, Listing
from countersign_client.failure import (
    ConnectionFailed,
    CountersignError,
    InvalidClearanceToken,
    InvalidSignature,
    TimedOut,
    UnexpectedResponse,
)
from countersign_client.retries import Retries
from countersign_client.tokens import ClearanceClaims, SigningKeys, verify_clearance_token
from countersign_client.webhooks import Webhooks

__all__ = [
    "AsyncCountersign",
    "AsyncListing",
    "ClearanceClaims",
    "ConnectionFailed",
    "Countersign",
    "CountersignError",
    "InvalidClearanceToken",
    "InvalidSignature",
    "Listing",
    "Page",
    "Retries",
    "SigningKeys",
    "TimedOut",
    "UnexpectedResponse",
    "Webhooks",
    "errors",
    "types",
    "verify_clearance_token",
]
