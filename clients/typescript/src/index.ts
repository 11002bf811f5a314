// Client for Countersign: notices, acknowledgments, buyer verification and clearances.

export type { CallOptions } from "./call.js";
export { Listing } from "./call.js";
export { type ClientOptions, Countersign } from "./client.js";
export * as errors from "./errors.js";
export {
  ConnectionFailed,
  CountersignError,
  InvalidClearanceToken,
  InvalidSignature,
  TimedOut,
  UnexpectedResponse,
} from "./failure.js";
export type { Retries } from "./retries.js";
export {
  type ClearanceClaims,
  type Order,
  type SigningKeys,
  verifyClearanceToken,
} from "./tokens.js";
export type * as types from "./types.js";
export { Webhooks } from "./webhooks.js";
