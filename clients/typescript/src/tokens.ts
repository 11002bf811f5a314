// Clearance tokens: a warehouse checks offline that a parcel is of a cleared order.

import { fromBase64Url, utf8, verifies } from "./bytes.js";
import { type CallOptions, Resource } from "./call.js";
import { InvalidClearanceToken } from "./failure.js";

/** A key that signs clearance tokens (RFC 8037). */
export interface SigningKey {
  kid: string;
  x: string;
  livemode: boolean;
}

/** The keys of the service. Fetch them at least every half hour, and keep a copy. */
export interface SigningKeys {
  keys: SigningKey[];
}

/** What a token says. */
export interface ClearanceClaims {
  iss: string;
  /** The `clearance_id`. */
  sub: string;
  iat: number;
  exp: number;
  livemode: boolean;
  account: string;
  ack_id: string;
  order_sha256: string;
  /** The obligations of the order. */
  obligations: Record<string, unknown>[];
}

/** What a token is compared with. */
export interface Order {
  keys: SigningKeys;
  /** The public URL of the service. */
  issuer: string;
  /** The id of the vendor whose parcel it is. */
  account: string;
  shipping_zip: string;
  session_id: string;
  /** One class, or all of the order. */
  product_class?: string | readonly string[] | null;
  /** False is for tests: a token of the sandbox, which must not ship. */
  livemode?: boolean;
  /** In seconds since 1970; left out: the time of this machine. */
  now?: number;
}

/** Clearance tokens and the keys that sign them. */
export class ClearanceTokens extends Resource {
  /** Get the keys that sign tokens. */
  keys({ livemode = true } = {}, options: CallOptions = {}): Promise<SigningKeys> {
    const query = { mode: livemode ? "live" : "test" };
    return this.sender.send<SigningKeys>(
      { method: "GET", path: "/.well-known/jwks.json", query, repeatable: true },
      options,
    );
  }

  /** See `verifyClearanceToken`. */
  verify(token: string | null, order: Order): Promise<ClearanceClaims> {
    return verifyClearanceToken(token, order);
  }
}

/**
 * What a token says, if it allows this very order to ship. Needs no network, and no key.
 *
 * Throws InvalidClearanceToken: do not ship.
 */
export async function verifyClearanceToken(
  token: string | null,
  order: Order,
): Promise<ClearanceClaims> {
  const { livemode = true, now = Date.now() / 1000 } = order;
  if (token === null) {
    throw new InvalidClearanceToken("There is no token: the order was not cleared.");
  }
  const claims = await authentic(token, order.keys, livemode);
  const classes = [...new Set([order.product_class ?? []].flat())].sort().join(",");
  const text = `${order.shipping_zip.slice(0, 5)}\n${classes}\n${order.session_id}`;
  const mistakes: [string, boolean][] = [
    ["of another service", claims.iss !== (livemode ? order.issuer : `${order.issuer}/test`)],
    ["of another mode", claims.livemode !== livemode],
    ["expired", !(now < claims.exp)],
    ["of another vendor", claims.account !== order.account],
    ["of another order", claims.order_sha256 !== (await sha256(text))],
  ];
  const found = mistakes.filter(([, isSo]) => isSo).map(([what]) => what);
  if (found.length > 0) throw new InvalidClearanceToken(`The token is ${found.join(", ")}.`);
  return claims;
}

async function authentic(
  token: string,
  keys: SigningKeys,
  livemode: boolean,
): Promise<ClearanceClaims> {
  const [header, claims, signature, ...more] = token.split(".");
  if (!header || !claims || !signature || more.length > 0) throw none();
  const named = unpacked(header);
  const typ = livemode ? "clearance+jwt" : "test-clearance+jwt";
  if (named["alg"] !== "EdDSA" || named["typ"] !== typ) {
    throw new InvalidClearanceToken("This is not a clearance token of this mode.");
  }
  const [key, ...others] = keys.keys.filter(
    (one) => one.kid === named["kid"] && one.livemode === livemode,
  );
  if (!key || others.length > 0) {
    throw new InvalidClearanceToken("The key of the token is not known: fetch the keys again.");
  }
  let given: Uint8Array<ArrayBuffer>;
  let known: Uint8Array<ArrayBuffer>;
  try {
    given = fromBase64Url(signature);
    known = fromBase64Url(key.x);
  } catch {
    throw none();
  }
  if (!(await verifies(known, given, utf8(`${header}.${claims}`)))) {
    throw new InvalidClearanceToken("The signature of the token is wrong.");
  }
  return unpacked(claims) as unknown as ClearanceClaims;
}

function unpacked(text: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(new TextDecoder().decode(fromBase64Url(text)));
    if (typeof found === "object" && found !== null) return found as Record<string, unknown>;
  } catch {
    // Below.
  }
  throw none();
}

function none(): InvalidClearanceToken {
  return new InvalidClearanceToken("This is not a clearance token.");
}

async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
