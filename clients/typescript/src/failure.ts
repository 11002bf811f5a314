// Exceptions of a call, except the errors that the API names: those are in errors.ts.

/** Where an error comes from. */
export interface Circumstances {
  code: string;
  /** The HTTP status; null if there was no response. */
  status?: number | null;
  /** Quote it to the operator; null if there was no response. */
  request_id?: string | null;
  /** The number of seconds after which the server can do it, if it says so. */
  retry_after?: number | null;
  cause?: unknown;
}

/** A call failed. Decide by `code`; the message is for people and may change. */
export class CountersignError extends Error {
  readonly code: string;
  readonly status: number | null;
  readonly request_id: string | null;
  readonly retry_after: number | null;

  constructor(message: string, circumstances: Circumstances) {
    super(message, { cause: circumstances.cause });
    this.name = new.target.name;
    this.code = circumstances.code;
    this.status = circumstances.status ?? null;
    this.request_id = circumstances.request_id ?? null;
    this.retry_after = circumstances.retry_after ?? null;
  }
}

/**
 * The server was not reached, or the connection was lost before the response was complete.
 *
 * The server may have acted on the call if it was `sent`.
 */
export class ConnectionFailed extends CountersignError {
  readonly sent: boolean;

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, { code: "connection_failed", cause });
    this.sent = sent;
  }
}

/** There was no complete response in time. The server may have acted on the call. */
export class TimedOut extends CountersignError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "timed_out", cause });
  }
}

/** The response is not one of this API: a proxy's, a redirect, or of another version. */
export class UnexpectedResponse extends CountersignError {}

/** A webhook message is not authentic, or too old: return 400, and do not act on it. */
export class InvalidSignature extends CountersignError {
  constructor(message: string) {
    super(message, { code: "invalid_signature" });
  }
}

/** The token does not allow this order to ship; the message says why. */
export class InvalidClearanceToken extends CountersignError {
  constructor(message: string) {
    super(message, { code: "invalid_clearance_token" });
  }
}
