"""All checks of a conformance run, in the order of the report and of docs/conformance.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from countersign_conformance import checks as requests
from countersign_conformance import webhook_checks as messages
from countersign_conformance.history import History
from countersign_conformance.model import RETRY_AFTER_SECONDS, Check, Finding

Evaluate = Callable[[History], Finding]
CATALOGUE: Final[tuple[tuple[Check, Evaluate], ...]] = (
    (
        Check(
            id="version_sent",
            title="An acknowledgment names the text that was shown",
            provoked="",
            advice="Send the `version` of the notice that the buyer saw as `notice_version`.",
            page="/docs/integrate#show-the-notice",
            not_judged="What the buyer saw on the screen.",
        ),
        requests.version_sent,
    ),
    (
        Check(
            id="lines_initialed",
            title="Each line is initialed separately",
            provoked="",
            advice=(
                "Give each line its own field, and send the fields in order: one for each of "
                "the notice's `bullets`, none blank."
            ),
            page="/docs/integrate#send-the-acknowledgment",
            not_judged=(
                "Who typed the initials. A buyer who initials four lines and a program that "
                "copies one field four times send the same request."
            ),
        ),
        requests.lines_initialed,
    ),
    (
        Check(
            id="refusal_handled",
            title="A refused acknowledgment is collected again",
            provoked="one acknowledgment gets the response 409 `notice_version_mismatch`",
            advice=(
                "After a refusal, fetch the notice again, show it, and collect the initials "
                "again. Do not continue without an `ack_id`."
            ),
            page="/docs/integrate#errors",
            not_judged="Whether the buyer saw the text again.",
        ),
        requests.refusal_handled,
    ),
    (
        Check(
            id="unavailable_handled",
            title="No order continues while the identity provider is down",
            provoked=(
                "one verification gets the response 503 `provider_unavailable`, `Retry-After: "
                f"{RETRY_AFTER_SECONDS}`"
            ),
            advice="Send the request again after `Retry-After`, and continue only with a verified "
            "buyer.",
            page="/docs/integrate#is-the-buyer-verified",
        ),
        requests.unavailable_handled,
    ),
    (
        Check(
            id="timeout_repeated",
            title="A request without a response is sent again",
            provoked="one acknowledgment is stored, and its response is lost",
            advice="Send the same request again: same body, same `Idempotency-Key`.",
            page="/docs/integrate#retries",
        ),
        requests.timeout_repeated,
    ),
    (
        Check(
            id="idempotency_keys",
            title="Each request has its own Idempotency-Key",
            provoked="",
            advice=(
                "Make a new key for each request, and keep it until there is a response. Make "
                "the key of a verification from its identity session: a new session needs a new "
                "key."
            ),
            page="/docs/integrate#retries",
        ),
        requests.idempotency_keys,
    ),
    (
        Check(
            id="clearance_first",
            title="A clearance is requested before an order ships",
            provoked="",
            advice=(
                "Send the acknowledgment, buyer and session of this order, ship after `cleared` "
                "is true, and report the shipment."
            ),
            page="/docs/clearances#one-acknowledgment-one-buyer-one-order",
            not_judged="Shipments that were not reported.",
        ),
        requests.clearance_first,
    ),
    (
        Check(
            id="not_cleared_kept",
            title="An order that is not cleared is kept back",
            provoked="one clearance is decided as if the buyer's status were `requires_input`",
            advice="Check `cleared`, not the status 200. Act on `reasons`, then request a "
            "clearance again.",
            page="/docs/clearances#reasons",
            not_judged="Shipments that were not reported.",
        ),
        requests.not_cleared_kept,
    ),
    (
        Check(
            id="webhook_duplicate",
            title="An event that is delivered twice is accepted twice and processed once",
            provoked="each endpoint gets a message twice, with the same `webhook-id`",
            advice="Return 2xx, and store the `webhook-id` in the transaction that processes the "
            "message.",
            page="/docs/webhooks#receive",
            not_judged="The effects of the second message inside your systems.",
        ),
        messages.duplicate_accepted,
    ),
    (
        Check(
            id="webhook_signature",
            title="A message without a valid signature is refused",
            provoked=(
                "each endpoint gets messages without a signature, signed with a wrong key, and "
                "with a changed body"
            ),
            advice="Verify the signature over the exact bytes of the body; otherwise return 400.",
            page="/docs/webhooks#verify",
        ),
        messages.signature_checked,
    ),
    (
        Check(
            id="webhook_timestamp",
            title="A message with an old signature is refused",
            provoked="each endpoint gets a message with a valid signature from an hour ago",
            advice="Refuse a `webhook-timestamp` more than five minutes from now; return 400.",
            page="/docs/webhooks#verify",
        ),
        messages.age_checked,
    ),
)
"""Each check, with the function that evaluates it."""
