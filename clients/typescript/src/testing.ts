// For the tests of your own code: responses without a server, and signed webhook messages.

import { sign } from "./webhooks.js";

/** A secret to sign messages with in tests. */
export const SECRET = `whsec_${btoa("testing-secret-of-the-client")}`;

/** An error that the server returns. */
export class Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message = "Refused by a test.", headers = {}) {
    this.status = status;
    this.code = code;
    this.message = message;
    this.headers = headers;
  }
}

/**
 * What a server returns, by method and path: `{ "GET /v1/notices/ab1263": {…} }`.
 *
 * A list is returned one by one, and its last element from then on. Pass `fetch` to a client;
 * `requests` are those that came.
 */
export class Answers {
  readonly requests: Request[] = [];
  readonly #answers: Map<string, unknown[]>;

  constructor(answers: Record<string, unknown>) {
    const lists = Object.entries(answers).map(
      ([name, answer]) => [name, Array.isArray(answer) ? [...answer] : [answer]] as const,
    );
    this.#answers = new Map(lists);
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    this.requests.push(request);
    const name = `${request.method} ${new URL(request.url).pathname}`;
    const waiting = this.#answers.get(name);
    if (!waiting) throw new Error(`the test has no answer for ${name}`);
    const answer = waiting.length > 1 ? waiting.shift() : waiting[0];
    if (answer instanceof Refusal) {
      const { code, message, status, headers } = answer;
      return Response.json({ error: { code, message } }, { status, headers });
    }
    if (answer instanceof Uint8Array) return new Response(Uint8Array.from(answer));
    return Response.json(answer);
  };
}

/** The body and the headers of a signed message about an event, to post to your receiver. */
export async function webhookMessage(
  type: string,
  data: Record<string, unknown>,
  { secret = SECRET, livemode = false, now = Date.now() / 1000 } = {},
): Promise<{ body: string; headers: Record<string, string> }> {
  const stamp = `${new Date(now * 1000).toISOString().slice(0, 19)}Z`;
  const id = `evt_${crypto.randomUUID().replaceAll("-", "")}`;
  const body = JSON.stringify({ type, timestamp: stamp, id, livemode, created_at: stamp, data });
  const headers = await sign(secret, id, Math.floor(now), body);
  return { body, headers: { ...headers, "content-type": "application/json" } };
}
