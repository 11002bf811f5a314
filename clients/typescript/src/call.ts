// One request of the API, how it is sent, and how its response is read.

import { BY_CODE } from "./errors.js";
import { ConnectionFailed, CountersignError, TimedOut, UnexpectedResponse } from "./failure.js";
import { type Retries, waitBeforeNext } from "./retries.js";
import type { Page } from "./types.js";

/** Options of every call. */
export interface CallOptions {
  /** Left out: one for this call alone. */
  idempotencyKey?: string | undefined;
  /** How long to wait for sealing, in seconds. */
  waitSeconds?: number | undefined;
  /** Ends the call, and its waits. */
  signal?: AbortSignal | undefined;
}

/** One request. */
export interface Call {
  method: string;
  path: string;
  query?: object | undefined;
  body?: object;
  returns?: "json" | "text" | "bytes";
  /** Whether it takes an Idempotency-Key. */
  keyed?: boolean;
  /** Whether it may be sent again although the server may have acted on it. */
  repeatable?: boolean;
  /** Whether the last response is used again if the server says that it is current. */
  revalidated?: boolean;
}

/** Options of a client. */
export interface Settings {
  apiKey: string;
  baseUrl: string;
  timeoutSeconds: number;
  retries: Retries;
  fetch: typeof fetch;
  sleep: (seconds: number, signal?: AbortSignal) => Promise<void>;
}

/** The last response to a call, with its tag. */
interface Copy {
  etag: string;
  text: string;
}

interface Prepared {
  url: string;
  init: RequestInit;
  copy: Copy | undefined;
}

const COPIES_MAX = 32;
// `fetch` says in its cause why there is no connection; only Node.js has it.
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends calls until they succeed or fail finally. */
export class Sender {
  readonly #settings: Settings;
  readonly #copies = new Map<string, Copy>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  async send<T>(call: Call, options: CallOptions): Promise<T> {
    const { retries, sleep } = this.#settings;
    const request = this.#request(call, options);
    let waited = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.#attempt(call, request, options.signal)) as T;
      } catch (error) {
        if (!(error instanceof CountersignError)) throw error;
        const wait = waitBeforeNext(retries, error, attempt, waited, call.repeatable ?? false);
        if (wait === null) throw error;
        waited += wait;
        await sleep(wait, options.signal);
      }
    }
  }

  #request(call: Call, options: CallOptions): Prepared {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#settings.apiKey}` };
    if (call.keyed) {
      const key = options.idempotencyKey ?? crypto.randomUUID();
      checkSendable("idempotencyKey", key);
      headers["Idempotency-Key"] = key;
    }
    if (options.waitSeconds !== undefined) headers["Prefer"] = `wait=${options.waitSeconds}`;
    const url = this.#settings.baseUrl + call.path + search(call.query);
    const copy = call.revalidated ? this.#copies.get(url) : undefined;
    if (copy) headers["If-None-Match"] = copy.etag;
    const init: RequestInit = { method: call.method, headers, redirect: "manual" };
    if (call.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(call.body);
    }
    return { url, init, copy };
  }

  async #attempt(
    call: Call,
    request: Prepared,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const timeout = AbortSignal.timeout(this.#settings.timeoutSeconds * 1000);
    const both = signal ? AbortSignal.any([signal, timeout]) : timeout;
    let response: Response;
    let bytes: Uint8Array;
    try {
      response = await this.#settings.fetch(request.url, { ...request.init, signal: both });
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      signal?.throwIfAborted();
      if (timeout.aborted) throw new TimedOut("There was no complete response in time.", error);
      throw lost(error);
    }
    if (response.status !== 200 && response.status !== 304) throw errorOf(response, bytes);
    if (call.returns === "bytes") return bytes;
    const text = this.#text(call, request, response, bytes);
    return call.returns === "text" ? text : parsed(response, text);
  }

  #text(call: Call, { url, copy }: Prepared, response: Response, bytes: Uint8Array): string {
    if (response.status === 304 && copy) return copy.text;
    const text = new TextDecoder().decode(bytes);
    const etag = response.headers.get("ETag");
    if (call.revalidated && etag) {
      if (this.#copies.size >= COPIES_MAX) this.#copies.clear();
      this.#copies.set(url, { etag, text });
    }
    return text;
  }
}

/** The operations on one kind of object. */
export class Resource {
  /** @internal */
  protected readonly sender: Sender;

  constructor(sender: Sender) {
    this.sender = sender;
  }
}

/** The items of a list, over all of its pages, which are requested when they are needed. */
export class Listing<Item> implements AsyncIterable<Item> {
  readonly #sender: Sender;
  readonly #call: Call;
  readonly #options: CallOptions;

  constructor(sender: Sender, call: Call, options: CallOptions) {
    this.#sender = sender;
    this.#call = call;
    this.#options = options;
  }

  /** Page by page. */
  async *pages(): AsyncGenerator<Page<Item>, void, void> {
    let query = this.#call.query ?? {};
    for (;;) {
      const page: Page<Item> = await this.#sender.send({ ...this.#call, query }, this.#options);
      yield page;
      if (page.next_cursor === null) return;
      if (page.next_cursor === (query as { after?: string }).after) {
        // The list would never end.
        throw new UnexpectedResponse("The response is not one of this API: a page leads to itself", {
          code: "unexpected_response",
        });
      }
      query = { ...query, after: page.next_cursor };
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, void> {
    for await (const page of this.pages()) yield* page.data;
  }
}

/** A value as one segment of a path; it never leads out of it. */
export function segment(value: string): string {
  if (/^\.*$/.test(value)) throw new TypeError(`not an identifier: ${JSON.stringify(value)}`);
  return encodeURIComponent(value);
}

/** Throws if a value, which the error does not show, cannot be sent in a header. */
export function checkSendable(name: string, value: string): void {
  if (!/^[!-~]+$/.test(value)) {
    throw new TypeError(`${name} is empty, or has a character such as a space or a line break.`);
  }
}

function search(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  if (given.length === 0) return "";
  return `?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}`;
}

/** The error that a response stands for; one of another shape did not come from this API. */
function errorOf(response: Response, bytes: Uint8Array): CountersignError {
  try {
    const { code, message } = JSON.parse(new TextDecoder().decode(bytes)).error;
    if (typeof code === "string" && typeof message === "string") {
      const kind = BY_CODE[code] ?? CountersignError;
      return new kind(message, { ...circumstances(response), code });
    }
  } catch {
    // Below.
  }
  return unexpected(response, `HTTP status ${response.status}`);
}

function parsed(response: Response, text: string): unknown {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found !== null) return found;
  } catch {
    // Below.
  }
  throw unexpected(response, "no JSON object");
}

function unexpected(response: Response, what: string): UnexpectedResponse {
  return new UnexpectedResponse(`The response is not one of this API: ${what}`, {
    ...circumstances(response),
    code: "unexpected_response",
  });
}

function circumstances(response: Response) {
  const after = response.headers.get("Retry-After") ?? "";
  return {
    // A browser hides the status of a redirect.
    status: response.status || null,
    request_id: response.headers.get("X-Request-Id"),
    // A date is possible too (RFC 9110), but this API does not send one.
    retry_after: /^[0-9]+$/.test(after) ? Number(after) : null,
  };
}

function lost(error: unknown): ConnectionFailed {
  const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
  const text = error instanceof Error ? error.message : String(error);
  return new ConnectionFailed(text, !NEVER_SENT.has(cause?.code ?? ""), error);
}
