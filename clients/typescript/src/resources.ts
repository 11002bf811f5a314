// Written by `make clients` from spec/openapi.json: do not edit.

import { type CallOptions, Listing, Resource, type Sender, segment } from "./call.js";
import type * as types from "./types.js";

/** The notices that buyers initial. */
export class Notices extends Resource {
  /**
   * List the notices.
   *
   * The notices of the registry, by id.
   *
   * Needs the scope `notices:read`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of that page's last notice. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.NoticeSummary> {
    return new Listing<types.NoticeSummary>(this.sender, {
      method: "GET",
      path: "/v1/notices",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get the notice to show.
   *
   * The notice in force for the key's mode, or the requested version.
   *
   * Needs the scope `notices:read`.
   */
  retrieve(
    notice_id: string,
    query: {
      /** An older version. Left out: the version in force for the key's mode. */
      version?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<types.Notice> {
    return this.sender.send<types.Notice>({
      method: "GET",
      path: `/v1/notices/${segment(notice_id)}`,
      query,
      repeatable: true,
      revalidated: true,
    }, options);
  }

  /**
   * List the versions of a notice, newest first.
   *
   * The published versions of a notice, newest first.
   *
   * Needs the scope `notices:read`.
   */
  listVersions(
    notice_id: string,
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last version. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.NoticeVersion> {
    return new Listing<types.NoticeVersion>(this.sender, {
      method: "GET",
      path: `/v1/notices/${segment(notice_id)}/versions`,
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Store a buyer's initials on every line.
   *
   * Store the initials of a buyer for every line of the notice in force.
   *
   * Needs the scope `acks:create`.
   */
  acknowledge(
    notice_id: string,
    params: types.AcknowledgmentRequest,
    options: CallOptions = {},
  ): Promise<types.AcknowledgmentReceipt> {
    return this.sender.send<types.AcknowledgmentReceipt>({
      method: "POST",
      path: `/v1/notices/${segment(notice_id)}/acknowledge`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List every published version with its history.
   *
   * Every published version with its status and its history, by notice, oldest first.
   *
   * Needs the scope `notices:read`. It answers only where the console is on, else with `not_found`.
   */
  listLifecycles(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last version. */
      after?: string | undefined;
      /** Only of this notice. */
      notice_id?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.NoticeLifecycle> {
    return new Listing<types.NoticeLifecycle>(this.sender, {
      method: "GET",
      path: "/v1/notices/lifecycle",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Compare two versions of a notice.
   *
   * What differs between two versions of a notice, part by part.
   *
   * Needs the scope `notices:read`. It answers only where the console is on, else with `not_found`.
   */
  compare(
    notice_id: string,
    query: {
      /** Left out: the oldest version. */
      old?: string | undefined;
      /** Left out: the newest version. */
      new?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<types.ComparedNotices> {
    return this.sender.send<types.ComparedNotices>({
      method: "GET",
      path: `/v1/notices/${segment(notice_id)}/compare`,
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Check a notice without publishing it.
   *
   * Check a notice without publishing it: mistakes, gaps, what differs from before.
   *
   * Needs the scope `notices:manage`. It answers only where the console is on, else with
   * `not_found`.
   */
  check(
    params: types.NoticeDraft,
    options: CallOptions = {},
  ): Promise<types.CheckedNotice> {
    return this.sender.send<types.CheckedNotice>({
      method: "POST",
      path: "/v1/notices/check",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Publish a notice permanently.
   *
   * Publish a notice permanently. Live keys get the version after its review.
   *
   * Needs the scope `notices:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  publish(
    params: types.NoticeDraft,
    options: CallOptions = {},
  ): Promise<types.CheckedNotice> {
    return this.sender.send<types.CheckedNotice>({
      method: "POST",
      path: "/v1/notices/publish",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Record the review of a version.
   *
   * Record that a person compared a version with the official text, and its rule with the law.
   *
   * Not by the person who published it, unless the operator's setting allows that: `by` says so.
   *
   * Needs the scope `notices:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  review(
    notice_id: string,
    params: types.NoticeReview,
    options: CallOptions = {},
  ): Promise<types.NoticeOutcome> {
    return this.sender.send<types.NoticeOutcome>({
      method: "POST",
      path: `/v1/notices/${segment(notice_id)}/review`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Take a version out of force.
   *
   * Take a version out of force permanently; the version before it, if any, is in force again.
   *
   * With `enjoined` no other version comes into force for live keys until one is reinstated.
   *
   * Needs the scope `notices:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  withdraw(
    notice_id: string,
    params: types.NoticeWithdrawal,
    options: CallOptions = {},
  ): Promise<types.NoticeOutcome> {
    return this.sender.send<types.NoticeOutcome>({
      method: "POST",
      path: `/v1/notices/${segment(notice_id)}/withdraw`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * End the injunction against a notice.
   *
   * End the injunction against a notice: live keys get this version again.
   *
   * It counts as a review, and is refused to the same person.
   *
   * Needs the scope `notices:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  reinstate(
    notice_id: string,
    params: types.NoticeReinstatement,
    options: CallOptions = {},
  ): Promise<types.NoticeOutcome> {
    return this.sender.send<types.NoticeOutcome>({
      method: "POST",
      path: `/v1/notices/${segment(notice_id)}/reinstate`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** What an order needs. */
export class Requirements extends Resource {
  /**
   * Find out what an order needs.
   *
   * What an order needs, by the rules of the notices: ask before you show the checkout.
   *
   * Nothing is stored. A repeated request is decided again, also with the same `Idempotency-Key`.
   *
   * Needs the scope `notices:read`.
   */
  retrieve(
    params: types.Cart,
    options: CallOptions = {},
  ): Promise<types.Requirements> {
    return this.sender.send<types.Requirements>({
      method: "POST",
      path: "/v1/requirements",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** Stored initials, and their evidence. */
export class Acknowledgments extends Resource {
  /**
   * Find acknowledgments, newest first.
   *
   * The account's acknowledgments, newest first.
   *
   * Needs the scope `acks:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of that page's last acknowledgment. */
      after?: string | undefined;
      /** Only items with this checkout session. */
      session_id?: string | undefined;
      /** Only items with this buyer identifier. */
      cbid?: string | undefined;
      /** Only items with this order reference. */
      order_reference?: string | undefined;
      /** Only acknowledgments of this notice. */
      notice_id?: string | undefined;
      /** Only acknowledgments accepted at or after this time. */
      accepted_after?: string | undefined;
      /** Only acknowledgments accepted before this time. */
      accepted_before?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.Acknowledgment> {
    return new Listing<types.Acknowledgment>(this.sender, {
      method: "GET",
      path: "/v1/acknowledgments",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one acknowledgment.
   *
   * One acknowledgment of this account.
   *
   * Needs the scope `acks:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   */
  retrieve(
    ack_id: string,
    options: CallOptions = {},
  ): Promise<types.Acknowledgment> {
    return this.sender.send<types.Acknowledgment>({
      method: "GET",
      path: `/v1/acknowledgments/${segment(ack_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Get the proof that the log contains the record.
   *
   * The proof that the log contains the record of an acknowledgment.
   *
   * A text file in the format `c2sp.org/tlog-proof@v1`, with the record in its `extra` line. The
   * file changes only when a witness or a time-stamp authority signs a later checkpoint.
   *
   * Needs the scope `evidence:read`.
   *
   * With `options.waitSeconds` it waits for sealing, at most 10 seconds.
   */
  proof(
    ack_id: string,
    options: CallOptions = {},
  ): Promise<string> {
    return this.sender.send<string>({
      method: "GET",
      path: `/v1/acknowledgments/${segment(ack_id)}/proof`,
      returns: "text",
      repeatable: true,
    }, options);
  }

  /**
   * Get everything needed to verify an acknowledgment and its order, as a ZIP file.
   *
   * As that of its clearance; of several, that of the shipment, else the newest.
   *
   * Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   *
   * With `options.waitSeconds` it waits for sealing, at most 10 seconds.
   */
  dossier(
    ack_id: string,
    query: {
      /**
       * The personal fields to show, over all records, separated by commas: `initials_per_line`,
       * `session_id`, `cbid`, `ip`, `user_agent`, `process`, `order_reference`, `shipping`,
       * `verification`, `carrier`, `tracking_number`, `provider_identity_session_id`, `result`,
       * `evidence_sha256`, `override`, or `none`. Left out: all of them.
       */
      disclose?: string | undefined;
      /**
       * The size of the checkpoint of the log to prove it by. Records that it does not hold are
       * left out.
       */
      size?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    return this.sender.send<Uint8Array>({
      method: "GET",
      path: `/v1/acknowledgments/${segment(ack_id)}/dossier`,
      query,
      returns: "bytes",
      repeatable: true,
    }, options);
  }

  /**
   * Get the certificate of an acknowledgment for people, as a PDF.
   *
   * The PDF of the dossier, `dossier.pdf`, with the evidence attached.
   *
   * The PDF alone is for people: what can be verified is the dossier.
   *
   * Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   *
   * With `options.waitSeconds` it waits for sealing, at most 10 seconds.
   */
  certificate(
    ack_id: string,
    query: {
      /**
       * The personal fields to show, over all records, separated by commas: `initials_per_line`,
       * `session_id`, `cbid`, `ip`, `user_agent`, `process`, `order_reference`, `shipping`,
       * `verification`, `carrier`, `tracking_number`, `provider_identity_session_id`, `result`,
       * `evidence_sha256`, `override`, or `none`. Left out: all of them.
       */
      disclose?: string | undefined;
      /**
       * The size of the checkpoint of the log to prove it by. Records that it does not hold are
       * left out.
       */
      size?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    return this.sender.send<Uint8Array>({
      method: "GET",
      path: `/v1/acknowledgments/${segment(ack_id)}/certificate`,
      query,
      returns: "bytes",
      repeatable: true,
    }, options);
  }
}

/** Buyers and their verification. */
export class Buyers extends Resource {
  /**
   * Check an identity session, and issue or refresh a cbid.
   *
   * Check a session at the identity provider, and issue or refresh a cbid.
   *
   * Needs the scope `buyers:verify`.
   */
  verify(
    params: types.BuyerVerificationRequest = {},
    options: CallOptions = {},
  ): Promise<types.BuyerVerification> {
    return this.sender.send<types.BuyerVerification>({
      method: "POST",
      path: "/v1/buyers/verify",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Get the status of a buyer.
   *
   * The present status of a buyer, as far as this account may rely on it.
   *
   * Needs the scope `buyers:read`.
   */
  status(
    cbid: string,
    options: CallOptions = {},
  ): Promise<types.BuyerStatusAnswer> {
    return this.sender.send<types.BuyerStatusAnswer>({
      method: "GET",
      path: `/v1/buyers/${segment(cbid)}/status`,
      repeatable: true,
    }, options);
  }

  /**
   * List the buyers that wait for a review.
   *
   * Buyers whose last attempt did not verify them, oldest attempt first.
   *
   * Only attempts of this account, and not those that were dismissed. Staff who name no account see
   * those of all accounts, and name it to decide.
   *
   * Needs the scope `buyers:review`.
   */
  listReviews(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the verification of that page's last buyer. */
      after?: string | undefined;
      /** Only buyers with this status. */
      status?: types.Open<"failed" | "pending" | "requires_input"> | undefined;
      /** Only this attempt. */
      verification_id?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.BuyerReview> {
    return new Listing<types.BuyerReview>(this.sender, {
      method: "GET",
      path: "/v1/buyers/reviews",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Decide on a buyer in the review queue.
   *
   * Decide on a buyer in the review queue. The audit log names the person or key that decided.
   *
   * `accept_zip` accepts another ZIP code on sight of a document, if a provider approved the person
   * for this account; all other rules are applied again. `dismiss` takes the buyer out of the queue
   * until the next attempt; the status stays as it is.
   *
   * Where two people decide on the buyers of an account, the first decision is a proposal: the
   * response has `proposed`, and nothing changes. Another person who decides the same makes it
   * final; who decides otherwise makes another proposal. A key decides nothing there.
   *
   * Needs the scope `buyers:review`. A person needs a fresh passkey.
   */
  review(
    cbid: string,
    params: types.BuyerReviewRequest,
    options: CallOptions = {},
  ): Promise<types.ReviewedBuyer> {
    return this.sender.send<types.ReviewedBuyer>({
      method: "POST",
      path: `/v1/buyers/${segment(cbid)}/review`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Get all that is stored about a buyer, as a ZIP file for the buyer.
   *
   * A page without scripts, `index.html`, and the same as JSON, `data.json`.
   *
   * For one account: what that account holds. The header `Countersign-Reason` is needed, also of a
   * key; the audit has it.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey. It discloses personal data: a person gives the
   * reason in `Countersign-Reason`.
   */
  export(
    cbid: string,
    query: {
      /** Of the page. */
      language?: types.Open<"en" | "es"> | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    return this.sender.send<Uint8Array>({
      method: "GET",
      path: `/v1/buyers/${segment(cbid)}/export`,
      query,
      returns: "bytes",
      repeatable: true,
    }, options);
  }

  /**
   * See the evidence of a buyer's identity checks.
   *
   * What is known of the person from a buyer's identity checks.
   *
   * The header `Countersign-Reason` is needed, also of a key. For one account: only its own checks.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. It discloses personal data: a person gives the reason in `Countersign-Reason`.
   */
  evidence(
    cbid: string,
    options: CallOptions = {},
  ): Promise<types.BuyerEvidence> {
    return this.sender.send<types.BuyerEvidence>({
      method: "GET",
      path: `/v1/buyers/${segment(cbid)}/evidence`,
      repeatable: true,
    }, options);
  }

  /**
   * Refuse the orders of a buyer.
   *
   * Refuse the orders of a buyer: clearances of this account have `refused_by_vendor`.
   *
   * The buyer's status stays as it is, and no other account learns of it.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  block(
    cbid: string,
    params: types.BuyerReason,
    options: CallOptions = {},
  ): Promise<types.BuyerBlock> {
    return this.sender.send<types.BuyerBlock>({
      method: "POST",
      path: `/v1/buyers/${segment(cbid)}/block`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Clear the orders of a buyer again.
   *
   * Clear the orders of a buyer again, as far as nothing else speaks against them.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  unblock(
    cbid: string,
    params: types.BuyerReason,
    options: CallOptions = {},
  ): Promise<types.BuyerBlock> {
    return this.sender.send<types.BuyerBlock>({
      method: "POST",
      path: `/v1/buyers/${segment(cbid)}/unblock`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Revoke a buyer at every vendor.
   *
   * Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated.
   *
   * For staff of the deployment alone, who name no account: no key may do this.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  revoke(
    cbid: string,
    params: types.BuyerReason,
    options: CallOptions = {},
  ): Promise<types.BuyerStanding> {
    return this.sender.send<types.BuyerStanding>({
      method: "POST",
      path: `/v1/buyers/${segment(cbid)}/revoke`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Undo the revocation of a buyer.
   *
   * Undo a revocation. The buyer gets the earlier status back, or has to verify again.
   *
   * For staff of the deployment alone, who name no account: no key may do this.
   *
   * Needs the scope `buyers:review`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  reinstate(
    cbid: string,
    params: types.BuyerReason,
    options: CallOptions = {},
  ): Promise<types.BuyerStanding> {
    return this.sender.send<types.BuyerStanding>({
      method: "POST",
      path: `/v1/buyers/${segment(cbid)}/reinstate`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** Links for one buyer and one order. */
export class CheckoutSessions extends Resource {
  /**
   * Create a link for one buyer and one order.
   *
   * Create a link for one buyer and one order. Its url and token are returned only once.
   *
   * Needs the scope `checkout_sessions:create`.
   */
  create(
    params: types.CheckoutSessionRequest,
    options: CallOptions = {},
  ): Promise<types.CheckoutSession> {
    return this.sender.send<types.CheckoutSession>({
      method: "POST",
      path: "/v1/checkout_sessions",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List checkout sessions, newest first.
   *
   * The checkout sessions of this account and mode, newest first.
   *
   * Needs the scope `checkout_sessions:create`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of that page's last session. */
      after?: string | undefined;
      /** Only items with this checkout session of yours. */
      session_id?: string | undefined;
      /** Only items with this order reference. */
      order_reference?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.CheckoutSession> {
    return new Listing<types.CheckoutSession>(this.sender, {
      method: "GET",
      path: "/v1/checkout_sessions",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one checkout session.
   *
   * One checkout session. Decide by its `status`, never by where the buyer's browser returns.
   *
   * Needs the scope `checkout_sessions:create`.
   */
  retrieve(
    checkout_session_id: string,
    options: CallOptions = {},
  ): Promise<types.CheckoutSession> {
    return this.sender.send<types.CheckoutSession>({
      method: "GET",
      path: `/v1/checkout_sessions/${segment(checkout_session_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Cancel an open checkout session.
   *
   * Cancel an open checkout session: its link collects nothing any more.
   *
   * Needs the scope `checkout_sessions:create`.
   */
  cancel(
    checkout_session_id: string,
    params: types.Cancellation = {},
    options: CallOptions = {},
  ): Promise<types.CheckoutSession> {
    return this.sender.send<types.CheckoutSession>({
      method: "POST",
      path: `/v1/checkout_sessions/${segment(checkout_session_id)}/cancel`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** The session of a client token, which is the key of this client. */
export class CurrentCheckoutSession extends Resource {
  /**
   * Get the session of a client token.
   *
   * The session of this client token, with the notice to show.
   */
  retrieve(
    options: CallOptions = {},
  ): Promise<types.CurrentCheckoutSession> {
    return this.sender.send<types.CurrentCheckoutSession>({
      method: "GET",
      path: "/v1/checkout_sessions/current",
      repeatable: true,
    }, options);
  }

  /**
   * Report what the buyer did, as the browser claims.
   *
   * Keep what the browser says that the buyer did. The record marks it as claimed.
   */
  claimEvents(
    params: types.ClaimsRequest,
    options: CallOptions = {},
  ): Promise<types.Nothing> {
    return this.sender.send<types.Nothing>({
      method: "POST",
      path: "/v1/checkout_sessions/current/events",
      body: params,
    }, options);
  }

  /**
   * Acknowledge, and complete the session.
   *
   * Acknowledge with the initials on every line, and complete the session.
   *
   * Sent again with the same initials, it returns the same.
   */
  acknowledge(
    params: types.CurrentAcknowledgmentRequest,
    options: CallOptions = {},
  ): Promise<types.CurrentCheckoutSession> {
    return this.sender.send<types.CurrentCheckoutSession>({
      method: "POST",
      path: "/v1/checkout_sessions/current/acknowledge",
      body: params,
    }, options);
  }

  /**
   * Decline, and end the session.
   *
   * End the session because the buyer declines.
   */
  decline(
    params: types.Cancellation = {},
    options: CallOptions = {},
  ): Promise<types.CurrentCheckoutSession> {
    return this.sender.send<types.CurrentCheckoutSession>({
      method: "POST",
      path: "/v1/checkout_sessions/current/decline",
      body: params,
    }, options);
  }
}

/** Decisions whether an order may ship. */
export class Clearances extends Resource {
  /**
   * Decide whether an order may ship.
   *
   * Decide whether an order may ship. The response contains every reason against it.
   *
   * Needs the scope `clearances:create`.
   */
  create(
    params: types.ClearanceRequest,
    options: CallOptions = {},
  ): Promise<types.ClearanceDecision> {
    return this.sender.send<types.ClearanceDecision>({
      method: "POST",
      path: "/v1/clearances",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Find clearances, newest first.
   *
   * The account's clearances, newest first.
   *
   * Needs the scope `clearances:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of that page's last clearance. */
      after?: string | undefined;
      /** Only clearances requested with this acknowledgment. */
      ack_id?: string | undefined;
      /** Only items with this checkout session. */
      session_id?: string | undefined;
      /** Only items with this buyer identifier. */
      cbid?: string | undefined;
      /** Only items with this order reference. */
      order_reference?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.Clearance> {
    return new Listing<types.Clearance>(this.sender, {
      method: "GET",
      path: "/v1/clearances",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one clearance, with the reports of its fulfilment.
   *
   * One clearance of this account.
   *
   * Needs the scope `clearances:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   */
  retrieve(
    clearance_id: string,
    options: CallOptions = {},
  ): Promise<types.Clearance> {
    return this.sender.send<types.Clearance>({
      method: "GET",
      path: `/v1/clearances/${segment(clearance_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Report the fulfilment of an order, step by step.
   *
   * Report the fulfilment of an order, in one step or in several.
   *
   * The order is closed when every obligation is reported; it still takes what was not reported
   * before, such as the delivery. A report cannot be changed, only corrected by a new one that
   * names it; a report that repeats what is known gets the receipt of the earlier one.
   *
   * Needs the scope `clearances:create`.
   */
  fulfil(
    clearance_id: string,
    params: types.FulfilmentRequest = {},
    options: CallOptions = {},
  ): Promise<types.FulfilmentReceipt> {
    return this.sender.send<types.FulfilmentReceipt>({
      method: "POST",
      path: `/v1/clearances/${segment(clearance_id)}/fulfilment`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Override the refusal of an order.
   *
   * Override the refusal of an order, at the caller's responsibility. The order stays refused.
   *
   * No token is issued. A record of its own type names the refusal, the people and their reasons.
   * From now on the acknowledgment belongs to this order. The next clearance has `overridden`,
   * until there is a new reason, or the maximum age of an acknowledgment has passed. A repeated
   * override of one refusal returns the first. Where two people decide at the account, the first
   * request is a proposal for 30 days, and another person overrides; a key cannot.
   *
   * Needs the scope `clearances:override`. A person needs a fresh passkey.
   */
  override(
    clearance_id: string,
    params: types.OverrideRequest,
    options: CallOptions = {},
  ): Promise<types.Overridden> {
    return this.sender.send<types.Overridden>({
      method: "POST",
      path: `/v1/clearances/${segment(clearance_id)}/override`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Get the evidence of a cleared or refused order, as a ZIP file.
   *
   * All records of one order in one ZIP file, under one checkpoint, with their proofs.
   *
   * These are the acknowledgment, the identity check that the decision relied on, the clearance,
   * reports of fulfilment, events of the notice, erasures, and the records of operator, account and
   * capture process that these name. Readers say what joins them, and what is missing.
   *
   * The same request returns the same bytes for the same `size`. They change when a witness cosigns
   * or a time-stamp authority stamps that checkpoint, when fields are erased, when the operator
   * changes the witnesses, and with another release of the service, its fonts or its tools. Without
   * `size` the checkpoint is the first one that holds all the records: a new record of the order
   * changes the bytes too.
   *
   * Needs the scope `evidence:read`. It discloses personal data: a person gives the reason in
   * `Countersign-Reason`.
   *
   * With `options.waitSeconds` it waits for sealing, at most 10 seconds.
   */
  dossier(
    clearance_id: string,
    query: {
      /**
       * The personal fields to show, over all records, separated by commas: `initials_per_line`,
       * `session_id`, `cbid`, `ip`, `user_agent`, `process`, `order_reference`, `shipping`,
       * `verification`, `carrier`, `tracking_number`, `provider_identity_session_id`, `result`,
       * `evidence_sha256`, `override`, or `none`. Left out: all of them.
       */
      disclose?: string | undefined;
      /**
       * The size of the checkpoint of the log to prove it by. Records that it does not hold are
       * left out.
       */
      size?: number | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<Uint8Array> {
    return this.sender.send<Uint8Array>({
      method: "GET",
      path: `/v1/clearances/${segment(clearance_id)}/dossier`,
      query,
      returns: "bytes",
      repeatable: true,
    }, options);
  }
}

/** What has happened. */
export class Events extends Resource {
  /**
   * List events, oldest first.
   *
   * The account's events, oldest first. No event is skipped, and the order never changes.
   *
   * To follow the events, keep the `id` of the last event and send it as `after` in the next
   * request.
   *
   * Needs the scope `events:read`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of its last event. */
      after?: string | undefined;
      /** Only events of this type. */
      type?: types.EventType | undefined;
      /** Only events at or after this time. */
      since?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.Event> {
    return new Listing<types.Event>(this.sender, {
      method: "GET",
      path: "/v1/events",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one event.
   *
   * One event of this account.
   *
   * Needs the scope `events:read`.
   */
  retrieve(
    event_id: string,
    options: CallOptions = {},
  ): Promise<types.Event> {
    return this.sender.send<types.Event>({
      method: "GET",
      path: `/v1/events/${segment(event_id)}`,
      repeatable: true,
    }, options);
  }
}

/** The endpoints that get events, and deliveries to them. */
export class WebhookEndpoints extends Resource {
  /**
   * Create a webhook endpoint.
   *
   * Create an endpoint that gets events from now on. Its secret is returned only once.
   *
   * Needs the scope `webhooks:manage`.
   */
  create(
    params: types.WebhookEndpointRequest,
    options: CallOptions = {},
  ): Promise<types.NewWebhookEndpoint> {
    return this.sender.send<types.NewWebhookEndpoint>({
      method: "POST",
      path: "/v1/webhook_endpoints",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List the webhook endpoints, oldest first.
   *
   * The webhook endpoints of this account and mode, oldest first.
   *
   * Needs the scope `webhooks:manage`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of that page's last endpoint. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.WebhookEndpoint> {
    return new Listing<types.WebhookEndpoint>(this.sender, {
      method: "GET",
      path: "/v1/webhook_endpoints",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one webhook endpoint.
   *
   * One webhook endpoint, without its secret.
   *
   * Needs the scope `webhooks:manage`.
   */
  retrieve(
    endpoint_id: string,
    options: CallOptions = {},
  ): Promise<types.WebhookEndpoint> {
    return this.sender.send<types.WebhookEndpoint>({
      method: "GET",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Change, disable or enable a webhook endpoint.
   *
   * Change a webhook endpoint, disable it, or enable it again.
   *
   * Running servers apply the change within seconds. Events from the time while the endpoint was
   * disabled are not sent automatically: use recover.
   *
   * Needs the scope `webhooks:manage`.
   */
  change(
    endpoint_id: string,
    params: types.WebhookEndpointChange = {},
    options: CallOptions = {},
  ): Promise<types.WebhookEndpoint> {
    return this.sender.send<types.WebhookEndpoint>({
      method: "PATCH",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Delete a webhook endpoint.
   *
   * Delete a webhook endpoint and its secrets. It gets no more events.
   *
   * Needs the scope `webhooks:manage`. A person needs a fresh passkey.
   */
  delete(
    endpoint_id: string,
    options: CallOptions = {},
  ): Promise<types.DeletedWebhookEndpoint> {
    return this.sender.send<types.DeletedWebhookEndpoint>({
      method: "DELETE",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Give a webhook endpoint a new secret.
   *
   * Create a new secret, returned only once. Both secrets sign until the overlap ends.
   *
   * Needs the scope `webhooks:manage`.
   */
  rotateSecret(
    endpoint_id: string,
    params: types.SecretRotation = {},
    options: CallOptions = {},
  ): Promise<types.NewWebhookEndpoint> {
    return this.sender.send<types.NewWebhookEndpoint>({
      method: "POST",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}/rotate_secret`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List deliveries and their attempts, newest first.
   *
   * The deliveries to a webhook endpoint, newest events first.
   *
   * Needs the scope `webhooks:manage`.
   */
  listDeliveries(
    endpoint_id: string,
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: the id of its last event. */
      after?: string | undefined;
      /** Only deliveries with this status. */
      status?: types.DeliveryStatus | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.WebhookDelivery> {
    return new Listing<types.WebhookDelivery>(this.sender, {
      method: "GET",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}/deliveries`,
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Deliver an event again.
   *
   * Deliver an event again with the same webhook-id, whatever the result of earlier attempts.
   *
   * Needs the scope `webhooks:manage`.
   */
  resend(
    endpoint_id: string,
    params: types.Resending,
    options: CallOptions = {},
  ): Promise<types.Event> {
    return this.sender.send<types.Event>({
      method: "POST",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}/resend`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Deliver missed events since a time again.
   *
   * Deliver all events since a time that were not delivered.
   *
   * Needs the scope `webhooks:manage`.
   */
  recover(
    endpoint_id: string,
    params: types.Recovery,
    options: CallOptions = {},
  ): Promise<types.WebhookEndpoint> {
    return this.sender.send<types.WebhookEndpoint>({
      method: "POST",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}/recover`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Send a signed example immediately.
   *
   * Send a signed example immediately, and return the result. The example is sent only once.
   *
   * Needs the scope `webhooks:manage`.
   */
  sendExample(
    endpoint_id: string,
    params: types.ExampleRequest,
    options: CallOptions = {},
  ): Promise<types.WebhookAttempt> {
    return this.sender.send<types.WebhookAttempt>({
      method: "POST",
      path: `/v1/webhook_endpoints/${segment(endpoint_id)}/send_example`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** The public log. */
export class Log extends Resource {
  /**
   * Get the policy to verify evidence against.
   *
   * The policy to verify evidence of one mode (c2sp.org/tlog-policy); `live` by default.
   */
  policy(
    query: {
      /** The mode of the evidence. Left out: `live`. */
      mode?: types.Mode | undefined;
    } = {},
    options: CallOptions = {},
  ): Promise<string> {
    return this.sender.send<string>({
      method: "GET",
      path: "/v1/log/policy",
      query,
      returns: "text",
      repeatable: true,
    }, options);
  }
}

/** What test keys can arrange. */
export class Sandbox extends Resource {
  /**
   * Get the test clock.
   *
   * The test clock of this account.
   *
   * Needs the scope `sandbox:manage`.
   */
  clock(
    options: CallOptions = {},
  ): Promise<types.TestClock> {
    return this.sender.send<types.TestClock>({
      method: "GET",
      path: "/v1/test/clock",
      repeatable: true,
    }, options);
  }

  /**
   * Reset the test clock to real time.
   *
   * Reset the test clock to real time. Existing objects keep their times.
   *
   * Needs the scope `sandbox:manage`.
   */
  resetClock(
    options: CallOptions = {},
  ): Promise<types.TestClock> {
    return this.sender.send<types.TestClock>({
      method: "DELETE",
      path: "/v1/test/clock",
      repeatable: true,
    }, options);
  }

  /**
   * Advance the test clock.
   *
   * Advance the test clock. Every server uses it once the response is sent.
   *
   * Needs the scope `sandbox:manage`.
   */
  advanceClock(
    params: types.ClockAdvance = {},
    options: CallOptions = {},
  ): Promise<types.TestClock> {
    return this.sender.send<types.TestClock>({
      method: "POST",
      path: "/v1/test/clock/advance",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Set the status of a sandbox buyer.
   *
   * Give a sandbox buyer any status, and write the event of that status.
   *
   * Needs the scope `sandbox:manage`.
   */
  moveBuyer(
    params: types.BuyerMove,
    options: CallOptions = {},
  ): Promise<types.BuyerStatusAnswer> {
    return this.sender.send<types.BuyerStatusAnswer>({
      method: "POST",
      path: "/v1/test/buyers",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Write an event of any type.
   *
   * Write an event without a cause. It is listed and delivered with `triggered: true`.
   *
   * Needs the scope `sandbox:manage`.
   */
  triggerEvent(
    params: types.EventTrigger,
    options: CallOptions = {},
  ): Promise<types.Event> {
    return this.sender.send<types.Event>({
      method: "POST",
      path: "/v1/test/events",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Get the planned fault.
   *
   * The fault that the next verification in the sandbox gets.
   *
   * Needs the scope `sandbox:manage`.
   */
  fault(
    options: CallOptions = {},
  ): Promise<types.PlannedFault> {
    return this.sender.send<types.PlannedFault>({
      method: "GET",
      path: "/v1/test/fault",
      repeatable: true,
    }, options);
  }

  /**
   * Let the next verifications fail.
   *
   * Let the next verifications in the sandbox fail. This replaces a planned fault.
   *
   * Needs the scope `sandbox:manage`.
   */
  planFault(
    params: types.FaultRequest,
    options: CallOptions = {},
  ): Promise<types.PlannedFault> {
    return this.sender.send<types.PlannedFault>({
      method: "POST",
      path: "/v1/test/fault",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Remove the planned fault.
   *
   * Needs the scope `sandbox:manage`.
   */
  clearFault(
    options: CallOptions = {},
  ): Promise<types.PlannedFault> {
    return this.sender.send<types.PlannedFault>({
      method: "DELETE",
      path: "/v1/test/fault",
      repeatable: true,
    }, options);
  }
}

/** The last requests of the account's keys. */
export class Requests extends Resource {
  /**
   * List the last requests of the account's keys, newest first.
   *
   * The last 1,000 requests with a key of this account and mode, as far as this server has them.
   *
   * They are in the memory of the server that answers, of all of its workers: a restart forgets
   * them, and other servers have their own. A request without a valid key, or to an unknown path,
   * is of no account and is not there.
   *
   * Needs the scope `events:read`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page. */
      after?: string | undefined;
      /** Only those that were refused or failed; false: the others. */
      failed?: types.Open<"false" | "true"> | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.RequestView> {
    return new Listing<types.RequestView>(this.sender, {
      method: "GET",
      path: "/v1/requests",
      query,
      repeatable: true,
    }, options);
  }
}

/** Whether the server responds. */
export class Service extends Resource {
  /**
   * Check that the process responds.
   *
   * The process responds. This does not check what the process depends on.
   */
  health(
    options: CallOptions = {},
  ): Promise<types.Health> {
    return this.sender.send<types.Health>({
      method: "GET",
      path: "/healthz",
      repeatable: true,
    }, options);
  }

  /**
   * Check that the process can do its work.
   *
   * Whether the process can do its work: it reads, within two seconds, and writes succeed.
   */
  readiness(
    options: CallOptions = {},
  ): Promise<types.Readiness> {
    return this.sender.send<types.Readiness>({
      method: "GET",
      path: "/readyz",
      repeatable: true,
    }, options);
  }
}

/** The accounts of a deployment: for its staff. */
export class Accounts extends Resource {
  /**
   * Create an account.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`.
   */
  create(
    params: types.NamedAccount,
    options: CallOptions = {},
  ): Promise<types.AccountView> {
    return this.sender.send<types.AccountView>({
      method: "POST",
      path: "/v1/accounts",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List the accounts, oldest first.
   *
   * The accounts, oldest first.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last account. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.AccountView> {
    return new Listing<types.AccountView>(this.sender, {
      method: "GET",
      path: "/v1/accounts",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one account.
   *
   * One account, with its brand and its origins.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`.
   */
  retrieve(
    account_id: string,
    options: CallOptions = {},
  ): Promise<types.AccountDetails> {
    return this.sender.send<types.AccountDetails>({
      method: "GET",
      path: `/v1/accounts/${segment(account_id)}`,
      repeatable: true,
    }, options);
  }

  /**
   * Change the settings of an account.
   *
   * Change how many people decide on a buyer who waits, or when a person's request is due.
   *
   * Or keep whole responses of identity providers, beyond what decisions need, for a reason and
   * until a time.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person names
   * live mode.
   */
  change(
    account_id: string,
    params: types.AccountChange = {},
    options: CallOptions = {},
  ): Promise<types.AccountView> {
    return this.sender.send<types.AccountView>({
      method: "PATCH",
      path: `/v1/accounts/${segment(account_id)}`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Rename an account.
   *
   * Give an account another name; its id, and what is recorded of it, stay.
   *
   * The name is a label for operators. Who an account is, for the evidence, is said by `accounts
   * describe`.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. Both modes of the account share it: a person names live mode.
   */
  rename(
    account_id: string,
    params: types.NamedAccount,
    options: CallOptions = {},
  ): Promise<types.AccountView> {
    return this.sender.send<types.AccountView>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/rename`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Disable an account.
   *
   * Let no key of an account work until it is enabled again.
   *
   * Open checkout sessions go on to their end, webhooks are delivered, and evidence stays.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person names
   * live mode.
   */
  disable(
    account_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.AccountView> {
    return this.sender.send<types.AccountView>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/disable`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Enable a disabled account.
   *
   * Let the keys of a disabled account work again.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. Both modes of the account share it: a person names live mode.
   */
  enable(
    account_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.AccountView> {
    return this.sender.send<types.AccountView>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/enable`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Change how buyers see an account.
   *
   * Change how buyers see an account on hosted pages. What is left out stays as it is.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. Both modes of the account share it: a person names live mode.
   */
  changeBrand(
    account_id: string,
    params: types.BrandChange = {},
    options: CallOptions = {},
  ): Promise<types.BrandView> {
    return this.sender.send<types.BrandView>({
      method: "PATCH",
      path: `/v1/accounts/${segment(account_id)}/brand`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Register an origin.
   *
   * Register an origin: scheme, host and port, such as https://shop.example.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. Both modes of the account share it: a person names live mode.
   */
  addOrigin(
    account_id: string,
    params: types.OriginOfAccount,
    options: CallOptions = {},
  ): Promise<types.AccountOrigin> {
    return this.sender.send<types.AccountOrigin>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/origins`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Remove an origin.
   *
   * Remove an origin. Sessions that are open keep it.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. Both modes of the account share it: a person names live mode.
   */
  removeOrigin(
    account_id: string,
    params: types.OriginOfAccount,
    options: CallOptions = {},
  ): Promise<types.AccountOrigin> {
    return this.sender.send<types.AccountOrigin>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/origins/remove`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * See what closing an account would end.
   *
   * What closing an account would end, and what would stay.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`.
   */
  previewClosing(
    account_id: string,
    options: CallOptions = {},
  ): Promise<types.ClosedAccount> {
    return this.sender.send<types.ClosedAccount>({
      method: "GET",
      path: `/v1/accounts/${segment(account_id)}/close`,
      repeatable: true,
    }, options);
  }

  /**
   * Close an account for good.
   *
   * Close an account for good: keys, endpoints, origins, credentials and open sessions end.
   *
   * Its records stay for evidence, with their proofs, their holds and their periods.
   *
   * Needs the scope `accounts:manage`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey. Both modes of the account share it: a person names
   * live mode.
   */
  close(
    account_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.ClosedAccount> {
    return this.sender.send<types.ClosedAccount>({
      method: "POST",
      path: `/v1/accounts/${segment(account_id)}/close`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** API keys of an account: for staff. */
export class Keys extends Resource {
  /**
   * Create an API key.
   *
   * Create a key. It is in this response only, and works immediately.
   *
   * A person whose role does not see personal data, and whose key reads it (`acks:read`,
   * `clearances:read`, `evidence:read`), says why in `Countersign-Reason`. How often a key that a
   * person made reads personal data is in the audit, for each day.
   *
   * Needs the scope `keys:manage`. It answers only where the console is on, else with `not_found`.
   * A person needs a fresh passkey.
   */
  create(
    params: types.KeyRequest = {},
    options: CallOptions = {},
  ): Promise<types.KeyView> {
    return this.sender.send<types.KeyView>({
      method: "POST",
      path: "/v1/keys",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List the API keys, oldest first.
   *
   * The keys of an account and mode, oldest first.
   *
   * Needs the scope `keys:manage`. It answers only where the console is on, else with `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last key. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.KeyView> {
    return new Listing<types.KeyView>(this.sender, {
      method: "GET",
      path: "/v1/keys",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Give an API key a successor.
   *
   * Create a successor with the same scopes and maker. The old key works until the overlap ends.
   *
   * `Countersign-Reason` is needed as for a new key. A key of the machine becomes that of the
   * person who rotates it, and who is shown the successor.
   *
   * Needs the scope `keys:manage`. It answers only where the console is on, else with `not_found`.
   * A person needs a fresh passkey.
   */
  rotate(
    key_id: string,
    params: types.KeyRotation = {},
    options: CallOptions = {},
  ): Promise<types.KeyView> {
    return this.sender.send<types.KeyView>({
      method: "POST",
      path: `/v1/keys/${segment(key_id)}/rotate`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Revoke an API key for good.
   *
   * Revoke a key for good. Running servers refuse it within seconds.
   *
   * Needs the scope `keys:manage`. It answers only where the console is on, else with `not_found`.
   * A person needs a fresh passkey.
   */
  revoke(
    key_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.KeyView> {
    return this.sender.send<types.KeyView>({
      method: "POST",
      path: `/v1/keys/${segment(key_id)}/revoke`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** Orders, found by anything that names one: for staff. */
export class Orders extends Resource {
  /**
   * Find an order by anything that names it.
   *
   * Find an order by anything that names it, in one account and mode.
   *
   * Staff who name no account search all of them. The result has no personal value: read those at
   * the parts.
   *
   * Needs the scope `search:read`. It answers only where the console is on, else with `not_found`.
   */
  search(
    params: types.SearchRequest,
    options: CallOptions = {},
  ): Promise<types.SearchResult> {
    return this.sender.send<types.SearchResult>({
      method: "POST",
      path: "/v1/search",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List orders, the latest act first.
   *
   * The account's orders, that of the latest act first, each with its parts and its timeline.
   *
   * A page with filters can be short: go on until `next_cursor` is null.
   *
   * Needs the scope `orders:read`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page. */
      after?: string | undefined;
      /** Only the order of this checkout session of yours. */
      session_id?: string | undefined;
      /** Only orders with this order reference. */
      order_reference?: string | undefined;
      /** Only orders in this state. */
      state?: types.OrderState | undefined;
      /** Only orders that wait for the buyer or for a decision; false: the others. */
      waiting?: types.Open<"false" | "true"> | undefined;
      /** Only orders that a legal hold keeps; false: the others. */
      held?: types.Open<"false" | "true"> | undefined;
      /** Only orders with this notice. */
      notice_id?: string | undefined;
      /** Only orders opened at or after this time. */
      opened_after?: string | undefined;
      /** Only orders opened before this time. */
      opened_before?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.FoundOrder> {
    return new Listing<types.FoundOrder>(this.sender, {
      method: "GET",
      path: "/v1/orders",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Get one order.
   *
   * One order of this account, by its id or that of any of its parts.
   *
   * Needs the scope `orders:read`.
   */
  retrieve(
    order_id: string,
    options: CallOptions = {},
  ): Promise<types.FoundOrder> {
    return this.sender.send<types.FoundOrder>({
      method: "GET",
      path: `/v1/orders/${segment(order_id)}`,
      repeatable: true,
    }, options);
  }
}

/** Legal holds: for staff. */
export class Holds extends Resource {
  /**
   * Place a legal hold.
   *
   * Prevent the erasure of an order, a buyer or an account.
   *
   * On a record, the hold keeps what the whole order needs: acknowledgment, clearances, reports of
   * fulfilment, and the identity check that it rests on. On a buyer, it also keeps the orders that
   * name the buyer.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   */
  place(
    params: types.HoldRequest,
    options: CallOptions = {},
  ): Promise<types.HoldView> {
    return this.sender.send<types.HoldView>({
      method: "POST",
      path: "/v1/holds",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List the legal holds, oldest first.
   *
   * The legal holds, oldest first.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last hold. */
      after?: string | undefined;
      /** Only those. */
      status?: types.Open<"active" | "released"> | undefined;
      /** Only of this matter. */
      matter_id?: string | undefined;
      /** Only those that last on this order: on a part, its buyer or its account. */
      order_id?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.HoldView> {
    return new Listing<types.HoldView>(this.sender, {
      method: "GET",
      path: "/v1/holds",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Release a legal hold.
   *
   * End a hold, and erase what was to be erased and waited for its end. Nothing else goes.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   * A person needs a fresh passkey.
   */
  release(
    hold_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.ReleasedHolds> {
    return this.sender.send<types.ReleasedHolds>({
      method: "POST",
      path: `/v1/holds/${segment(hold_id)}/release`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** Matters, each with several holds: for staff. */
export class Matters extends Resource {
  /**
   * Open a matter, with holds on its orders.
   *
   * Open a matter, with a hold on each of the orders: on all of them, or nothing is written.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   */
  open(
    params: types.MatterRequest,
    options: CallOptions = {},
  ): Promise<types.MatterView> {
    return this.sender.send<types.MatterView>({
      method: "POST",
      path: "/v1/matters",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * List the matters, oldest first.
   *
   * The matters, oldest first.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last matter. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.MatterView> {
    return new Listing<types.MatterView>(this.sender, {
      method: "GET",
      path: "/v1/matters",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * Release all holds of a matter.
   *
   * Close a matter: all its holds end, and what waited for that is erased.
   *
   * A closed one has no holds.
   *
   * Needs the scope `holds:manage`. It answers only where the console is on, else with `not_found`.
   * A person needs a fresh passkey.
   */
  release(
    matter_id: string,
    params: types.NoWords = {},
    options: CallOptions = {},
  ): Promise<types.ReleasedHolds> {
    return this.sender.send<types.ReleasedHolds>({
      method: "POST",
      path: `/v1/matters/${segment(matter_id)}/release`,
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** Erasing personal data: for staff. */
export class Erasures extends Resource {
  /**
   * List the buyers who asked to be erased.
   *
   * The buyers who asked at /buyer to be erased and still wait, in the order of their ids.
   *
   * Needs the scope `erasure:write`. It answers only where the console is on, else with
   * `not_found`.
   */
  listRequests(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last buyer. */
      after?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.ErasureRequested> {
    return new Listing<types.ErasureRequested>(this.sender, {
      method: "GET",
      path: "/v1/erasures/requests",
      query,
      repeatable: true,
    }, options);
  }

  /**
   * See what an erasure would erase, and what is held.
   *
   * What would be erased, what legal holds keep, and why. Nothing is changed.
   *
   * Needs the scope `retention:read`. It answers only where the console is on, else with
   * `not_found`.
   */
  preview(
    params: types.ErasurePreviewRequest,
    options: CallOptions = {},
  ): Promise<types.ErasurePreview> {
    return this.sender.send<types.ErasurePreview>({
      method: "POST",
      path: "/v1/erasures/preview",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }

  /**
   * Erase personal data permanently.
   *
   * Permanently erase the personal data of an acknowledgment, a verification or a buyer.
   *
   * The record, its log entry and every proof stay valid. The erasure itself is recorded. What a
   * legal hold keeps of a buyer is erased when the hold is released.
   *
   * Needs the scope `erasure:write`. It answers only where the console is on, else with
   * `not_found`. A person needs a fresh passkey.
   */
  create(
    params: types.ErasureOrder,
    options: CallOptions = {},
  ): Promise<types.ErasureDone> {
    return this.sender.send<types.ErasureDone>({
      method: "POST",
      path: "/v1/erasures",
      body: params,
      keyed: true,
      repeatable: true,
    }, options);
  }
}

/** What falls due: for staff. */
export class Retention extends Resource {
  /**
   * List what falls due.
   *
   * What has outlived its retention, or will have: acknowledgments, then verifications.
   *
   * Of each, the oldest come first. `countersign retention run` erases what is due and not on hold.
   *
   * Needs the scope `retention:read`. It answers only where the console is on, else with
   * `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last record. */
      after?: string | undefined;
      /** What ends until this time. Left out: what has ended. */
      until?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.DueRecord> {
    return new Listing<types.DueRecord>(this.sender, {
      method: "GET",
      path: "/v1/retention",
      query,
      repeatable: true,
    }, options);
  }
}

/** What operators and staff did: for staff. */
export class Audit extends Resource {
  /**
   * List what operators and staff did, newest first.
   *
   * What operators and staff did or looked at, newest first.
   *
   * For one account: what was done in its name in this mode, and what is about it as a whole. Staff
   * who name no account see all.
   *
   * Needs the scope `audit:read`. It answers only where the console is on, else with `not_found`.
   */
  list(
    query: {
      /** The maximum number of items. */
      limit?: number | undefined;
      /** The `next_cursor` of the previous page: that page's last entry. */
      after?: string | undefined;
      /** Only about this one. */
      subject?: string | undefined;
      /** Only by this person, key or user of the system. */
      actor?: string | undefined;
      /** Only this. */
      action?: types.AuditAction | undefined;
      /** At or after. */
      begin?: string | undefined;
      /** Before. */
      end?: string | undefined;
    } = {},
    options: CallOptions = {},
  ): Listing<types.AuditView> {
    return new Listing<types.AuditView>(this.sender, {
      method: "GET",
      path: "/v1/audit",
      query,
      repeatable: true,
    }, options);
  }
}

/** How the deployment stands: for its staff. */
export class Deployment extends Resource {
  /**
   * See what is owed, and how sealing stands.
   *
   * How sealing stands, and what is owed since when: entries, times, backups and more.
   *
   * Needs the scope `deployment:read`. It answers only where the console is on, else with
   * `not_found`.
   */
  retrieve(
    options: CallOptions = {},
  ): Promise<types.DeploymentStanding> {
    return this.sender.send<types.DeploymentStanding>({
      method: "GET",
      path: "/v1/deployment",
      repeatable: true,
    }, options);
  }

  /**
   * See what is wrong.
   *
   * What is wrong, as far as a server can judge it: `countersign doctor` looks at more.
   *
   * Needs the scope `deployment:read`. It answers only where the console is on, else with
   * `not_found`.
   */
  findings(
    options: CallOptions = {},
  ): Promise<types.DoctorFindings> {
    return this.sender.send<types.DoctorFindings>({
      method: "GET",
      path: "/v1/deployment/findings",
      repeatable: true,
    }, options);
  }
}

/** What happened lately in an account: for staff. */
export class Today extends Resource {
  /**
   * See how an account does.
   *
   * How an account does: the last 24 hours, the last 14 days, and what waits.
   *
   * Hours and days are those of UTC, and of real time in the sandbox too. Of the whole deployment,
   * `GET /v1/deployment` shows how it stands.
   *
   * Needs the scope `search:read`. It answers only where the console is on, else with `not_found`.
   */
  retrieve(
    options: CallOptions = {},
  ): Promise<types.Today> {
    return this.sender.send<types.Today>({
      method: "GET",
      path: "/v1/today",
      repeatable: true,
    }, options);
  }
}

/** All operations, by what they are about. */
export class Resources {
  /** The notices that buyers initial. */
  readonly notices: Notices;
  /** What an order needs. */
  readonly requirements: Requirements;
  /** Stored initials, and their evidence. */
  readonly acknowledgments: Acknowledgments;
  /** Buyers and their verification. */
  readonly buyers: Buyers;
  /** Links for one buyer and one order. */
  readonly checkoutSessions: CheckoutSessions;
  /** The session of a client token, which is the key of this client. */
  readonly currentCheckoutSession: CurrentCheckoutSession;
  /** Decisions whether an order may ship. */
  readonly clearances: Clearances;
  /** What has happened. */
  readonly events: Events;
  /** The endpoints that get events, and deliveries to them. */
  readonly webhookEndpoints: WebhookEndpoints;
  /** The public log. */
  readonly log: Log;
  /** What test keys can arrange. */
  readonly sandbox: Sandbox;
  /** The last requests of the account's keys. */
  readonly requests: Requests;
  /** Whether the server responds. */
  readonly service: Service;
  /** The accounts of a deployment: for its staff. */
  readonly accounts: Accounts;
  /** API keys of an account: for staff. */
  readonly keys: Keys;
  /** Orders, found by anything that names one: for staff. */
  readonly orders: Orders;
  /** Legal holds: for staff. */
  readonly holds: Holds;
  /** Matters, each with several holds: for staff. */
  readonly matters: Matters;
  /** Erasing personal data: for staff. */
  readonly erasures: Erasures;
  /** What falls due: for staff. */
  readonly retention: Retention;
  /** What operators and staff did: for staff. */
  readonly audit: Audit;
  /** How the deployment stands: for its staff. */
  readonly deployment: Deployment;
  /** What happened lately in an account: for staff. */
  readonly today: Today;

  constructor(sender: Sender) {
    this.notices = new Notices(sender);
    this.requirements = new Requirements(sender);
    this.acknowledgments = new Acknowledgments(sender);
    this.buyers = new Buyers(sender);
    this.checkoutSessions = new CheckoutSessions(sender);
    this.currentCheckoutSession = new CurrentCheckoutSession(sender);
    this.clearances = new Clearances(sender);
    this.events = new Events(sender);
    this.webhookEndpoints = new WebhookEndpoints(sender);
    this.log = new Log(sender);
    this.sandbox = new Sandbox(sender);
    this.requests = new Requests(sender);
    this.service = new Service(sender);
    this.accounts = new Accounts(sender);
    this.keys = new Keys(sender);
    this.orders = new Orders(sender);
    this.holds = new Holds(sender);
    this.matters = new Matters(sender);
    this.erasures = new Erasures(sender);
    this.retention = new Retention(sender);
    this.audit = new Audit(sender);
    this.deployment = new Deployment(sender);
    this.today = new Today(sender);
  }
}
