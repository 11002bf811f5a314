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

    @listing
    def list_lifecycles(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        notice_id: str | None = None,
    ) -> Call[Page[types.NoticeLifecycle]]:
        """List every published version with its history.

        Every published version with its status and its history, by notice, oldest first.

        Needs the scope `notices:read`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last version.
        - `notice_id`: Only of this notice.
        """
        return Call(
            method="GET",
            path="/v1/notices/lifecycle",
            returns=Page[types.NoticeLifecycle],
            query={"limit": limit, "after": after, "notice_id": notice_id},
        )

    @operation
    def compare(
        self,
        notice_id: str,
        *,
        old: str | None = None,
        new: str | None = None,
    ) -> Call[types.ComparedNotices]:
        """Compare two versions of a notice.

        What differs between two versions of a notice, part by part.

        Needs the scope `notices:read`. It answers only where the console is on, else with
        `not_found`.

        - `old`: Left out: the oldest version.
        - `new`: Left out: the newest version.
        """
        return Call(
            method="GET",
            path=f"/v1/notices/{segment(notice_id)}/compare",
            returns=types.ComparedNotices,
            query={"old": old, "new": new},
        )

    @operation
    def check(
        self,
        *,
        notice: types.NoticeContentInput,
        gap_closed: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.CheckedNotice]:
        """Check a notice without publishing it.

        Check a notice without publishing it: mistakes, gaps, what differs from before.

        Needs the scope `notices:manage`. It answers only where the console is on, else with
        `not_found`.

        - `gap_closed`: Why nothing is missing, where a version with these lines has gaps.
        """
        return Call(
            method="POST",
            path="/v1/notices/check",
            returns=types.CheckedNotice,
            body={"notice": notice, "gap_closed": gap_closed},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def publish(
        self,
        *,
        notice: types.NoticeContentInput,
        gap_closed: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.CheckedNotice]:
        """Publish a notice permanently.

        Publish a notice permanently. Live keys get the version after its review.

        Needs the scope `notices:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `gap_closed`: Why nothing is missing, where a version with these lines has gaps.
        """
        return Call(
            method="POST",
            path="/v1/notices/publish",
            returns=types.CheckedNotice,
            body={"notice": notice, "gap_closed": gap_closed},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def review(
        self,
        notice_id: str,
        *,
        version: str,
        by: str,
        against: str,
        rule: str | None = None,
        gap_closed: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.NoticeOutcome]:
        """Record the review of a version.

        Record that a person compared a version with the official text, and its rule with the
        law.

        Not by the person who published it, unless the operator's setting allows that: `by` says
        so.

        Needs the scope `notices:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `by`: Who compared it.
        - `against`: URL of the official text.
        - `rule`: The version of `applies_to` that was compared with the law, too.
        - `gap_closed`: Why nothing is missing, where a version with these lines has gaps.
        """
        return Call(
            method="POST",
            path=f"/v1/notices/{segment(notice_id)}/review",
            returns=types.NoticeOutcome,
            body={
                "version": version,
                "by": by,
                "against": against,
                "rule": rule,
                "gap_closed": gap_closed,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def withdraw(
        self,
        notice_id: str,
        *,
        version: str,
        reason: str,
        enjoined: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.NoticeOutcome]:
        """Take a version out of force.

        Take a version out of force permanently; the version before it, if any, is in force
        again.

        With `enjoined` no other version comes into force for live keys until one is reinstated.

        Needs the scope `notices:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `enjoined`: A court ordered it: the whole notice stops for live keys.
        """
        return Call(
            method="POST",
            path=f"/v1/notices/{segment(notice_id)}/withdraw",
            returns=types.NoticeOutcome,
            body={"version": version, "reason": reason, "enjoined": enjoined},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def reinstate(
        self,
        notice_id: str,
        *,
        version: str,
        by: str,
        against: str,
        idempotency_key: str | None = None,
    ) -> Call[types.NoticeOutcome]:
        """End the injunction against a notice.

        End the injunction against a notice: live keys get this version again.

        It counts as a review, and is refused to the same person.

        Needs the scope `notices:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `by`: Who compared it.
        - `against`: URL of the official text.
        """
        return Call(
            method="POST",
            path=f"/v1/notices/{segment(notice_id)}/reinstate",
            returns=types.NoticeOutcome,
            body={"version": version, "by": by, "against": against},
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

        Needs the scope `acks:read`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.

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

        Needs the scope `acks:read`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.
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
    def dossier(
        self,
        ack_id: str,
        *,
        disclose: str | None = None,
        size: int | None = None,
        wait_seconds: int | None = None,
    ) -> Call[bytes]:
        """Get everything needed to verify an acknowledgment and its order, as a ZIP file.

        As that of its clearance; of several, that of the shipment, else the newest.

        Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.

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

        Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.

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
        verification_id: str | None = None,
    ) -> Call[Page[types.BuyerReview]]:
        """List the buyers that wait for a review.

        Buyers whose last attempt did not verify them, oldest attempt first.

        Only attempts of this account, and not those that were dismissed. Staff who name no
        account see those of all accounts, and name it to decide.

        Needs the scope `buyers:review`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: the verification of that page's last
          buyer.
        - `status`: Only buyers with this status.
        - `verification_id`: Only this attempt.
        """
        return Call(
            method="GET",
            path="/v1/buyers/reviews",
            returns=Page[types.BuyerReview],
            query={
                "limit": limit,
                "after": after,
                "status": status,
                "verification_id": verification_id,
            },
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
    ) -> Call[types.ReviewedBuyer]:
        """Decide on a buyer in the review queue.

        Decide on a buyer in the review queue. The audit log names the person or key that
        decided.

        `accept_zip` accepts another ZIP code on sight of a document, if a provider approved the
        person for this account; all other rules are applied again. `dismiss` takes the buyer out
        of the queue until the next attempt; the status stays as it is.

        Where two people decide on the buyers of an account, the first decision is a proposal:
        the response has `proposed`, and nothing changes. Another person who decides the same
        makes it final; who decides otherwise makes another proposal. A key decides nothing
        there.

        Needs the scope `buyers:review`. A person needs a fresh passkey.

        - `reason`: Why, such as the number of a case. Kept permanently: nothing personal.
        - `zip`: With `accept_zip`, required: the ZIP code to accept.
        - `document`: With `accept_zip`, required: the kind of document that you checked, such as a
          utility bill. Kept permanently: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/review",
            returns=types.ReviewedBuyer,
            body={"decision": decision, "reason": reason, "zip": zip, "document": document},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def export(
        self,
        cbid: str,
        *,
        language: Literal["en", "es"] | None = None,
    ) -> Call[bytes]:
        """Get all that is stored about a buyer, as a ZIP file for the buyer.

        A page without scripts, `index.html`, and the same as JSON, `data.json`.

        For one account: what that account holds. The header `Countersign-Reason` is needed, also
        of a key; the audit has it.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey. It discloses personal data: a person gives
        the reason in `Countersign-Reason`.

        - `language`: Of the page.
        """
        return Call(
            method="GET",
            path=f"/v1/buyers/{segment(cbid)}/export",
            returns=bytes,
            query={"language": language},
        )

    @operation
    def evidence(
        self,
        cbid: str,
    ) -> Call[types.BuyerEvidence]:
        """See the evidence of a buyer's identity checks.

        What is known of the person from a buyer's identity checks.

        The header `Countersign-Reason` is needed, also of a key. For one account: only its own
        checks.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.
        """
        return Call(
            method="GET",
            path=f"/v1/buyers/{segment(cbid)}/evidence",
            returns=types.BuyerEvidence,
        )

    @operation
    def block(
        self,
        cbid: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerBlock]:
        """Refuse the orders of a buyer.

        Refuse the orders of a buyer: clearances of this account have `refused_by_vendor`.

        The buyer's status stays as it is, and no other account learns of it.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `reason`: Such as the number of a case. Kept: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/block",
            returns=types.BuyerBlock,
            body={"reason": reason},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def unblock(
        self,
        cbid: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerBlock]:
        """Clear the orders of a buyer again.

        Clear the orders of a buyer again, as far as nothing else speaks against them.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `reason`: Such as the number of a case. Kept: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/unblock",
            returns=types.BuyerBlock,
            body={"reason": reason},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def revoke(
        self,
        cbid: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerStanding]:
        """Revoke a buyer at every vendor.

        Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated.

        For staff of the deployment alone, who name no account: no key may do this.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `reason`: Such as the number of a case. Kept: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/revoke",
            returns=types.BuyerStanding,
            body={"reason": reason},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def reinstate(
        self,
        cbid: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
    ) -> Call[types.BuyerStanding]:
        """Undo the revocation of a buyer.

        Undo a revocation. The buyer gets the earlier status back, or has to verify again.

        For staff of the deployment alone, who name no account: no key may do this.

        Needs the scope `buyers:review`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `reason`: Such as the number of a case. Kept: nothing personal.
        """
        return Call(
            method="POST",
            path=f"/v1/buyers/{segment(cbid)}/reinstate",
            returns=types.BuyerStanding,
            body={"reason": reason},
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
        product_class: str | None = None,
        product_classes: Sequence[str] | None = None,
        order_reference: str | None = None,
        collect: Sequence[types.Collected] | None = None,
        notice_id: str | None = None,
        cart: types.CartInput | None = None,
        cbid: str | None = None,
        shipping_zip: str | None = None,
        order: types.OrderInput | None = None,
        origin: str | None = None,
        locale: Literal["en", "es"] | None = None,
        expires_in_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.CheckoutSession]:
        """Create a link for one buyer and one order.

        Create a link for one buyer and one order. Its url and token are returned only once.

        Needs the scope `checkout_sessions:create`.

        - `product_class`: The class of the product: `accessory`, `manufacturing_machine`, `barrel`,
          or another class that a published notice names. Any other is refused with 400, which lists
          the known ones. The account may require it for live orders.
        - `product_classes`: The classes of an order with several, in the place of `product_class`:
          the notice has to suffice for each.
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
                "product_class": product_class,
                "product_classes": product_classes,
                "return_url": return_url,
                "session_id": session_id,
                "order_reference": order_reference,
                "collect": collect,
                "notice_id": notice_id,
                "cart": cart,
                "cbid": cbid,
                "shipping_zip": shipping_zip,
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
        cbid: str,
        shipping_zip: str,
        session_id: str,
        product_class: str | None = None,
        product_classes: Sequence[str] | None = None,
        ack_id: str | None = None,
        order_reference: str | None = None,
        shipping_address: types.ShippingAddressInput | None = None,
        exemption: types.ExemptionInput | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.ClearanceDecision]:
        """Decide whether an order may ship.

        Decide whether an order may ship. The response contains every reason against it.

        Needs the scope `clearances:create`.

        - `product_class`: The class of the product: `accessory`, `manufacturing_machine`, `barrel`,
          or another class that a published notice names. Any other is refused with 400, which lists
          the known ones. The account may require it for live orders.
        - `product_classes`: The classes of an order with several, in the place of `product_class`:
          the notice has to suffice for each.
        - `ack_id`: The acknowledgment of the notice. Required without an exemption.
        - `cbid`: The buyer identifier.
        - `shipping_zip`: The order's destination: ZIP or ZIP+4.
        - `session_id`: Your checkout session, the same as in the acknowledgment.
        - `order_reference`: What you call the order, such as its number: no name and no e-mail
          address. At most 64 characters, which are composed (Unicode NFC). Left out: the order is
          judged by its session alone. The account may require it for live orders.
        - `shipping_address`: Must contain the ZIP code; the rest is not compared.
        - `exemption`: Without `ack_id`: judged by the rules of the notices. With it: stored and
          shown.
        """
        return Call(
            method="POST",
            path="/v1/clearances",
            returns=types.ClearanceDecision,
            body={
                "product_class": product_class,
                "product_classes": product_classes,
                "ack_id": ack_id,
                "cbid": cbid,
                "shipping_zip": shipping_zip,
                "session_id": session_id,
                "order_reference": order_reference,
                "shipping_address": shipping_address,
                "exemption": exemption,
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

        Needs the scope `clearances:read`. It discloses personal data: a person gives the reason
        in `Countersign-Reason`.

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

        Needs the scope `clearances:read`. It discloses personal data: a person gives the reason
        in `Countersign-Reason`.
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
        paid_at: Time | None = None,
        order_reference: str | None = None,
        confirm_order_of_events: bool | None = None,
        corrects: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.FulfilmentReceipt]:
        """Report the fulfilment of an order, step by step.

        Report the fulfilment of an order, in one step or in several.

        The order is closed when every obligation is reported; it still takes what was not
        reported before, such as the delivery. A report cannot be changed, only corrected by a
        new one that names it; a report that repeats what is known gets the receipt of the
        earlier one.

        Needs the scope `clearances:create`.

        - `paid_at`: Time of payment, in a report of its own while a clearance is valid. It keeps
          the acknowledgment for later decisions about the order.
        - `order_reference`: Your order: another one than the clearance's is refused.
        - `confirm_order_of_events`: True if this report is right, although the order was shipped
          before it was cleared, delivered before it was shipped, or delivered without the signature
          that it requires. The evidence shows that you confirmed it, and readers name it as odd.
        - `corrects`: The earlier report of the order that was wrong. This one stands in its place:
          state again what was right in it.
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
                "paid_at": paid_at,
                "order_reference": order_reference,
                "confirm_order_of_events": confirm_order_of_events,
                "corrects": corrects,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def override(
        self,
        clearance_id: str,
        *,
        reason: str,
        claimed_user: str | None = None,
        order_reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.Overridden]:
        """Override the refusal of an order.

        Override the refusal of an order, at the caller's responsibility. The order stays
        refused.

        No token is issued. A record of its own type names the refusal, the people and their
        reasons. From now on the acknowledgment belongs to this order. The next clearance has
        `overridden`, until there is a new reason, or the maximum age of an acknowledgment has
        passed. A repeated override of one refusal returns the first. Where two people decide at
        the account, the first request is a proposal for 30 days, and another person overrides; a
        key cannot.

        Needs the scope `clearances:override`. A person needs a fresh passkey.

        - `reason`: Why. The audit keeps it permanently: nothing personal.
        - `claimed_user`: With a key, required: your user who decided. It is kept as your claim.
        - `order_reference`: Your order: another one than the clearance's is refused.
        """
        return Call(
            method="POST",
            path=f"/v1/clearances/{segment(clearance_id)}/override",
            returns=types.Overridden,
            body={
                "reason": reason,
                "claimed_user": claimed_user,
                "order_reference": order_reference,
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

        Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
        `Countersign-Reason`.

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

        Needs the scope `webhooks:manage`. A person needs a fresh passkey.
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


class Requests(Resource[S]):
    """The last requests of the account's keys."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        failed: Literal["false", "true"] | None = None,
    ) -> Call[Page[types.RequestView]]:
        """List the last requests of the account's keys, newest first.

        The last 1,000 requests with a key of this account and mode, as far as this server has
        them.

        They are in the memory of the server that answers, of all of its workers: a restart
        forgets them, and other servers have their own. A request without a valid key, or to an
        unknown path, is of no account and is not there.

        Needs the scope `events:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page.
        - `failed`: Only those that were refused or failed; false: the others.
        """
        return Call(
            method="GET",
            path="/v1/requests",
            returns=Page[types.RequestView],
            query={"limit": limit, "after": after, "failed": failed},
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

        Whether the process can do its work: it reads, within two seconds, and writes succeed.
        """
        return Call(
            method="GET",
            path="/readyz",
            returns=types.Readiness,
        )


class Accounts(Resource[S]):
    """The accounts of a deployment: for its staff."""

    @operation
    def create(
        self,
        *,
        name: str,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountView]:
        """Create an account.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`.

        - `name`: What staff call the account; buyers see it where no brand has a name.
        """
        return Call(
            method="POST",
            path="/v1/accounts",
            returns=types.AccountView,
            body={"name": name},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.AccountView]]:
        """List the accounts, oldest first.

        The accounts, oldest first.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last account.
        """
        return Call(
            method="GET",
            path="/v1/accounts",
            returns=Page[types.AccountView],
            query={"limit": limit, "after": after},
        )

    @operation
    def retrieve(
        self,
        account_id: str,
    ) -> Call[types.AccountDetails]:
        """Get one account.

        One account, with its brand and its origins.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="GET",
            path=f"/v1/accounts/{segment(account_id)}",
            returns=types.AccountDetails,
        )

    @operation
    def change(
        self,
        account_id: str,
        *,
        reviewers: int | None = None,
        request_days: int | None = None,
        responses_until: Time | None = None,
        responses_reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountView]:
        """Change the settings of an account.

        Change how many people decide on a buyer who waits, or when a person's request is due.

        Or keep whole responses of identity providers, beyond what decisions need, for a reason
        and until a time.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person
        names live mode.

        - `reviewers`: 2: what a first person decides, a second one makes final.
        - `request_days`: Within how many days it has to answer a person's request.
        - `responses_until`: Until when to keep whole responses of identity providers, from now on:
          only with a reason.
        """
        return Call(
            method="PATCH",
            path=f"/v1/accounts/{segment(account_id)}",
            returns=types.AccountView,
            body={
                "reviewers": reviewers,
                "request_days": request_days,
                "responses_until": responses_until,
                "responses_reason": responses_reason,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def rename(
        self,
        account_id: str,
        *,
        name: str,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountView]:
        """Rename an account.

        Give an account another name; its id, and what is recorded of it, stay.

        The name is a label for operators. Who an account is, for the evidence, is said by
        `accounts describe`.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. Both modes of the account share it: a person names live mode.

        - `name`: What staff call the account; buyers see it where no brand has a name.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/rename",
            returns=types.AccountView,
            body={"name": name},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def disable(
        self,
        account_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountView]:
        """Disable an account.

        Let no key of an account work until it is enabled again.

        Open checkout sessions go on to their end, webhooks are delivered, and evidence stays.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person
        names live mode.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/disable",
            returns=types.AccountView,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def enable(
        self,
        account_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountView]:
        """Enable a disabled account.

        Let the keys of a disabled account work again.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. Both modes of the account share it: a person names live mode.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/enable",
            returns=types.AccountView,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def change_brand(
        self,
        account_id: str,
        *,
        name: str | None = None,
        color: str | None = None,
        logo: str | None = None,
        contact_url: str | None = None,
        privacy_url: str | None = None,
        support_email: str | None = None,
        font: str | None = None,
        initials: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.BrandView]:
        """Change how buyers see an account.

        Change how buyers see an account on hosted pages. What is left out stays as it is.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. Both modes of the account share it: a person names live mode.

        - `color`: As #rrggbb.
        - `logo`: A PNG, JPEG or WebP picture of at most 6 KiB, in base64.
        - `font`: One of sans, serif, rounded.
        - `initials`: How they are taken: `typed` or `adopted_allowed`.
        """
        return Call(
            method="PATCH",
            path=f"/v1/accounts/{segment(account_id)}/brand",
            returns=types.BrandView,
            body={
                "name": name,
                "color": color,
                "logo": logo,
                "contact_url": contact_url,
                "privacy_url": privacy_url,
                "support_email": support_email,
                "font": font,
                "initials": initials,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def add_origin(
        self,
        account_id: str,
        *,
        origin: str,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountOrigin]:
        """Register an origin.

        Register an origin: scheme, host and port, such as https://shop.example.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. Both modes of the account share it: a person names live mode.

        - `origin`: Scheme, host and port.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/origins",
            returns=types.AccountOrigin,
            body={"origin": origin},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def remove_origin(
        self,
        account_id: str,
        *,
        origin: str,
        idempotency_key: str | None = None,
    ) -> Call[types.AccountOrigin]:
        """Remove an origin.

        Remove an origin. Sessions that are open keep it.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. Both modes of the account share it: a person names live mode.

        - `origin`: Scheme, host and port.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/origins/remove",
            returns=types.AccountOrigin,
            body={"origin": origin},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def preview_closing(
        self,
        account_id: str,
    ) -> Call[types.ClosedAccount]:
        """See what closing an account would end.

        What closing an account would end, and what would stay.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="GET",
            path=f"/v1/accounts/{segment(account_id)}/close",
            returns=types.ClosedAccount,
        )

    @operation
    def close(
        self,
        account_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.ClosedAccount]:
        """Close an account for good.

        Close an account for good: keys, endpoints, origins, credentials and open sessions end.

        Its records stay for evidence, with their proofs, their holds and their periods.

        Needs the scope `accounts:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person
        names live mode.
        """
        return Call(
            method="POST",
            path=f"/v1/accounts/{segment(account_id)}/close",
            returns=types.ClosedAccount,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Keys(Resource[S]):
    """API keys of an account: for staff."""

    @operation
    def create(
        self,
        *,
        scopes: Sequence[types.Scope] | None = None,
        lifetime_seconds: int | None = None,
        name: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.KeyView]:
        """Create an API key.

        Create a key. It is in this response only, and works immediately.

        A person whose role does not see personal data, and whose key reads it (`acks:read`,
        `clearances:read`, `evidence:read`), says why in `Countersign-Reason`. How often a key
        that a person made reads personal data is in the audit, for each day.

        Needs the scope `keys:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `scopes`: Left out: all that a vendor's server needs. Only a signed-in person with a fresh
          passkey gives `clearances:override`.
        - `lifetime_seconds`: Left out: it works until it is revoked.
        - `name`: What it is for, such as the server that has it; nothing personal.
        """
        return Call(
            method="POST",
            path="/v1/keys",
            returns=types.KeyView,
            body={"scopes": scopes, "lifetime_seconds": lifetime_seconds, "name": name},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.KeyView]]:
        """List the API keys, oldest first.

        The keys of an account and mode, oldest first.

        Needs the scope `keys:manage`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last key.
        """
        return Call(
            method="GET",
            path="/v1/keys",
            returns=Page[types.KeyView],
            query={"limit": limit, "after": after},
        )

    @operation
    def rotate(
        self,
        key_id: str,
        *,
        overlap_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.KeyView]:
        """Give an API key a successor.

        Create a successor with the same scopes and maker. The old key works until the overlap
        ends.

        `Countersign-Reason` is needed as for a new key. A key of the machine becomes that of the
        person who rotates it, and who is shown the successor.

        Needs the scope `keys:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.
        """
        return Call(
            method="POST",
            path=f"/v1/keys/{segment(key_id)}/rotate",
            returns=types.KeyView,
            body={"overlap_seconds": overlap_seconds},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def revoke(
        self,
        key_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.KeyView]:
        """Revoke an API key for good.

        Revoke a key for good. Running servers refuse it within seconds.

        Needs the scope `keys:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.
        """
        return Call(
            method="POST",
            path=f"/v1/keys/{segment(key_id)}/revoke",
            returns=types.KeyView,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Orders(Resource[S]):
    """Orders, found by anything that names one: for staff."""

    @operation
    def search(
        self,
        *,
        query: str,
        idempotency_key: str | None = None,
    ) -> Call[types.SearchResult]:
        """Find an order by anything that names it.

        Find an order by anything that names it, in one account and mode.

        Staff who name no account search all of them. The result has no personal value: read
        those at the parts.

        Needs the scope `search:read`. It answers only where the console is on, else with
        `not_found`.

        - `query`: An identifier (ord_…, ack_…, chk_…, clr_…, ful_…, ovr_…, ver_…, rec_…, cbid_…),
          the vendor's session, or an order reference.
        """
        return Call(
            method="POST",
            path="/v1/search",
            returns=types.SearchResult,
            body={"query": query},
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
        state: types.OrderState | None = None,
        waiting: Literal["false", "true"] | None = None,
        held: Literal["false", "true"] | None = None,
        notice_id: str | None = None,
        opened_after: Time | None = None,
        opened_before: Time | None = None,
    ) -> Call[Page[types.FoundOrder]]:
        """List orders, the latest act first.

        The account's orders, that of the latest act first, each with its parts and its timeline.

        A page with filters can be short: go on until `next_cursor` is null.

        Needs the scope `orders:read`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page.
        - `session_id`: Only the order of this checkout session of yours.
        - `order_reference`: Only orders with this order reference.
        - `state`: Only orders in this state.
        - `waiting`: Only orders that wait for the buyer or for a decision; false: the others.
        - `held`: Only orders that a legal hold keeps; false: the others.
        - `notice_id`: Only orders with this notice.
        - `opened_after`: Only orders opened at or after this time.
        - `opened_before`: Only orders opened before this time.
        """
        return Call(
            method="GET",
            path="/v1/orders",
            returns=Page[types.FoundOrder],
            query={
                "limit": limit,
                "after": after,
                "session_id": session_id,
                "order_reference": order_reference,
                "state": state,
                "waiting": waiting,
                "held": held,
                "notice_id": notice_id,
                "opened_after": opened_after,
                "opened_before": opened_before,
            },
        )

    @operation
    def retrieve(
        self,
        order_id: str,
    ) -> Call[types.FoundOrder]:
        """Get one order.

        One order of this account, by its id or that of any of its parts.

        Needs the scope `orders:read`.
        """
        return Call(
            method="GET",
            path=f"/v1/orders/{segment(order_id)}",
            returns=types.FoundOrder,
        )


class Holds(Resource[S]):
    """Legal holds: for staff."""

    @operation
    def place(
        self,
        *,
        subject: str,
        reason: str,
        matter_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.HoldView]:
        """Place a legal hold.

        Prevent the erasure of an order, a buyer or an account.

        On a record, the hold keeps what the whole order needs: acknowledgment, clearances,
        reports of fulfilment, and the identity check that it rests on. On a buyer, it also keeps
        the orders that name the buyer.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`.

        - `subject`: An order (ord_…) or anything of it (ack_…, clr_…, ful_…, ver_…, chk_…), which
          keeps the whole order; a buyer (cbid_…) or an account (acct_…).
        - `reason`: Why, such as the number of a case. It is kept.
        - `matter_id`: The matter it is part of.
        """
        return Call(
            method="POST",
            path="/v1/holds",
            returns=types.HoldView,
            body={"subject": subject, "reason": reason, "matter_id": matter_id},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        status: Literal["active", "released"] | None = None,
        matter_id: str | None = None,
        order_id: str | None = None,
    ) -> Call[Page[types.HoldView]]:
        """List the legal holds, oldest first.

        The legal holds, oldest first.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last hold.
        - `status`: Only those.
        - `matter_id`: Only of this matter.
        - `order_id`: Only those that last on this order: on a part, its buyer or its account.
        """
        return Call(
            method="GET",
            path="/v1/holds",
            returns=Page[types.HoldView],
            query={
                "limit": limit,
                "after": after,
                "status": status,
                "matter_id": matter_id,
                "order_id": order_id,
            },
        )

    @operation
    def release(
        self,
        hold_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.ReleasedHolds]:
        """Release a legal hold.

        End a hold, and erase what was to be erased and waited for its end. Nothing else goes.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.
        """
        return Call(
            method="POST",
            path=f"/v1/holds/{segment(hold_id)}/release",
            returns=types.ReleasedHolds,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Matters(Resource[S]):
    """Matters, each with several holds: for staff."""

    @operation
    def open(
        self,
        *,
        name: str,
        orders: Sequence[types.HeldOrderInput] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.MatterView]:
        """Open a matter, with holds on its orders.

        Open a matter, with a hold on each of the orders: on all of them, or nothing is written.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="POST",
            path="/v1/matters",
            returns=types.MatterView,
            body={"name": name, "orders": orders},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.MatterView]]:
        """List the matters, oldest first.

        The matters, oldest first.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last matter.
        """
        return Call(
            method="GET",
            path="/v1/matters",
            returns=Page[types.MatterView],
            query={"limit": limit, "after": after},
        )

    @operation
    def release(
        self,
        matter_id: str,
        *,
        idempotency_key: str | None = None,
    ) -> Call[types.ReleasedHolds]:
        """Release all holds of a matter.

        Close a matter: all its holds end, and what waited for that is erased.

        A closed one has no holds.

        Needs the scope `holds:manage`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.
        """
        return Call(
            method="POST",
            path=f"/v1/matters/{segment(matter_id)}/release",
            returns=types.ReleasedHolds,
            body={},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Erasures(Resource[S]):
    """Erasing personal data: for staff."""

    @listing
    def list_requests(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Call[Page[types.ErasureRequested]]:
        """List the buyers who asked to be erased.

        The buyers who asked at /buyer to be erased and still wait, in the order of their ids.

        Needs the scope `erasure:write`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last buyer.
        """
        return Call(
            method="GET",
            path="/v1/erasures/requests",
            returns=Page[types.ErasureRequested],
            query={"limit": limit, "after": after},
        )

    @operation
    def preview(
        self,
        *,
        subject: str,
        with_acknowledgments: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.ErasurePreview]:
        """See what an erasure would erase, and what is held.

        What would be erased, what legal holds keep, and why. Nothing is changed.

        Needs the scope `retention:read`. It answers only where the console is on, else with
        `not_found`.

        - `subject`: An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…).
        - `with_acknowledgments`: Of a buyer: also the acknowledgments that name the buyer.
        """
        return Call(
            method="POST",
            path="/v1/erasures/preview",
            returns=types.ErasurePreview,
            body={"subject": subject, "with_acknowledgments": with_acknowledgments},
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )

    @operation
    def create(
        self,
        *,
        subject: str,
        with_acknowledgments: bool | None = None,
        reason: types.ErasureReason | None = None,
        idempotency_key: str | None = None,
    ) -> Call[types.ErasureDone]:
        """Erase personal data permanently.

        Permanently erase the personal data of an acknowledgment, a verification or a buyer.

        The record, its log entry and every proof stay valid. The erasure itself is recorded.
        What a legal hold keeps of a buyer is erased when the hold is released.

        Needs the scope `erasure:write`. It answers only where the console is on, else with
        `not_found`. A person needs a fresh passkey.

        - `subject`: An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…).
        - `with_acknowledgments`: Of a buyer: also the acknowledgments that name the buyer.
        """
        return Call(
            method="POST",
            path="/v1/erasures",
            returns=types.ErasureDone,
            body={
                "subject": subject,
                "with_acknowledgments": with_acknowledgments,
                "reason": reason,
            },
            headers={"Idempotency-Key": key_or_new(idempotency_key)},
        )


class Retention(Resource[S]):
    """What falls due: for staff."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        until: Time | None = None,
    ) -> Call[Page[types.DueRecord]]:
        """List what falls due.

        What has outlived its retention, or will have: acknowledgments, then verifications.

        Of each, the oldest come first. `countersign retention run` erases what is due and not on
        hold.

        Needs the scope `retention:read`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last record.
        - `until`: What ends until this time. Left out: what has ended.
        """
        return Call(
            method="GET",
            path="/v1/retention",
            returns=Page[types.DueRecord],
            query={"limit": limit, "after": after, "until": until},
        )


class Audit(Resource[S]):
    """What operators and staff did: for staff."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        action: types.AuditAction | None = None,
        begin: Time | None = None,
        end: Time | None = None,
    ) -> Call[Page[types.AuditView]]:
        """List what operators and staff did, newest first.

        What operators and staff did or looked at, newest first.

        For one account: what was done in its name in this mode, and what is about it as a whole.
        Staff who name no account see all.

        Needs the scope `audit:read`. It answers only where the console is on, else with
        `not_found`.

        - `limit`: The maximum number of items.
        - `after`: The `next_cursor` of the previous page: that page's last entry.
        - `subject`: Only about this one.
        - `actor`: Only by this person, key or user of the system.
        - `action`: Only this.
        - `begin`: At or after.
        - `end`: Before.
        """
        return Call(
            method="GET",
            path="/v1/audit",
            returns=Page[types.AuditView],
            query={
                "limit": limit,
                "after": after,
                "subject": subject,
                "actor": actor,
                "action": action,
                "begin": begin,
                "end": end,
            },
        )


class Deployment(Resource[S]):
    """How the deployment stands: for its staff."""

    @operation
    def retrieve(
        self,
    ) -> Call[types.DeploymentStanding]:
        """See what is owed, and how sealing stands.

        How sealing stands, and what is owed since when: entries, times, backups and more.

        Needs the scope `deployment:read`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="GET",
            path="/v1/deployment",
            returns=types.DeploymentStanding,
        )

    @operation
    def findings(
        self,
    ) -> Call[types.DoctorFindings]:
        """See what is wrong.

        What is wrong, as far as a server can judge it: `countersign doctor` looks at more.

        Needs the scope `deployment:read`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="GET",
            path="/v1/deployment/findings",
            returns=types.DoctorFindings,
        )


class Today(Resource[S]):
    """What happened lately in an account: for staff."""

    @operation
    def retrieve(
        self,
    ) -> Call[types.Today]:
        """See how an account does.

        How an account does: the last 24 hours, the last 14 days, and what waits.

        Hours and days are those of UTC, and of real time in the sandbox too. Of the whole
        deployment, `GET /v1/deployment` shows how it stands.

        Needs the scope `search:read`. It answers only where the console is on, else with
        `not_found`.
        """
        return Call(
            method="GET",
            path="/v1/today",
            returns=types.Today,
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

        self.requests: Final[Requests[S]] = Requests(sender)
        """The last requests of the account's keys."""

        self.service: Final[Service[S]] = Service(sender)
        """Whether the server responds."""

        self.accounts: Final[Accounts[S]] = Accounts(sender)
        """The accounts of a deployment: for its staff."""

        self.keys: Final[Keys[S]] = Keys(sender)
        """API keys of an account: for staff."""

        self.orders: Final[Orders[S]] = Orders(sender)
        """Orders, found by anything that names one: for staff."""

        self.holds: Final[Holds[S]] = Holds(sender)
        """Legal holds: for staff."""

        self.matters: Final[Matters[S]] = Matters(sender)
        """Matters, each with several holds: for staff."""

        self.erasures: Final[Erasures[S]] = Erasures(sender)
        """Erasing personal data: for staff."""

        self.retention: Final[Retention[S]] = Retention(sender)
        """What falls due: for staff."""

        self.audit: Final[Audit[S]] = Audit(sender)
        """What operators and staff did: for staff."""

        self.deployment: Final[Deployment[S]] = Deployment(sender)
        """How the deployment stands: for its staff."""

        self.today: Final[Today[S]] = Today(sender)
        """What happened lately in an account: for staff."""
