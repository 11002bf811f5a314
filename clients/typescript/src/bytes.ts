// Base64, UTF-8 and signatures, by what browsers and Node.js have.

/** Throws if the text is no base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Throws if the text is no base64url. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
}

/** Throws if the text is no secret with this mark; an empty one would let everyone sign. */
export function fromSecret(
  text: string,
  mark: string,
  least: number,
  most: number,
): Uint8Array<ArrayBuffer> {
  try {
    const bytes = fromBase64(text.slice(mark.length));
    if (text.startsWith(mark) && bytes.length >= least && bytes.length <= most) return bytes;
  } catch {
    // Below.
  }
  throw new TypeError(`a webhook secret begins with ${mark}, and base64 follows`);
}

export function toBase64(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(new TextEncoder().encode(text));
}

export function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

/** Whether the holder of the private key signed this message (Ed25519). */
export async function verifies(
  publicKey: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  message: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, message);
  } catch (error) {
    // A key or a signature of another length; but a platform without Ed25519 is no verdict.
    if (error instanceof DOMException && error.name === "NotSupportedError") throw error;
    return false;
  }
}
