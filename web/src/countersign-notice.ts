import { ask, Failure, once, surfaceDigest, type Claim, type Current, type Notice } from "./api.js";
import { button, h, is, style, type Child } from "./view.js";

/** What the element shows. */
export type NoticeState =
  | "loading"
  | "identity"
  | "form"
  | "review"
  | "declining"
  | "sending"
  | "done"
  | "declined"
  | "expired"
  | "cancelled"
  | "error";

/** `detail` of `countersign-ready`. */
export interface ReadyDetail {
  readonly checkout_session_id: string;
  readonly status: Current["status"];
}

/** `detail` of `countersign-acknowledged` and `countersign-declined`. */
export interface EndedDetail extends ReadyDetail {
  readonly return_url: string | null;
}

/** `detail` of `countersign-error`. */
export interface ErrorDetail {
  /** The error code of the service, or `network_error`. */
  readonly code: string;
  readonly message: string;
  /** Whether the buyer is offered to try again. */
  readonly retryable: boolean;
}

declare global {
  interface HTMLElementTagNameMap {
    "countersign-notice": CountersignNotice;
  }
  interface HTMLElementEventMap {
    "countersign-ready": CustomEvent<ReadyDetail>;
    "countersign-acknowledged": CustomEvent<EndedDetail>;
    "countersign-declined": CustomEvent<EndedDetail>;
    "countersign-error": CustomEvent<ErrorDetail>;
  }
}

/** For the time in which the service has not said its own words. */
const ENGLISH: Readonly<Record<string, string>> = {
  loading: "Loading the notice…",
  problem: "Something went wrong. Try again.",
  offline: "The notice could not be loaded. Check your connection, and try again.",
  retry: "Try again",
  unknown_intro: "This notice cannot be shown. Go back to the shop, and start again.",
};

/** What a buyer can see of initials, by the service's own rule: no white space, nothing invisible. */
const VISIBLE = /[^\s\p{C}\p{M}\p{Default_Ignorable_Code_Point}\u2800]/u;
const LONGEST = "32";
const CLAIMS_MOST = 200;
const CLAIMS_AFTER = 700;

// A server that renders the page has no such class: importing the module must not fail there.
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement);

/** `<countersign-notice base-url="…" client-token="…">`: the notice, and a field for each line. */
export class CountersignNotice extends Base {
  static readonly formAssociated = true;
  static readonly observedAttributes = ["base-url", "client-token", "required"];

  readonly #internals = this.attachInternals();
  readonly #root = this.attachShadow({ mode: "open" });
  readonly #body = h("section", { part: "body", "aria-labelledby": "title" });
  readonly #live = h("div", { role: "status", class: "hidden" });

  #state: NoticeState = "loading";
  #current: Current | null = null;
  #typed: string[] = [];
  /** Initials that were claimed already, by line. */
  #claimed: string[] = [];
  #claims: Claim[] = [];
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #sent = Promise.resolve();
  #gone = new AbortController();
  #starting = false;
  /** Something was shown that the buyer could act on: from now on the focus follows. */
  #settled = false;
  #seen: IntersectionObserver | undefined;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [style()];
    this.#root.append(this.#live, this.#body);
  }

  /** Where the service is; without the attribute, where this file came from. */
  get baseUrl(): string {
    const given = this.getAttribute("base-url") ?? new URL("../../", import.meta.url).href;
    return given.replace(/\/+$/, "");
  }
  set baseUrl(value: string) {
    this.setAttribute("base-url", value);
  }

  get clientToken(): string | null {
    return this.getAttribute("client-token");
  }
  set clientToken(value: string | null) {
    if (value === null) this.removeAttribute("client-token");
    else this.setAttribute("client-token", value);
  }

  get required(): boolean {
    return this.hasAttribute("required");
  }
  set required(value: boolean) {
    this.toggleAttribute("required", value);
  }

  get state(): NoticeState {
    return this.#state;
  }
  /** The `ack_id`, as it is sent with the form; empty until there is one. */
  get value(): string {
    return this.#current?.ack_id ?? "";
  }
  get name(): string {
    return this.getAttribute("name") ?? "";
  }
  get form(): HTMLFormElement | null {
    return this.#internals.form;
  }
  get validity(): ValidityState {
    return this.#internals.validity;
  }
  get validationMessage(): string {
    return this.#internals.validationMessage;
  }
  checkValidity(): boolean {
    return this.#internals.checkValidity();
  }
  reportValidity(): boolean {
    return this.#internals.reportValidity();
  }

  /** Ask the service again, such as after a failure. What was typed stays. */
  reload(): void {
    this.#start();
  }

  /** @internal */
  connectedCallback(): void {
    document.addEventListener("visibilitychange", this.#visible);
    addEventListener("pagehide", this.#flush);
    this.#start();
  }

  /** @internal */
  disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.#visible);
    removeEventListener("pagehide", this.#flush);
    this.#leave();
  }

  /** @internal */
  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (name === "required") this.#validate();
    else if (this.isConnected && before !== after) this.#start();
  }

  #leave(): void {
    this.#seen?.disconnect();
    clearTimeout(this.#flushing);
    this.#gone.abort();
  }

  /** Begin with the session of the token, once for all attributes that are set at a time. */
  #start(): void {
    if (this.#starting) return;
    this.#starting = true;
    queueMicrotask(() => {
      this.#starting = false;
      if (!this.isConnected) return;
      this.#leave();
      this.#gone = new AbortController();
      this.#current = null;
      this.#claims = [];
      this.#typed = [];
      this.#settled = false;
      this.#internals.setFormValue(null);
      void this.#load();
    });
  }

  async #load(message?: string): Promise<void> {
    this.#show("loading", this.#title(this.#word("loading")));
    // The token can be set later.
    if (!this.clientToken) return;
    await this.#ask("", null, message);
  }

  /** Ask the service, and show what it answers. */
  async #ask(path: string, body: unknown, message?: string): Promise<void> {
    const { signal } = this.#gone;
    let answer: Current;
    try {
      answer = await ask(this.baseUrl, this.clientToken ?? "", path, body, signal);
    } catch (failure) {
      if (!signal.aborted) this.#failed(failure as Failure, path, body);
      return;
    }
    if (!signal.aborted) this.#take(answer, message);
  }

  /** Show the session as it is now. */
  #take(session: Current, message?: string): void {
    const first = !this.#current;
    const before = this.#current?.notice?.digest;
    this.#current = session;
    if (session.status !== "open") {
      this.#store(null);
      this.#internals.setFormValue(session.ack_id);
      this.#ended(session);
    } else if (session.step === "identity" || !session.notice) this.#identity();
    else if (this.#restore(session.notice, before)) this.#form(this.#word("changed_notice"));
    else this.#form(message);
    const { checkout_session_id, status, return_url } = session;
    if (first) this.#tell("ready", { checkout_session_id, status });
    const ended = { checkout_session_id, status, return_url };
    if (status === "completed") this.#tell("acknowledged", ended);
    if (status === "declined") this.#tell("declined", ended);
  }

  #failed(failure: Failure, path: string, body: unknown): void {
    const { code, message, retryable } = failure;
    this.#tell("error", { code, message, retryable });
    if (path && ["checkout_session_closed", "notice_not_in_force"].includes(code)) {
      // It ended meanwhile: show how.
      void this.#load();
    } else if (path && ["notice_version_mismatch", "initials_count_mismatch"].includes(code)) {
      // What was typed stays if the text is the same.
      void this.#load(this.#word("changed_notice"));
    } else if (code === "empty_initials") {
      this.#form(message);
    } else {
      this.#error(failure, () => void (path ? this.#send(path, body) : this.#load()));
    }
  }

  // What was typed, until the session has ended.

  get #key(): string {
    return `countersign-notice:${this.#current?.checkout_session_id}`;
  }

  #store(digest: string | null): void {
    try {
      if (digest) sessionStorage.setItem(this.#key, JSON.stringify([digest, this.#typed]));
      else sessionStorage.removeItem(this.#key);
    } catch {
      // Storage is full or forbidden: what was typed lives as long as the page.
    }
  }

  /** Take up what was typed before a reload, or for the text shown `before`; true: it has changed since. */
  #restore(notice: Notice, before = notice.digest): boolean {
    let kept: unknown = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(this.#key) ?? "null");
    } catch {
      // As if there was nothing.
    }
    const [digest, typed] = (kept ?? [before, this.#typed]) as [string, string[]];
    const changed = digest !== notice.digest;
    if (changed) this.#store(null);
    this.#typed = notice.bullets.map((_, at) => (changed ? "" : String(typed[at] ?? "")));
    this.#claimed = [...this.#typed];
    return changed && typed.some((one) => one);
  }

  // What is shown.

  #word(name: string, number?: number): string {
    const word = this.#current?.words[name] ?? ENGLISH[name] ?? name;
    return word.replace("{vendor}", this.#current?.vendor ?? "").replace("{number}", `${number}`);
  }

  #show(state: NoticeState, ...children: Child[]): void {
    const test = this.#current?.livemode === false;
    this.#seen?.disconnect();
    this.#state = state;
    this.#body.lang = this.#live.lang = this.#current?.locale ?? "en";
    this.#body.setAttribute("aria-busy", `${state === "loading" || state === "sending"}`);
    this.#body.replaceChildren(
      ...[test && h("p", { part: "test", class: "test small" }, this.#word("test_mode")), ...children].filter(is),
    );
    const title = this.#body.querySelector("h2");
    this.#live.textContent = title?.textContent ?? "";
    this.#validate();
    if (this.#settled) title?.focus();
    else this.#settled = state !== "loading";
  }

  #title(text: string): HTMLElement {
    return h("h2", { id: "title", part: "title", tabindex: "-1" }, text);
  }

  #identity(): void {
    const { reasons = [], words = {} } = this.#current ?? {};
    const said = reasons.map((reason) => words[`reason_${reason}`] ?? this.#word("reason_other"));
    this.#show(
      "identity",
      this.#title(this.#word("identity_title")),
      said.length > 0 &&
        h("p", { class: "problem", part: "problem" }, `${this.#word("identity_failed")} ${said.join(" ")}`),
      h("p", {}, this.#word("identity_intro")),
      h("p", {}, this.#hosted("identity", this.#word("identity_open"))),
      this.#decline(),
    );
  }

  /** The page with the identity check is another tab: see what came of it. */
  readonly #visible = async (): Promise<void> => {
    if (this.#state !== "identity" || document.visibilityState !== "visible") return;
    const { signal } = this.#gone;
    const now = await once(this.baseUrl, this.clientToken ?? "", "", null, signal).catch(() => null);
    const [before, after] = [this.#current, now as Current | null];
    if (signal.aborted || !after || this.#state !== "identity") return;
    if (after.status !== before?.status || after.step !== before.step || `${after.reasons}` !== `${before.reasons}`) {
      this.#take(after);
    }
  };

  /** A link to this session's own page, in another tab. */
  #hosted(part: string, text: string): HTMLElement | null {
    return this.#link(part, `${this.baseUrl}/c/${this.clientToken}`, text, "_blank");
  }

  #link(part: string, url: string, text: string, target: string | null = null): HTMLElement | null {
    if (!/^https?:/.test(url)) return null;
    return h("a", { href: url, part: `button ${part}`, class: "button", target, rel: "noopener noreferrer" }, text);
  }

  #decline(): HTMLElement {
    return button("decline", this.#word("decline"), () => this.#declining());
  }

  #declining(): void {
    const back = () => (this.#current?.notice ? this.#form() : this.#identity());
    this.#show(
      "declining",
      this.#title(this.#word("decline_title")),
      h("p", {}, this.#word("decline_intro")),
      button("primary decline-confirm", this.#word("decline_confirm"), () => void this.#send("/decline", {})),
      button("decline-back", this.#word("decline_back"), back),
    );
  }

  #lines(notice: Notice, field: (at: number) => Node): HTMLElement {
    return h(
      "ol",
      { part: "lines" },
      ...notice.bullets.map((bullet, at) =>
        h(
          "li",
          { part: "line" },
          h(
            "p",
            { id: `text-${at}`, class: "text", part: "line-text", lang: notice.language, "data-letter": bullet.id },
            bullet.text,
          ),
          field(at),
        ),
      ),
    );
  }

  #form(message?: string): void {
    const notice = this.#current?.notice;
    if (!notice) return;
    const errors = h("div", { role: "alert" });
    const fields = notice.bullets.map((_, at) => this.#field(notice, at));
    const { text_gaps: gaps, language, source_url: source } = notice;
    const lines = this.#lines(notice, (at) =>
      h(
        "div",
        { class: "field" },
        h("label", { for: `line-${at}`, part: "label" }, this.#word("line_label", at + 1)),
        fields[at] ?? "",
        h("p", { id: `problem-${at}`, class: "problem", part: "problem", hidden: true }),
      ),
    );
    const submit = (event: Event): void => {
      event.preventDefault();
      const blank = fields.filter((field) => !VISIBLE.test(field.value));
      fields.forEach((field, at) => {
        const problem = this.#root.getElementById(`problem-${at}`) as HTMLElement;
        const bad = blank.includes(field);
        field.setAttribute("aria-invalid", `${bad}`);
        problem.hidden = !bad;
        problem.textContent = bad ? this.#word("empty_initials", at + 1) : "";
      });
      const said = blank.map((field) => [this.#word("empty_initials", fields.indexOf(field) + 1), field] as const);
      if (blank.length) this.#problems(errors, said);
      else this.#review();
    };
    this.#show(
      "form",
      this.#title(this.#word("title")),
      h("p", { part: "intro" }, this.#word("intro")),
      errors,
      h(
        "form",
        { novalidate: true, submit, part: "form" },
        h(
          "div",
          { part: "notice", class: "notice" },
          h("h3", { part: "notice-title", lang: language }, notice.title),
          h("p", { part: "notice-heading", class: "heading", lang: language }, notice.heading),
          language !== this.#current?.locale &&
            h(
              "p",
              { class: "hint small" },
              `${this.#word("legal_language")} ${this.#current?.words["legal_help"] ?? ""}`,
            ),
          h("h3", {}, this.#word("lines_heading")),
          h("p", { id: "hint", class: "hint" }, this.#word("initials_hint")),
          lines,
          h("p", { part: "attestation", class: "heading", lang: language }, notice.attestation_text),
          gaps.length > 0 && h("p", { class: "small" }, `${this.#word("text_gaps")}: ${gaps.join("; ")}`),
          h(
            "p",
            { class: "small", part: "source" },
            `${this.#word("source")}: `,
            /^https?:/.test(source)
              ? h("a", { href: source, target: "_blank", rel: "noopener noreferrer" }, notice.source_law)
              : notice.source_law,
          ),
        ),
        h("button", { type: "submit", part: "button primary continue", class: "primary" }, this.#word("continue")),
      ),
      this.#decline(),
    );
    if (message) this.#problems(errors, [[message, null]]);
    this.#watch(lines);
  }

  #field(notice: Notice, at: number): HTMLInputElement {
    const field = h("input", {
      id: `line-${at}`,
      part: "input",
      type: "text",
      maxlength: LONGEST,
      autocomplete: "off",
      autocapitalize: "characters",
      spellcheck: "false",
      "aria-required": "true",
      "aria-describedby": `text-${at} hint problem-${at}`,
      input: () => {
        this.#typed[at] = field.value;
        this.#store(notice.digest);
      },
      change: () => {
        const before = this.#claimed[at];
        if (field.value === before || !VISIBLE.test(field.value)) return;
        this.#claimed[at] = field.value;
        this.#claim({ line: at + 1, event: before ? "changed" : "initialed" });
      },
    });
    field.value = this.#typed[at] ?? "";
    return field;
  }

  /** Say what is wrong, with a way to each field, and go to the first of them. */
  #problems(place: HTMLElement, problems: readonly (readonly [string, HTMLElement | null])[]): void {
    place.className = "errors";
    place.setAttribute("part", "errors");
    place.replaceChildren(
      h("p", { class: "problem" }, problems.some(([, field]) => field) ? this.#word("error_title") : (problems[0]?.[0] ?? "")),
      h("ul", {}, ...problems.map(([text, field]) => field && h("li", {}, button("link", text, () => field.focus())))),
    );
    problems.find(([, field]) => field)?.[1]?.focus();
  }

  #review(): void {
    const { notice, agreement, consent } = this.#current ?? {};
    if (!notice) return;
    const errors = h("div", { role: "alert" });
    const box = (id: string): HTMLInputElement =>
      h("input", { id, type: "checkbox", part: "checkbox", "aria-required": "true" });
    const labelled = (input: HTMLElement, text: string | null | undefined, lang: string | null): HTMLElement =>
      h("div", { class: "check" }, input, h("label", { for: input.id, lang }, text ?? ""));
    const [agreed, consented] = [box("agreement"), box("consent")];
    const submit = (event: Event): void => {
      event.preventDefault();
      const missing = [
        [this.#word("agreement_missing"), agreed],
        [this.#word("consent_missing"), consented],
      ] as const;
      for (const [, field] of missing) field.setAttribute("aria-invalid", `${!field.checked}`);
      const open = missing.filter(([, field]) => !field.checked);
      if (open.length) this.#problems(errors, open);
      else {
        void this.#send("/acknowledge", {
          initials_per_line: [...this.#typed],
          notice_version: notice.version,
          notice_digest: notice.digest,
          agreement: true,
          consent: true,
        });
      }
    };
    this.#show(
      "review",
      this.#title(this.#word("review_title")),
      h("p", {}, this.#word("review_intro")),
      errors,
      h(
        "form",
        { novalidate: true, submit, part: "form" },
        this.#lines(notice, (at) =>
          h("p", { class: "field initials", part: "initials" }, this.#typed[at] ?? ""),
        ),
        h(
          "fieldset",
          { part: "statement" },
          h("legend", {}, this.#word("agreement_label")),
          labelled(agreed, agreement, notice.language),
        ),
        labelled(consented, consent, null),
        h("button", { type: "submit", part: "button primary accept", class: "primary" }, this.#word("accept")),
        button("change", this.#word("change"), () => this.#form()),
      ),
      this.#decline(),
    );
    this.#claim({ line: null, event: "reviewed" });
    void this.#digest();
  }

  /** Send it, and again if the buyer wants: nothing becomes of it twice. */
  async #send(path: string, body: unknown): Promise<void> {
    const { signal } = this.#gone;
    this.#show("sending", this.#title(this.#word("sending")));
    let sent = body;
    // After the end there is nothing to which a claim could belong.
    await this.#flush();
    if (path === "/acknowledge") {
      const digest = await this.#digest();
      if (digest) sent = { ...(body as object), surface_digest: digest };
    }
    if (!signal.aborted) await this.#ask(path, sent);
  }

  /** That of the service's own file; how a shop has bundled it says nothing. */
  #digest(): Promise<string | null> | null {
    if (!import.meta.url.startsWith(`${this.baseUrl}/`)) return null;
    digest ??= surfaceDigest(import.meta.url);
    return digest;
  }

  #error(failure: Failure, again: () => void): void {
    const known = failure.code === "invalid_client_token" ? "unknown_intro" : "problem";
    const text = this.#word(failure.code === "network_error" ? "offline" : known);
    this.#show(
      "error",
      h("div", { role: "alert", class: "errors", part: "errors" }, h("h2", { id: "title", part: "title", tabindex: "-1", class: "problem" }, text)),
      known === "problem" ? button("primary retry", this.#word("retry"), again) : null,
      this.#typed.length > 0 && this.#current?.notice ? button("change", this.#word("change"), () => this.#form()) : null,
    );
  }

  #ended(session: Current): void {
    const { status, return_url: url } = session;
    const name = status === "completed" ? "done" : status;
    this.#show(
      name as NoticeState,
      this.#title(this.#word(`${name}_title`)),
      h("p", {}, this.#word(status === "completed" && !session.ack_id ? "done_identity" : `${name}_intro`)),
      session.ack_id && h("p", {}, `${this.#word("ack_id_label")}: `, h("code", { part: "ack-id" }, session.ack_id)),
      session.copy_url && h("p", {}, this.#link("copy", session.copy_url, this.#word("keep_copy"), "_blank")),
      url ? h("p", {}, this.#link("return", url, this.#word("return_to_vendor"))) : null,
    );
  }

  #validate(): void {
    const anchor = this.#body.querySelector<HTMLElement>("input, button, a") ?? undefined;
    if (!this.required || this.#state === "done") this.#internals.setValidity({});
    else this.#internals.setValidity({ valueMissing: true }, this.#live.textContent || "…", anchor);
  }

  // What the buyer did, for the record: it marks all of this as claimed by the browser.

  #watch(lines: HTMLElement): void {
    const seen = new Set<Element>();
    this.#seen = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, intersectionRatio, intersectionRect } of entries) {
          // A line can be higher than the window.
          const enough = intersectionRatio >= 0.5 || intersectionRect.height >= innerHeight / 2;
          if (!isIntersecting || !enough || seen.has(target)) continue;
          seen.add(target);
          this.#claim({ line: [...lines.children].indexOf(target) + 1, event: "shown" });
        }
      },
      { threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5] },
    );
    for (const line of lines.children) this.#seen.observe(line);
  }

  #claim(claim: Claim): void {
    this.#claims.push(claim);
    clearTimeout(this.#flushing);
    this.#flushing = setTimeout(this.#flush, CLAIMS_AFTER);
  }

  /** Send what is waiting, after what is on its way. */
  readonly #flush = (): Promise<void> => {
    clearTimeout(this.#flushing);
    this.#sent = this.#sent.then(() => this.#claimNow());
    return this.#sent;
  };

  async #claimNow(): Promise<void> {
    const events = this.#claims.splice(0, CLAIMS_MOST);
    if (!events.length) return;
    const viewport = { width: innerWidth, height: innerHeight };
    try {
      await once(this.baseUrl, this.clientToken ?? "", "/events", { events, viewport }, this.#gone.signal);
    } catch (failure) {
      // They are sent with the next ones.
      if ((failure as Failure).retryable) this.#claims.unshift(...events);
    }
  }

  #tell(name: string, detail: ReadyDetail | EndedDetail | ErrorDetail): void {
    this.dispatchEvent(new CustomEvent(`countersign-${name}`, { detail, bubbles: true, composed: true }));
  }
}

let digest: Promise<string | null> | undefined;

if (globalThis.customElements && !customElements.get("countersign-notice")) {
  customElements.define("countersign-notice", CountersignNotice);
}
