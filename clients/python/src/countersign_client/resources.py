"""The operations of the API.

Written by `make clients` from spec/openapi.json: do not edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Literal, TypeVar

from countersign_client import types
from countersign_client.call import Call, Page, Time, key_or_new, segment, waiting
from countersign_client.declaring import Resource, listing, operation
from countersign_client.sending import AsyncSender, Sender

S = TypeVar("S", bound=Sender | AsyncSender)


class Notices(Resource[S]):
    """The notices that buyers initial."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.NoticeSummary]]:
        """List the notices.

        The notices of the registry, by id.

        Needs the scope `notices:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of that page's last notice.
        """
        return Call(
            method="GET",
            path="/v1/notices",
            returns=Page[types.NoticeSummary],
            query={"limit": limit, "after": after},
        )

    @operation
    def retrieve(
        self,
        notice_id: str,
        *,
        version: str | None = None,
    ) -> Call[types.Notice]:
        """Get the notice to show.

        The notice in force for the key's mode, or the requested version.

        Needs the scope `notices:read`.

        - `version`: An older version. Left out: the version in force for the key's mode.
        """
        return Call(
            method="GET",
            path=f"/v1/notices/{segment(notice_id)}",
            returns=types.Notice,
            query={"version": version},
            revalidated=True,
        )

    @listing
    def list_versions(
        self,
        notice_id: str,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.NoticeVersion]]:
        """List the versions of a notice, newest first.

        The published versions of a notice, newest first.

        Needs the scope `notices:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last version.
        """
        return Call(
            method="GET",
            path=f"/v1/notices/{segment(notice_id)}/versions",
            returns=Page[types.NoticeVersion],
            query={"limit": limit, "after": after},
        )

    @operation
    def acknowledge(
        self,
        notice_id: str,
        *,
        initials_per_line: Sequence[str],
        session_id: str | None = None,
        cbid: str | None = None,
        order_reference: str | None = None,
        ip: str | None = None,
        user_agent: str | None = None,
        notice_version: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.AcknowledgmentReceipt]:
        """Store a buyer's initials on every line.

        Store the initials of a buyer for every line of the notice in force.

        Needs the scope `acks:create`.

        - `initials_per_line`: One element per bullet of the notice, in order; none may be blank.
        - `session_id`: Your checkout session: random, not an order number.
        - `cbid`: The buyer identifier.
        - `order_reference`: What you call the order, such as its number: no name and no e-mail
          address. At most 64 characters, which are composed (Unicode NFC).
        - `ip`: The buyer's IPv4 or IPv6 address. Left out: taken from the request.
        - `user_agent`: The buyer's browser. Left out: the `User-Agent` of the request.
        - `notice_version`: The version that was shown; refused unless it is in force now.
        """
        return Call(
            method="POST",
            path=f"/v1/notices/{segment(notice_id)}/acknowledge",
            returns=types.AcknowledgmentReceipt,
            body={
                "initials_per_line": initials_per_line,
                "session_id": session_id,
                "cbid": cbid,
                "order_reference": order_reference,
                "ip": ip,
                "user_agent": user_agent,
                "notice_version": notice_version,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Requirements(Resource[S]):
    """What an order needs."""

    @operation
    def retrieve(
        self,
        *,
        product_classes: Sequence[str],
        ship_to: types.DestinationInput,
        residence_state: str | None = None,
        exemption: types.ExemptionInput | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.Requirements]:
        """Find out what an order needs.

        What an order needs, by the rules of the notices: ask before you show the checkout.

        Nothing is stored. A repeated request is decided again, also with the same
        `Idempotency-Key`.

        Needs the scope `notices:read`.

        - `product_classes`: The class of each product. One that no rule names is unknown.
        - `residence_state`: The state in which the buyer lives; left out: not known.
        """
        return Call(
            method="POST",
            path="/v1/requirements",
            returns=types.Requirements,
            body={
                "product_classes": product_classes,
                "ship_to": ship_to,
                "residence_state": residence_state,
                "exemption": exemption,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Acknowledgments(Resource[S]):
    """Stored initials, and their evidence."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        session_id: str | None = None,
        cbid: str | None = None,
        order_reference: str | None = None,
        notice_id: str | None = None,
        accepted_after: Time | None = None,
        accepted_before: Time | None = None,
    ) -> Call[Page[types.Acknowledgment]]:
        """Find acknowledgments, newest first.

        The account's acknowledgments, newest first.

        Needs the scope `acks:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of that page's last
          acknowledgment.
        - `session_id`: Only items with this checkout session.
        - `cbid`: Only items with this buyer identifier.
        - `order_reference`: Only items with this order reference.
        - `notice_id`: Only acknowledgments of this notice.
        - `accepted_after`: Only acknowledgments accepted at or after this time.
        - `accepted_before`: Only acknowledgments accepted before this time.
        """
        return Call(
            method="GET",
            path="/v1/acknowledgments",
            returns=Page[types.Acknowledgment],
            query={
                "limit": limit,
                "after": after,
                "session_id": session_id,
                "cbid": cbid,
                "order_reference": order_reference,
                "notice_id": notice_id,
                "accepted_after": accepted_after,
                "accepted_before": accepted_before,
            },
        )

    @operation
    def retrieve(
        self,
        ack_id: str,
    ) -> Call[types.Acknowledgment]:
        """Get one acknowledgment.

        One acknowledgment of this account.

        Needs the scope `acks:read`.
        """
        return Call(
            method="GET",
            path=f"/v1/acknowledgments/{segment(ack_id)}",
            returns=types.Acknowledgment,
        )

    @operation
    def proof(
        self,
        ack_id: str,
        *,
        wait_seconds: int | None = None,
    ) -> Call[str]:
        """Get the proof that the log contains the record.

        The proof that the log contains the record of an acknowledgment.

        A text file in the format `c2sp.org/tlog-proof@v1`, with the record in its `extra` line.
        The file changes only when a witness or a time-stamp authority signs a later checkpoint.

        Needs the scope `evidence:read`.

        - `wait_seconds`: How long to wait for sealing, at most 10.
        """
        return Call(
            method="GET",
            path=f"/v1/acknowledgments/{segment(ack_id)}/proof",
            returns=str,
            headers={"Prefer": waiting(wait_seconds)},
        )

    @operation
    def certificate(
        self,
        ack_id: str,
        *,
        disclose: str | None = None,
        size: int | None = None,
        wait_seconds: int | None = None,
    ) -> Call[bytes]:
        """Get the certificate of an acknowledgment for people, as a PDF.

        The PDF of the dossier, `dossier.pdf`, with the evidence attached.

        The PDF alone is for people: what can be verified is the dossier.

        Needs the scope `evidence:read`.

        - `disclose`: The personal fields to show, over all records, separated by commas:
          `initials_per_line`, `session_id`, `cbid`, `ip`, `user_agent`, `process`,
          `order_reference`, `shipping`, `verification`, `carrier`, `tracking_number`,
          `provider_identity_session_id`, `result`, `evidence_sha256`, `override`, or `none`. Left
          out: all of them.
        - `size`: The size of the checkpoint of the log to prove it by. Records that it does not
          hold are left out.
        - `wait_seconds`: How long to wait for sealing, at most 10.
        """
        return Call(
            method="GET",
            path=f"/v1/acknowledgments/{segment(ack_id)}/certificate",
            returns=bytes,
            query={"disclose": disclose, "size": size},
            headers={"Prefer": waiting(wait_seconds)},
        )

    @operation
    def dossier(
        self,
        ack_id: str,
        *,
        disclose: str | None = None,
        size: int | None = None,
        wait_seconds: int | None = None,
    ) -> Call[bytes]:
        """Get everything needed to verify an acknowledgment and its order, as a ZIP file.

        As that of its clearance; of several clearances, the newest that was granted.

        Needs the scope `evidence:read`.

        - `disclose`: The personal fields to show, over all records, separated by commas:
          `initials_per_line`, `session_id`, `cbid`, `ip`, `user_agent`, `process`,
          `order_reference`, `shipping`, `verification`, `carrier`, `tracking_number`,
          `provider_identity_session_id`, `result`, `evidence_sha256`, `override`, or `none`. Left
          out: all of them.
        - `size`: The size of the checkpoint of the log to prove it by. Records that it does not
          hold are left out.
        - `wait_seconds`: How long to wait for sealing, at most 10.
        """
        return Call(
            method="GET",
            path=f"/v1/acknowledgments/{segment(ack_id)}/dossier",
            returns=bytes,
            query={"disclose": disclose, "size": size},
            headers={"Prefer": waiting(wait_seconds)},
        )


class Buyers(Resource[S]):
    """Buyers and their verification."""

    @operation
    def verify(
        self,
        *,
        provider_identity_session_id: str | None = None,
        shipping_zip: str | None = None,
        test_mode: bool | None = None,
        subject_reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerVerification]:
        """Check an identity session, and issue or refresh a cbid.

        Check a session at the identity provider, and issue or refresh a cbid.

        Needs the scope `buyers:verify`.

        - `provider_identity_session_id`: The session at the identity provider. Required with a live
          key.
        - `shipping_zip`: The order's destination: ZIP or ZIP+4. Required with a live key.
        - `test_mode`: Must be true with a test key, and absent or false with a live key.
        - `subject_reference`: Your reference for the buyer; must equal the reference in the
          session.
        """
        return Call(
            method="POST",
            path="/v1/buyers/verify",
            returns=types.BuyerVerification,
            body={
                "provider_identity_session_id": provider_identity_session_id,
                "shipping_zip": shipping_zip,
                "test_mode": test_mode,
                "subject_reference": subject_reference,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def status(
        self,
        cbid: str,
    ) -> Call[types.BuyerStatusAnswer]:
        """Get the status of a buyer.

        The present status of a buyer, as far as this account may rely on it.

        Needs the scope `buyers:read`.
        """
        return Call(
            method="GET",
            path=f"/v1/buyers/{segment(cbid)}/status",
            returns=types.BuyerStatusAnswer,
        )

    @listing
    def list_reviews(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        status: Literal["failed", "pending", "requires_input"] | None = None,
    ) -> Call[Page[types.BuyerReview]]:
        """List the buyers that wait for a review.

        Buyers whose last attempt did not verify them, oldest attempt first.

        Only attempts of this account, and not those that were dismissed.

        Needs the scope `buyers:review`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the verification of that page's last
          buyer.
        - `status`: Only buyers with this status.
        """
        return Call(
            method="GET",
            path="/v1/buyers/reviews",
            returns=Page[types.BuyerReview],
            query={"limit": limit, "after": after, "status": status},
        )

    @operation
    def review(
        self,
        cbid: str,
        *,
        decision: types.ReviewDecision,
        reason: str,
        zip: str | None = None,
        document: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerVerification]:
        """Decide on a buyer in the review queue.

        Decide on a buyer in the review queue. The audit log names the key that decided.

        `accept_zip` accepts another ZIP code on sight of a document, if a provider approved the
        person for this account; all other rules are applied again. `dismiss` takes the buyer out
        of the queue until the next attempt; the status stays as it is.

        Needs the scope `buyers:review`.

        - `reason`: Why, such as the number of a case. Kept permanently: nothing personal.
        - `zip`: With `accept_zip`, required: the ZIP code to accept.
        - `document`: With `accept_zip`, required: the kind of document that you checked, such as a
          utility bill. Kept permanently: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/review",
            returns=types.BuyerVerification,
            body={"decision": decision, "reason": reason, "zip": zip, "document": document},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class CheckoutSessions(Resource[S]):
    """Links for one buyer and one order."""

    @operation
    def create(
        self,
        *,
        return_url: str,
        session_id: str,
        order_reference: str | None = None,
        collect: Sequence[types.Collected] | None = None,
        notice_id: str | None = None,
        cart: types.CartInput | None = None,
        cbid: str | None = None,
        shipping_zip: str | None = None,
        product_class: str | None = None,
        order: types.OrderInput | None = None,
        origin: str | None = None,
        locale: Literal["en", "es"] | None = None,
        expires_in_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.CheckoutSession]:
        """Create a link for one buyer and one order.

        Create a link for one buyer and one order. Its url and token are returned only once.

        Needs the scope `checkout_sessions:create`.

        - `return_url`: Where the buyer goes afterwards: http or https, with only identifiers added
          to its query. With live keys its origin must be registered.
        - `session_id`: Your checkout session: random, not an order number.
        - `order_reference`: What you call the order, such as its number: no name and no e-mail
          address. At most 64 characters, which are composed (Unicode NFC).
        - `collect`: What is collected; left out: the acknowledgment. The identity comes first.
        - `notice_id`: The notice to acknowledge. Required if an acknowledgment is collected.
        - `cart`: What is ordered, in the place of `collect` and `notice_id`: what the requirements
          say of it is collected, the identity only if no `cbid` is given.
        - `cbid`: The buyer identifier, if known. With the identity to collect, this buyer is asked
          for a new check.
        - `shipping_zip`: The order's destination. With it, and a buyer, a clearance is decided.
        - `product_class`: The class of the product, such as `accessory`.
        - `order`: What the buyer's page shows of the order. It is kept encrypted with the session
          and deleted with it: it is returned by nothing, and in no record or event.
        - `origin`: Scheme, host and port of the page that embeds the component.
        - `locale`: Language of the page; left out: the browser's.
        - `expires_in_seconds`: How long the link works, 24 hours at most; left out: 30 minutes.
        """
        return Call(
            method="POST",
            path="/v1/checkout_sessions",
            returns=types.CheckoutSession,
            body={
                "return_url": return_url,
                "session_id": session_id,
                "order_reference": order_reference,
                "collect": collect,
                "notice_id": notice_id,
                "cart": cart,
                "cbid": cbid,
                "shipping_zip": shipping_zip,
                "product_class": product_class,
                "order": order,
                "origin": origin,
                "locale": locale,
                "expires_in_seconds": expires_in_seconds,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        session_id: str | None = None,
        order_reference: str | None = None,
    ) -> Call[Page[types.CheckoutSession]]:
        """List checkout sessions, newest first.

        The checkout sessions of this account and mode, newest first.

        Needs the scope `checkout_sessions:create`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of that page's last session.
        - `session_id`: Only items with this checkout session of yours.
        - `order_reference`: Only items with this order reference.
        """
        return Call(
            method="GET",
            path="/v1/checkout_sessions",
            returns=Page[types.CheckoutSession],
            query={
                "limit": limit,
                "after": after,
                "session_id": session_id,
                "order_reference": order_reference,
            },
        )

    @operation
    def retrieve(
        self,
        checkout_session_id: str,
    ) -> Call[types.CheckoutSession]:
        """Get one checkout session.

        One checkout session. Decide by its `status`, never by where the buyer's browser returns.

        Needs the scope `checkout_sessions:create`.
        """
        return Call(
            method="GET",
            path=f"/v1/checkout_sessions/{segment(checkout_session_id)}",
            returns=types.CheckoutSession,
        )

    @operation
    def cancel(
        self,
        checkout_session_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.CheckoutSession]:
        """Cancel an open checkout session.

        Cancel an open checkout session: its link collects nothing any more.

        Needs the scope `checkout_sessions:create`.
        """
        return Call(
            method="POST",
            path=f"/v1/checkout_sessions/{segment(checkout_session_id)}/cancel",
            returns=types.CheckoutSession,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class CurrentCheckoutSession(Resource[S]):
    """The session of a client token, which is the key of this client."""

    @operation
    def retrieve(
        self,
    ) -> Call[types.CurrentCheckoutSession]:
        """Get the session of a client token.

        The session of this client token, with the notice to show.
        """
        return Call(
            method="GET",
            path="/v1/checkout_sessions/current",
            returns=types.CurrentCheckoutSession,
        )

    @operation
    def claim_events(
        self,
        *,
        events: Sequence[types.ClaimedInput],
        viewport: types.ViewportInput | None = None,
    ) -> Call[types.Nothing]:
        """Report what the buyer did, as the browser claims.

        Keep what the browser says that the buyer did. The record marks it as claimed.
        """
        return Call(
            method="POST",
            path="/v1/checkout_sessions/current/events",
            returns=types.Nothing,
            body={"events": events, "viewport": viewport},
            repeatable=False,
        )

    @operation
    def acknowledge(
        self,
        *,
        initials_per_line: Sequence[str],
        notice_version: str,
        notice_digest: str,
        agreement: bool,
        consent: bool,
        surface_digest: str | None = None,
    ) -> Call[types.CurrentCheckoutSession]:
        """Acknowledge, and complete the session.

        Acknowledge with the initials on every line, and complete the session.

        Sent again with the same initials, it returns the same.

        - `initials_per_line`: One element per bullet of the notice, in order; none may be blank.
        - `notice_version`: The version that was shown.
        - `notice_digest`: SHA-256 of the notice bytes that were shown.
        - `agreement`: Must be true: the sentence was agreed to.
        - `consent`: Must be true: so was the electronic form.
        - `surface_digest`: SHA-256 of the component's file, hexadecimal, if it is known.
        """
        return Call(
            method="POST",
            path="/v1/checkout_sessions/current/acknowledge",
            returns=types.CurrentCheckoutSession,
            body={
                "initials_per_line": initials_per_line,
                "notice_version": notice_version,
                "notice_digest": notice_digest,
                "agreement": agreement,
                "consent": consent,
                "surface_digest": surface_digest,
            },
            repeatable=False,
        )

    @operation
    def decline(
        self,
    ) -> Call[types.CurrentCheckoutSession]:
        """Decline, and end the session.

        End the session because the buyer declines.
        """
        return Call(
            method="POST",
            path="/v1/checkout_sessions/current/decline",
            returns=types.CurrentCheckoutSession,
            body={},
            repeatable=False,
        )


class Clearances(Resource[S]):
    """Decisions whether an order may ship."""

    @operation
    def create(
        self,
        *,
        ack_id: str,
        cbid: str,
        shipping_zip: str,
        session_id: str,
        order_reference: str | None = None,
        product_class: str | None = None,
        shipping_address: types.ShippingAddressInput | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.ClearanceDecision]:
        """Decide whether an order may ship.

        Decide whether an order may ship. The response contains every reason against it.

        Needs the scope `clearances:create`.

        - `ack_id`: The acknowledgment of the notice.
        - `cbid`: The buyer identifier.
        - `shipping_zip`: The order's destination: ZIP or ZIP+4.
        - `session_id`: Your checkout session, the same as in the acknowledgment.
        - `order_reference`: What you call the order, such as its number: no name and no e-mail
          address. At most 64 characters, which are composed (Unicode NFC). Left out: the
          acknowledgment's.
        - `product_class`: The class of the product: `accessory`, `manufacturing_machine`, `barrel`,
          or another class that a notice names. The account may require it for live orders.
        - `shipping_address`: Must contain the ZIP code; the rest is not compared.
        """
        return Call(
            method="POST",
            path="/v1/clearances",
            returns=types.ClearanceDecision,
            body={
                "ack_id": ack_id,
                "cbid": cbid,
                "shipping_zip": shipping_zip,
                "session_id": session_id,
                "order_reference": order_reference,
                "product_class": product_class,
                "shipping_address": shipping_address,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        ack_id: str | None = None,
        session_id: str | None = None,
        cbid: str | None = None,
        order_reference: str | None = None,
    ) -> Call[Page[types.Clearance]]:
        """Find clearances, newest first.

        The account's clearances, newest first.

        Needs the scope `clearances:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of that page's last clearance.
        - `ack_id`: Only clearances requested with this acknowledgment.
        - `session_id`: Only items with this checkout session.
        - `cbid`: Only items with this buyer identifier.
        - `order_reference`: Only items with this order reference.
        """
        return Call(
            method="GET",
            path="/v1/clearances",
            returns=Page[types.Clearance],
            query={
                "limit": limit,
                "after": after,
                "ack_id": ack_id,
                "session_id": session_id,
                "cbid": cbid,
                "order_reference": order_reference,
            },
        )

    @operation
    def retrieve(
        self,
        clearance_id: str,
    ) -> Call[types.Clearance]:
        """Get one clearance, with the reports of its fulfilment.

        One clearance of this account.

        Needs the scope `clearances:read`.
        """
        return Call(
            method="GET",
            path=f"/v1/clearances/{segment(clearance_id)}",
            returns=types.Clearance,
        )

    @operation
    def fulfil(
        self,
        clearance_id: str,
        *,
        carrier: str | None = None,
        tracking_number: str | None = None,
        shipped_at: Time | None = None,
        delivered_at: Time | None = None,
        adult_signature_obtained: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.FulfilmentReceipt]:
        """Report the fulfilment of an order, step by step.

        Report the fulfilment of an order, in one step or in several.

        The order is closed when every obligation is reported; it still takes what was not
        reported before, such as the delivery. A report cannot be changed, and a report that
        repeats what is known gets the receipt of the earlier one.

        Needs the scope `clearances:create`.
        """
        return Call(
            method="POST",
            path=f"/v1/clearances/{segment(clearance_id)}/fulfilment",
            returns=types.FulfilmentReceipt,
            body={
                "carrier": carrier,
                "tracking_number": tracking_number,
                "shipped_at": shipped_at,
                "delivered_at": delivered_at,
                "adult_signature_obtained": adult_signature_obtained,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def dossier(
        self,
        clearance_id: str,
        *,
        disclose: str | None = None,
        size: int | None = None,
        wait_seconds: int | None = None,
    ) -> Call[bytes]:
        """Get the evidence of a cleared or refused order, as a ZIP file.

        All records of one order in one ZIP file, under one checkpoint, with their proofs.

        These are the acknowledgment, the identity check that the decision relied on, the
        clearance, reports of fulfilment, events of the notice, erasures, and the records of
        operator, account and capture process that these name. Readers say what joins them, and
        what is missing.

        The same request returns the same bytes for the same `size`. They change when a witness
        cosigns or a time-stamp authority stamps that checkpoint, when fields are erased, when
        the operator changes the witnesses, and with another release of the service, its fonts or
        its tools. Without `size` the checkpoint is the first one that holds all the records: a
        new record of the order changes the bytes too.

        Needs the scope `evidence:read`.

        - `disclose`: The personal fields to show, over all records, separated by commas:
          `initials_per_line`, `session_id`, `cbid`, `ip`, `user_agent`, `process`,
          `order_reference`, `shipping`, `verification`, `carrier`, `tracking_number`,
          `provider_identity_session_id`, `result`, `evidence_sha256`, `override`, or `none`. Left
          out: all of them.
        - `size`: The size of the checkpoint of the log to prove it by. Records that it does not
          hold are left out.
        - `wait_seconds`: How long to wait for sealing, at most 10.
        """
        return Call(
            method="GET",
            path=f"/v1/clearances/{segment(clearance_id)}/dossier",
            returns=bytes,
            query={"disclose": disclose, "size": size},
            headers={"Prefer": waiting(wait_seconds)},
        )


class Events(Resource[S]):
    """What has happened."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        type: types.EventType | None = None,
        since: Time | None = None,
    ) -> Call[Page[types.Event]]:
        """List events, oldest first.

        The account's events, oldest first. No event is skipped, and the order never changes.

        To follow the events, keep the `id` of the last event and send it as `after` in the next
        request.

        Needs the scope `events:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of its last event.
        - `type`: Only events of this type.
        - `since`: Only events at or after this time.
        """
        return Call(
            method="GET",
            path="/v1/events",
            returns=Page[types.Event],
            query={"limit": limit, "after": after, "type": type, "since": since},
        )

    @operation
    def retrieve(
        self,
        event_id: str,
    ) -> Call[types.Event]:
        """Get one event.

        One event of this account.

        Needs the scope `events:read`.
        """
        return Call(
            method="GET",
            path=f"/v1/events/{segment(event_id)}",
            returns=types.Event,
        )


class WebhookEndpoints(Resource[S]):
    """The endpoints that get events, and deliveries to them."""

    @operation
    def create(
        self,
        *,
        url: str,
        description: str | None = None,
        event_types: Sequence[types.EventType] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.NewWebhookEndpoint]:
        """Create a webhook endpoint.

        Create an endpoint that gets events from now on. Its secret is returned only once.

        Needs the scope `webhooks:manage`.

        - `url`: The https URL that gets the events.
        - `description`: A note for your own use.
        - `event_types`: The event types to send. Left out: all, including types of later releases.
        """
        return Call(
            method="POST",
            path="/v1/webhook_endpoints",
            returns=types.NewWebhookEndpoint,
            body={"url": url, "description": description, "event_types": event_types},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.WebhookEndpoint]]:
        """List the webhook endpoints, oldest first.

        The webhook endpoints of this account and mode, oldest first.

        Needs the scope `webhooks:manage`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of that page's last endpoint.
        """
        return Call(
            method="GET",
            path="/v1/webhook_endpoints",
            returns=Page[types.WebhookEndpoint],
            query={"limit": limit, "after": after},
        )

    @operation
    def retrieve(
        self,
        endpoint_id: str,
    ) -> Call[types.WebhookEndpoint]:
        """Get one webhook endpoint.

        One webhook endpoint, without its secret.

        Needs the scope `webhooks:manage`.
        """
        return Call(
            method="GET",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}",
            returns=types.WebhookEndpoint,
        )

    @operation
    def change(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        description: str | None = None,
        event_types: Sequence[types.EventType] | None = None,
        every_event_type: bool | None = None,
        disabled: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.WebhookEndpoint]:
        """Change, disable or enable a webhook endpoint.

        Change a webhook endpoint, disable it, or enable it again.

        Running servers apply the change within seconds. Events from the time while the endpoint
        was disabled are not sent automatically: use recover.

        Needs the scope `webhooks:manage`.

        - `url`: The https URL that gets the events.
        - `description`: A note for your own use.
        - `event_types`: The only event types to send from now on.
        - `every_event_type`: Send all types again, in the place of `event_types`.
        """
        return Call(
            method="PATCH",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}",
            returns=types.WebhookEndpoint,
            body={
                "url": url,
                "description": description,
                "event_types": event_types,
                "every_event_type": every_event_type,
                "disabled": disabled,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def delete(
        self,
        endpoint_id: str,
    ) -> Call[types.DeletedWebhookEndpoint]:
        """Delete a webhook endpoint.

        Delete a webhook endpoint and its secrets. It gets no more events.

        Needs the scope `webhooks:manage`.
        """
        return Call(
            method="DELETE",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}",
            returns=types.DeletedWebhookEndpoint,
        )

    @operation
    def rotate_secret(
        self,
        endpoint_id: str,
        *,
        overlap_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.NewWebhookEndpoint]:
        """Give a webhook endpoint a new secret.

        Create a new secret, returned only once. Both secrets sign until the overlap ends.

        Needs the scope `webhooks:manage`.

        - `overlap_seconds`: How long the old secret signs together with the new one. Left out: a
          day (86400 s).
        """
        return Call(
            method="POST",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}/rotate_secret",
            returns=types.NewWebhookEndpoint,
            body={"overlap_seconds": overlap_seconds},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list_deliveries(
        self,
        endpoint_id: str,
        *,
        limit: int | None = None,
        after: str | None = None,
        status: types.DeliveryStatus | None = None,
    ) -> Call[Page[types.WebhookDelivery]]:
        """List deliveries and their attempts, newest first.

        The deliveries to a webhook endpoint, newest events first.

        Needs the scope `webhooks:manage`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the id of its last event.
        - `status`: Only deliveries with this status.
        """
        return Call(
            method="GET",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}/deliveries",
            returns=Page[types.WebhookDelivery],
            query={"limit": limit, "after": after, "status": status},
        )

    @operation
    def resend(
        self,
        endpoint_id: str,
        *,
        event_id: str,
        idempotency_key: str | None = None,
    ) -> Call[types.Event]:
        """Deliver an event again.

        Deliver an event again with the same webhook-id, whatever the result of earlier attempts.

        Needs the scope `webhooks:manage`.
        """
        return Call(
            method="POST",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}/resend",
            returns=types.Event,
            body={"event_id": event_id},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def recover(
        self,
        endpoint_id: str,
        *,
        since: Time,
        idempotency_key: str | None = None,
    ) -> Call[types.WebhookEndpoint]:
        """Deliver missed events since a time again.

        Deliver all events since a time that were not delivered.

        Needs the scope `webhooks:manage`.

        - `since`: Events since this time that were not delivered are sent again.
        """
        return Call(
            method="POST",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}/recover",
            returns=types.WebhookEndpoint,
            body={"since": since},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def send_example(
        self,
        endpoint_id: str,
        *,
        type: types.EventType,
        idempotency_key: str | None = None,
    ) -> Call[types.WebhookAttempt]:
        """Send a signed example immediately.

        Send a signed example immediately, and return the result. The example is sent only once.

        Needs the scope `webhooks:manage`.
        """
        return Call(
            method="POST",
            path=f"/v1/webhook_endpoints/{segment(endpoint_id)}/send_example",
            returns=types.WebhookAttempt,
            body={"type": type},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Log(Resource[S]):
    """The public log."""

    @operation
    def policy(
        self,
        *,
        mode: types.Mode | None = None,
    ) -> Call[str]:
        """Get the policy to verify evidence against.

        The policy to verify evidence of one mode (c2sp.org/tlog-policy); `live` by default.

        - `mode`: The mode of the evidence. Left out: `live`.
        """
        return Call(
            method="GET",
            path="/v1/log/policy",
            returns=str,
            query={"mode": mode},
        )


class Sandbox(Resource[S]):
    """What test keys can arrange."""

    @operation
    def clock(
        self,
    ) -> Call[types.TestClock]:
        """Get the test clock.

        The test clock of this account.

        Needs the scope `sandbox:manage`.
        """
        return Call(
            method="GET",
            path="/v1/test/clock",
            returns=types.TestClock,
        )

    @operation
    def advance_clock(
        self,
        *,
        seconds: int | None = None,
        to: Time | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.TestClock]:
        """Advance the test clock.

        Advance the test clock. Every server uses it once the response is sent.

        Needs the scope `sandbox:manage`.

        - `seconds`: How far to advance. The clock cannot go back.
        - `to`: The time to advance to; must be later than the clock's present time.
        """
        return Call(
            method="POST",
            path="/v1/test/clock/advance",
            returns=types.TestClock,
            body={"seconds": seconds, "to": to},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def reset_clock(
        self,
    ) -> Call[types.TestClock]:
        """Reset the test clock to real time.

        Reset the test clock to real time. Existing objects keep their times.

        Needs the scope `sandbox:manage`.
        """
        return Call(
            method="DELETE",
            path="/v1/test/clock",
            returns=types.TestClock,
        )

    @operation
    def move_buyer(
        self,
        *,
        cbid: str,
        status: types.BuyerStatus,
        reasons: Sequence[types.Reason] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerStatusAnswer]:
        """Set the status of a sandbox buyer.

        Give a sandbox buyer any status, and write the event of that status.

        Needs the scope `sandbox:manage`.

        - `cbid`: A buyer in this account's sandbox.
        - `reasons`: Reasons for `failed` or `requires_input`. Left out: the usual one.
        """
        return Call(
            method="POST",
            path="/v1/test/buyers",
            returns=types.BuyerStatusAnswer,
            body={"cbid": cbid, "status": status, "reasons": reasons},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def trigger_event(
        self,
        *,
        type: types.EventType,
        object_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.Event]:
        """Write an event of any type.

        Write an event without a cause. It is listed and delivered with `triggered: true`.

        Needs the scope `sandbox:manage`.

        - `object_id`: The object of the event: a `cbid`, `ack_id`, `clearance_id`,
          `checkout_session_id` or `notice_id`. Left out: a made-up id.
        """
        return Call(
            method="POST",
            path="/v1/test/events",
            returns=types.Event,
            body={"type": type, "object_id": object_id},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def fault(
        self,
    ) -> Call[types.PlannedFault]:
        """Get the planned fault.

        The fault that the next verification in the sandbox gets.

        Needs the scope `sandbox:manage`.
        """
        return Call(
            method="GET",
            path="/v1/test/fault",
            returns=types.PlannedFault,
        )

    @operation
    def plan_fault(
        self,
        *,
        fault: types.Fault,
        calls: int | None = None,
        delay_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.PlannedFault]:
        """Let the next verifications fail.

        Let the next verifications in the sandbox fail. This replaces a planned fault.

        Needs the scope `sandbox:manage`.

        - `calls`: The number of calls. Left out: all calls, until cleared.
        - `delay_seconds`: The response time of each call, at most 15 seconds. Left out: 0.
        """
        return Call(
            method="POST",
            path="/v1/test/fault",
            returns=types.PlannedFault,
            body={"fault": fault, "calls": calls, "delay_seconds": delay_seconds},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def clear_fault(
        self,
    ) -> Call[types.PlannedFault]:
        """Remove the planned fault.

        Needs the scope `sandbox:manage`.
        """
        return Call(
            method="DELETE",
            path="/v1/test/fault",
            returns=types.PlannedFault,
        )


class Service(Resource[S]):
    """Whether the server responds."""

    @operation
    def health(
        self,
    ) -> Call[types.Health]:
        """Check that the process responds.

        The process responds. This does not check what the process depends on.
        """
        return Call(
            method="GET",
            path="/healthz",
            returns=types.Health,
        )

    @operation
    def readiness(
        self,
    ) -> Call[types.Readiness]:
        """Check that the process can do its work.

        Whether the process can do its work: read and write, within two seconds, and for longer.
        """
        return Call(
            method="GET",
            path="/readyz",
            returns=types.Readiness,
        )


class Resources(Generic[S]):
    """All operations, by what they are about."""

    def __init__(self, sender: S) -> None:
        self.notices: Final[Notices[S]] = Notices(sender)
        """The notices that buyers initial."""

        self.requirements: Final[Requirements[S]] = Requirements(sender)
        """What an order needs."""

        self.acknowledgments: Final[Acknowledgments[S]] = Acknowledgments(sender)
        """Stored initials, and their evidence."""

        self.buyers: Final[Buyers[S]] = Buyers(sender)
        """Buyers and their verification."""

        self.checkout_sessions: Final[CheckoutSessions[S]] = CheckoutSessions(sender)
        """Links for one buyer and one order."""

        self.current_checkout_session: Final[CurrentCheckoutSession[S]] = CurrentCheckoutSession(
            sender
        )
        """The session of a client token, which is the key of this client."""

        self.clearances: Final[Clearances[S]] = Clearances(sender)
        """Decisions whether an order may ship."""

        self.events: Final[Events[S]] = Events(sender)
        """What has happened."""

        self.webhook_endpoints: Final[WebhookEndpoints[S]] = WebhookEndpoints(sender)
        """The endpoints that get events, and deliveries to them."""

        self.log: Final[Log[S]] = Log(sender)
        """The public log."""

        self.sandbox: Final[Sandbox[S]] = Sandbox(sender)
        """What test keys can arrange."""

        self.service: Final[Service[S]] = Service(sender)
        """Whether the server responds."""
