"""All checks of a conformance run, in the order of the report; docs/conformance.md lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from countersign.domain import conformance_checks as requests
from countersign.domain import conformance_webhooks as messages
from countersign.domain.conformance import RETRY_AFTER_SECONDS, Check, Finding
from countersign.domain.conformance_history import History

Judge = Callable[[History], Finding]
JUDGED: Final[tuple[tuple[Check, Judge], ...]] = (
    (
        Check(
            id="version_sent",
            title="An acknowledgment says which text was shown",
            provoked="",
            advice="Send the `version` of the notice that the buyer saw as `notice_version`.",
            page="docs/integrate.md#show-the-notice",
            not_judged="What the buyer's screen showed.",
        ),
        requests.version_sent,
    ),
    (
        Check(
            id="lines_initialed",
            title="Each line is initialed by itself",
            provoked="",
            advice=(
                "Give each line a field of its own, and send the fields in their order: as many "
                "as the notice has `bullets`, none blank."
            ),
            page="docs/integrate.md#send-the-acknowledgment",
            not_judged=(
                "Who typed them. A buyer who initials four lines and a program that repeats one "
                "field four times send the same."
            ),
        ),
        requests.lines_initialed,
    ),
    (
        Check(
            id="refusal_handled",
            title="A refused acknowledgment is collected again",
            provoked="one acknowledgment gets 409 `notice_version_mismatch`",
            advice=(
                "After a refusal, fetch the notice again, show it, and collect the initials "
                "again. Do not go on without an `ack_id`."
            ),
            page="docs/integrate.md#errors",
            not_judged="Whether the buyer saw the text again.",
        ),
        requests.refusal_handled,
    ),
    (
        Check(
            id="unavailable_handled",
            title="Nothing goes on while the identity provider is down",
            provoked=(
                "one verification gets 503 `provider_unavailable`, "
                f"`Retry-After: {RETRY_AFTER_SECONDS}`"
            ),
            advice="Try again after `Retry-After`, and go on only with a verified buyer.",
            page="docs/integrate.md#is-the-buyer-verified",
        ),
        requests.unavailable_handled,
    ),
    (
        Check(
            id="timeout_repeated",
            title="A request whose response was lost is repeated",
            provoked="one acknowledgment is stored, and its response is withheld",
            advice="Repeat the same request: the same body, the same `Idempotency-Key`.",
            page="docs/integrate.md#retries",
        ),
        requests.timeout_repeated,
    ),
    (
        Check(
            id="idempotency_keys",
            title="Each operation has its own Idempotency-Key",
            provoked="",
            advice=(
                "Make a new key for each operation, and keep it until you have a response. Make the"
                " key of a verification from its identity session: a new session needs a new key."
            ),
            page="docs/integrate.md#retries",
        ),
        requests.idempotency_keys,
    ),
    (
        Check(
            id="clearance_first",
            title="A clearance is requested before an order ships",
            provoked="",
            advice=(
                "Send the acknowledgment, buyer and session of this order, ship only after "
                "`cleared` is true, and report the shipment."
            ),
            page="docs/clearances.md#one-acknowledgment-one-buyer-one-order",
            not_judged="What left the warehouse without a report.",
        ),
        requests.clearance_first,
    ),
    (
        Check(
            id="not_cleared_kept",
            title="An order that is not cleared is kept back",
            provoked="one clearance is judged as if the buyer were in `requires_input`",
            advice="Check `cleared`, not the status 200. Act on `reasons`, then request it again.",
            page="docs/clearances.md#reasons",
            not_judged="What left the warehouse without a report.",
        ),
        requests.not_cleared_kept,
    ),
    (
        Check(
            id="webhook_duplicate",
            title="An event that arrives twice is accepted twice, and processed once",
            provoked="a message is sent to each endpoint twice, with the same `webhook-id`",
            advice="Return 2xx, and store the `webhook-id` in the transaction that processes it.",
            page="docs/webhooks.md#receive",
            not_judged="What the second message did inside your systems.",
        ),
        messages.duplicate_accepted,
    ),
    (
        Check(
            id="webhook_signature",
            title="A message that we did not sign is refused",
            provoked="messages are sent unsigned, signed by a stranger, and with another body",
            advice="Verify the signature over the exact bytes of the body; return 400 otherwise.",
            page="docs/webhooks.md#verify",
        ),
        messages.signature_checked,
    ),
    (
        Check(
            id="webhook_timestamp",
            title="A message that was signed long ago is refused",
            provoked="a message is sent that was properly signed an hour ago",
            advice="Refuse a `webhook-timestamp` more than five minutes from now; return 400.",
            page="docs/webhooks.md#verify",
        ),
        messages.age_checked,
    ),
)
"""Each check, and how it is judged."""
