// The client.

import { checkSendable, Sender, type Settings } from "./call.js";
import { Resources } from "./resources.js";
import { RETRIES, type Retries } from "./retries.js";
import { ClearanceTokens } from "./tokens.js";
import { Webhooks } from "./webhooks.js";

/** How a client is made. */
export interface ClientOptions {
  /** An API key; in a browser the client token of one checkout session. */
  apiKey: string;
  /** Such as https://countersign.example.com. */
  baseUrl: string;
  /** For each attempt; left out: 30. */
  timeoutSeconds?: number;
  retries?: Partial<Retries>;
  /** To see every response, or for a proxy. */
  fetch?: typeof fetch;
  /** Waits between attempts. */
  sleep?: Settings["sleep"];
}

const BASE_URL =
  /^https?:\/\/(\[[0-9A-Fa-f:.]+\](:[0-9]+)?|[^\s/?#@\\[\]]+)(\/[^\s?#\\]*)?$/;

/** The API of a Countersign server. */
export class Countersign extends Resources {
  readonly clearanceTokens: ClearanceTokens;
  readonly webhooks: Webhooks;

  constructor(options: ClientOptions) {
    const { apiKey, baseUrl, timeoutSeconds = 30, retries } = options;
    if (!apiKey) throw new TypeError("No key: pass apiKey.");
    checkSendable("The key", apiKey);
    if ("document" in globalThis && /^csign_[sr]k_/.test(apiKey)) {
      throw new TypeError("An API key is for servers alone: a browser gets a client token.");
    }
    if (!BASE_URL.test(baseUrl ?? "")) {
      throw new TypeError("No base URL such as https://countersign.example.com: pass baseUrl.");
    }
    const sender = new Sender({
      apiKey,
      baseUrl: baseUrl.replace(/\/+$/, ""),
      timeoutSeconds,
      retries: { ...RETRIES, ...retries },
      fetch: options.fetch ?? ((...args) => fetch(...args)),
      sleep: options.sleep ?? sleep,
    });
    super(sender);
    this.clearanceTokens = new ClearanceTokens(sender);
    this.webhooks = new Webhooks();
  }
}

function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", ended);
      resolve();
    }, seconds * 1000);
    signal?.aborted ? ended() : signal?.addEventListener("abort", ended, { once: true });
  });
}
