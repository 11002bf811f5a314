// Webhook messages: verified before they are believed (Standard Webhooks 1.0.0).

import { fromBase64, fromSecret, joined, toBase64, utf8, verifies } from "./bytes.js";
import { InvalidSignature } from "./failure.js";
import type { Event } from "./types.js";

/** How old a message may be, and how far ahead the server's clock. */
export const AGE_SECONDS_MAX = 300;

/** Headers of Node.js or of `fetch`. */
export type HeadersLike = Headers | Record<string, string | string[] | undefined>;

/** The messages that a server posts to your endpoint. */
export class Webhooks {
  /**
   * The event of a message, if it is authentic.
   *
   * `body` has to be the message as it came, before any framework parses it. `secret` is the
   * `whsec_…` of the endpoint, or its public key `whpk_…`. `now` is in seconds since 1970; left
   * out: the time of this machine. The same event can come more than once: keep the ids that you
   * have processed.
   *
   * Throws InvalidSignature: return 400, and do not act on the message. Throws TypeError if `secret`
   * is none: nothing that it signs can be believed.
   */
  async unwrap(
    body: Uint8Array | string,
    headers: HeadersLike,
    { secret, now = Date.now() / 1000 }: { secret: string; now?: number },
  ): Promise<Event> {
    const id = header(headers, "webhook-id");
    const stamp = header(headers, "webhook-timestamp");
    const signatures = header(headers, "webhook-signature").split(" ");
    if (!/^[0-9]{1,12}$/.test(stamp)) {
      throw new InvalidSignature("The header 'webhook-timestamp' is no time.");
    }
    if (Math.abs(now - Number(stamp)) > AGE_SECONDS_MAX) {
      throw new InvalidSignature("The message is too old, or the clocks differ.");
    }
    const bytes = typeof body === "string" ? utf8(body) : body;
    if (!(await signed(secret, joined(utf8(`${id}.${stamp}.`), bytes), signatures))) {
      throw new InvalidSignature("No signature of the message fits the secret and the body.");
    }
    return eventOf(new TextDecoder().decode(bytes));
  }
}

function eventOf(text: string): Event {
  try {
    const event: unknown = JSON.parse(text);
    if (typeof event === "object" && event !== null && "type" in event && "id" in event) {
      return event as Event;
    }
  } catch {
    // Below.
  }
  throw new InvalidSignature("The message is no event.");
}

/** The headers of a message that is signed with a `whsec_…`: to test a receiver. */
export async function sign(
  secret: string,
  id: string,
  timestamp: number,
  body: string,
): Promise<Record<string, string>> {
  const signature = await crypto.subtle.sign(
    "HMAC",
    await hmacKey(secret, "sign"),
    utf8(`${id}.${timestamp}.${body}`),
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${toBase64(signature)}`,
  };
}

function header(headers: HeadersLike, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  if (typeof value !== "string") throw new InvalidSignature(`The header '${name}' is missing.`);
  return value;
}

/** Whether one of the signatures fits; during a rotation there are several. */
async function signed(
  secret: string,
  message: Uint8Array<ArrayBuffer>,
  signatures: string[],
): Promise<boolean> {
  const isPublic = secret.startsWith("whpk_");
  const mark = isPublic ? "v1a," : "v1,";
  const key = isPublic ? fromSecret(secret, "whpk_", 32, 32) : await hmacKey(secret, "verify");
  for (const one of signatures) {
    if (!one.startsWith(mark)) continue;
    let given: Uint8Array<ArrayBuffer>;
    try {
      given = fromBase64(one.slice(mark.length));
    } catch {
      continue;
    }
    const fits =
      key instanceof Uint8Array
        ? await verifies(key, given, message)
        : await crypto.subtle.verify("HMAC", key, given, message);
    if (fits) return true;
  }
  return false;
}

function hmacKey(secret: string, use: KeyUsage): Promise<CryptoKey> {
  const bytes = fromSecret(secret, "whsec_", 24, 64);
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}
