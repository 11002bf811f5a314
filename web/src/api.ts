/** What the service says, and how it is asked. */

export interface Bullet {
  readonly id: string;
  readonly text: string;
}

export interface Notice {
  readonly notice_id: string;
  readonly version: string;
  readonly digest: string;
  readonly title: string;
  readonly heading: string;
  readonly bullets: readonly Bullet[];
  readonly attestation_text: string;
  readonly language: string;
  readonly text_gaps: readonly string[];
  readonly source_law: string;
  readonly source_url: string;
}

/** The session of a client token, as `GET /v1/checkout_sessions/current` describes it. */
export interface Current {
  readonly checkout_session_id: string;
  readonly status: "open" | "completed" | "declined" | "expired" | "cancelled";
  readonly livemode: boolean;
  readonly vendor: string;
  readonly locale: string;
  readonly step: "identity" | "acknowledgment" | null;
  readonly reasons: readonly string[];
  readonly ack_id: string | null;
  readonly copy_url: string | null;
  readonly return_url: string | null;
  readonly expires_at: string;
  readonly notice: Notice | null;
  readonly words: Readonly<Record<string, string>>;
  readonly agreement: string | null;
  readonly consent: string | null;
}

/** What the buyer did, as this page claims it. */
export interface Claim {
  readonly line: number | null;
  readonly event: "shown" | "initialed" | "changed" | "reviewed";
}

/** The service refused, or did not answer (`network_error`). */
export class Failure extends Error {
  /** Whether the same request can have another outcome later. */
  readonly retryable: boolean;

  constructor(
    readonly code: string,
    message: string,
    status: number,
  ) {
    super(message);
    this.retryable = status === 0 || status === 429 || status >= 500;
  }
}

const PATH = "/v1/checkout_sessions/current";
const ATTEMPTS = 3;
const TIMEOUT = 20_000;

/**
 * Send a request, again if it fails in a way that can pass.
 *
 * Every request may be repeated: the service answers the same acknowledgment with the same result.
 */
export async function ask(
  base: string,
  token: string,
  path: string,
  body: unknown,
  gone: AbortSignal,
): Promise<Current> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await once(base, token, path, body, gone)) as Current;
    } catch (failure) {
      gone.throwIfAborted();
      if (!(failure instanceof Failure && failure.retryable) || attempt === ATTEMPTS) throw failure;
      await new Promise((done) => setTimeout(done, attempt * 1000));
      gone.throwIfAborted();
    }
  }
}

/** Send a request once; without a body it is a GET. */
export async function once(
  base: string,
  token: string,
  path: string,
  body: unknown,
  gone: AbortSignal,
): Promise<unknown> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (body) headers["Content-Type"] = "application/json";
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), TIMEOUT);
  gone.addEventListener("abort", () => stop.abort(), { signal: stop.signal });
  let response: Response;
  let answer: unknown;
  try {
    response = await fetch(base + PATH + path, {
      method: body ? "POST" : "GET",
      headers,
      body: body ? JSON.stringify(body) : null,
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      // Claims are sent also while the page is being left.
      keepalive: path === "/events",
      signal: stop.signal,
    });
    answer = await response.json();
  } catch (cause) {
    throw new Failure("network_error", String(cause), 0);
  } finally {
    clearTimeout(late);
  }
  if (response.ok) return answer;
  const { code, message } = (answer as { error?: Record<string, string> }).error ?? {};
  throw new Failure(code ?? "internal_error", message ?? response.statusText, response.status);
}

/** SHA-256 of the file that this module is in, or null where it cannot be known. */
export async function surfaceDigest(file: string): Promise<string | null> {
  try {
    const response = await fetch(file, { cache: "force-cache", credentials: "omit" });
    if (!response.ok) return null;
    const digest = await crypto.subtle.digest("SHA-256", await response.arrayBuffer());
    return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  } catch {
    return null;
  }
}
