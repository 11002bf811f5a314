// The orders, in one JSON file: each change replaces the whole file, or leaves the old one as it was.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/**
 * @typedef {object} Order
 * @property {string} id Random, since it is the `session_id` of the service too.
 * @property {string} [number] What the people who pack call it.
 * @property {string} visitor The cookie of the browser that ordered.
 * @property {string} product
 * @property {{ state: string, zip: string, residence: string }} to
 * @property {string} needs Whether a notice is needed: `required`, `unknown` or `not_required`.
 * @property {string[]} payments What was done, the last counts: authorised, captured, voided, refunded.
 * @property {string} [about] The id of the order that all below is about: a copy of an order has another id, and was not begun.
 * @property {string} [session] The checkout session; `link` is the buyer's way to it.
 * @property {string} [link]
 * @property {string} [ack_id]
 * @property {string} [receipt] The log's promise to have the record: `receipts.mjs` collects them.
 * @property {string} [cbid]
 * @property {string} [clearance_id]
 * @property {string[]} reasons Why it is not cleared.
 * @property {Array<Record<string, unknown>>} obligations What has to be done with the parcel.
 * @property {string} [shipped] The tracking number.
 * @property {boolean} [signed] An adult has signed for the parcel, and it was reported.
 */

const folder = process.env.SHOP_DATA_DIR ?? "var";
const file = `${folder}/orders.json`;
mkdirSync(folder, { recursive: true, mode: 0o700 });

/** @type {Map<string, Order>} */
export const orders = new Map(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : []);

/** Write all orders. Nothing else runs meanwhile, so what is changed without an `await` is one step. */
export function save() {
  writeFileSync(`${file}.new`, JSON.stringify([...orders]), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
