// When a call is sent again, and after how long: the policy of stamina, and `Retry-After`.
// Nothing in here sends or waits. clients/behaviour.json says what both clients do with it.

import { ConnectionFailed, type CountersignError, TimedOut } from "./failure.js";

/** How often and how patiently a failed call is sent again. */
export interface Retries {
  /** At most so many in all; 1: never again. */
  attempts: number;
  /** Seconds before the second attempt; each further wait is twice as long. */
  waitInitial: number;
  /** The longest of these waits, in seconds. */
  waitMax: number;
  /** Up to so many seconds are added at random. */
  waitJitter: number;
  /** All waits of a call together, in seconds. A wait that does not fit throws the error. */
  waitsMax: number;
}

export const RETRIES: Retries = {
  attempts: 4,
  waitInitial: 0.2,
  waitMax: 5,
  waitJitter: 0.3,
  waitsMax: 45,
};

const SERVER_ERRORS = new Set([500, 502, 503, 504]);
const NOTHING_DONE = new Set(["rate_limited", "overloaded", "blocked"]);

/**
 * The seconds to wait before the call is sent again, or null if the error is final.
 *
 * `attempt` counts from 1; `waited` is the sum of the waits so far. What is not `repeatable` is
 * sent again only if the server did not act on it.
 */
export function waitBeforeNext(
  policy: Retries,
  error: CountersignError,
  attempt: number,
  waited: number,
  repeatable: boolean,
): number | null {
  if (attempt >= policy.attempts) return null;
  if (!(repeatable ? mayPass(error) : nothingDone(error))) return null;
  let wait = Math.min(policy.waitMax, policy.waitInitial * 2 ** (attempt - 1));
  wait = Math.max(wait, error.retry_after ?? 0) + Math.random() * policy.waitJitter;
  return waited + wait <= policy.waitsMax ? wait : null;
}

/** Whether the same call may succeed later. */
function mayPass(error: CountersignError): boolean {
  const lost = error instanceof ConnectionFailed || error instanceof TimedOut;
  return lost || error.retry_after !== null || SERVER_ERRORS.has(error.status ?? 0);
}

/** Whether the server certainly did not act on the call. */
function nothingDone(error: CountersignError): boolean {
  if (error instanceof ConnectionFailed) return !error.sent;
  return NOTHING_DONE.has(error.code);
}
