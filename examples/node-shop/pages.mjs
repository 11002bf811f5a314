// The pages: no script, every value escaped.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { payment, PRODUCTS } from "./orders.mjs";

/** @typedef {import("./store.mjs").Order} Order */

const STYLE = readFileSync(new URL("shop.css", import.meta.url), "utf8");
const NAME = "Ridgeline Tools";
export const POLICY =
  // Without `form-action`, which would also judge where a form is redirected to: the service.
  `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; ` +
  "frame-ancestors 'none'; base-uri 'none'";

/** Why an order is not released; other words of the API are shown as they are. @type {Record<string, string>} */
const WORDS = {
  declined: "You declined the notice.",
  expired: "The time for the notice was over. You can order again.",
  cancelled: "The checkout was cancelled.",
  age_below_minimum: "The identity check says that you are too young for this product.",
  identity_failed: "You did not pass the identity check.",
  session_canceled: "You ended the identity check before it was done.",
  session_undecided: "The identity check is not decided yet.",
  verification_withdrawn: "The identity check was withdrawn. Order again to have another one.",
  zip_mismatch: "The ZIP code is not that of your verified address. Order to that address.",
  refused_by_vendor: "We cannot accept this order. Please contact us.",
  buyer_revoked: "Your verification was withdrawn.",
  buyer_expired: "Your verification has expired. Order again to be verified again.",
  buyer_requires_input: "The identity check needs more from you.",
};
/** @type {Record<string, string>} */
const PAID = {
  authorised: "Nothing was charged yet.",
  captured: "Your card was charged.",
  voided: "Nothing was charged.",
  refunded: "Your money was refunded.",
};
const PRETENDED = "This is a demonstration: no card is charged.";

class Markup {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** @param {unknown} value @returns {string} */
function render(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(render).join("");
  if (value === undefined || value === null || value === false) return "";
  return String(value).replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

/** @param {TemplateStringsArray} parts @param {unknown[]} values */
const html = (parts, ...values) => new Markup(String.raw(parts, ...values.map(render)));

/** @param {string} title @param {unknown} content */
export const page = (title, content) => render(html`<!doctype html><html lang="en"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} – ${NAME}</title>
<style>${new Markup(STYLE)}</style></head>
<body><header><div><a class="brand" href="/">${NAME}</a><a href="/dispatch">Dispatch</a></div></header>
<main><h1>${title}</h1>${content}<p><a href="/">All products</a></p></main>
<footer>${PRETENDED}</footer></body></html>`);

export const catalogue = () => page("For your workshop", html`<ul class="cards">${Object.entries(PRODUCTS).map(
  ([slug, { title, price }]) => html`<li><a href="/products/${slug}">${title}</a><p class="price">$${price}</p></li>`)}</ul>`);

/** @param {string} slug @param {string} id */
export const form = (slug, id) => page(PRODUCTS[slug]?.title ?? "", html`<p class="price">$${PRODUCTS[slug]?.price}</p>
<form class="card" method="post" action="/orders"><input type="hidden" name="id" value="${id}"><input type="hidden" name="product" value="${slug}">
<label>Ship to the state (two letters) <input name="state" value="CA" pattern="[A-Z]{2}" required></label>
<label>ZIP code <input name="zip" inputmode="numeric" pattern="[0-9]{5}" autocomplete="postal-code" required></label>
<label>State that you live in, if you want to say <input name="residence" pattern="[A-Z]{2}"></label>
<button>Order and pay</button></form>`);

/** @param {Order} order */
export const why = ({ reasons }) => reasons.map((one) => html`<p>${WORDS[one] ?? `The reason given is: ${one}.`}</p>`);

/** @param {Order} order */
export function status(order) {
  const paid = payment(order), waiting = paid === "authorised";
  const title = waiting ? "Your order waits for you" : paid === "captured" ? "Thank you" : "Your order was not released";
  return page(title, html`<div class="card"><p>${PAID[paid]}</p>
${why(order)}
${waiting && html`${order.needs === "unknown" && html`<p>It is not known whether the law asks for a notice for this order. So you are asked to read it.</p>`}
<form method="post" action="/orders/${order.id}/notice"><button>Continue with the notice</button></form>`}
${order.shipped && html`<p>Shipped: ${order.shipped}</p>`}${order.ack_id && html`<p class="quiet">Proof of your initials: ${order.ack_id}</p>`}</div>`);
}

/** @type {Record<string, string>} */
const NOT_SHIPPED = {
  being_reported: "This parcel is being reported by another request at this moment. Look at the parcels again before you hand it over.",
  reported_already: "This parcel was reported before. Nothing was reported again: is there a second one with the same order?",
  not_paid: "The payment of this order is not captured.",
};

/** @param {Order} order @param {string} refused */
export const notShipped = (order, refused) => page("Do not ship", html`<p>${NOT_SHIPPED[refused]}</p>${why(order)}
<p><a href="/dispatch">Parcels</a></p>`);

/** @param {Record<string, unknown>} obligation */
function duty({ type, text, what }) {
  if (type === "package_label") return html`<p>Print on the parcel: <q>${text}</q></p>`;
  if (type === "adult_signature") return html`<p>Hand it over only against the signature of an adult.</p>`;
  if (type === "compared") return html`<p>Ship only to the verified ${what === "zip" ? "ZIP code" : what}.</p>`;
  return html`<p>${type}: ${text}</p>`;
}

/** @param {Order[]} orders */
export const dispatch = (orders) => page("Dispatch", orders.length ? orders.map((order) => html`
<section class="card"><h2>${order.product} to ${order.to.state} ${order.to.zip}</h2>${order.obligations.map(duty)}
<form method="post" action="/dispatch/${order.id}">${order.shipped ? html`<button name="signed" value="yes">An adult has signed</button>`
  : html`<label>Tracking number (UPS) <input name="tracking_number" required></label><button>Ship</button>`}</form></section>`)
  : html`<p>Nothing is paid and waits.</p>`);
