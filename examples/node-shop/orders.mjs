// From the class of a product to the captured payment. Everything about Countersign is in this file.

import { Countersign } from "countersign-client";
import { orders, save } from "./store.mjs";

/** @typedef {import("./store.mjs").Order} Order */

const baseUrl = process.env.COUNTERSIGN_BASE_URL ?? "http://127.0.0.1:8080";
const apiKey = process.env.COUNTERSIGN_API_KEY ?? "";
const secret = process.env.SHOP_WEBHOOK_SECRET ?? "";
// A buyer waits for it.
const client = new Countersign({ apiKey, baseUrl, timeoutSeconds: 5, retries: { attempts: 2 } });

/**
 * The class says what the law may ask for; a product without one is sold as ever.
 *
 * @type {Record<string, { title: string, price: string, class: string }>}
 */
export const PRODUCTS = {
  handguard: { title: "Free-float handguard, 15 inch", price: "129.00", class: "accessory" },
  mill: { title: "Desktop CNC mill", price: "2450.00", class: "manufacturing_machine" },
  barrel: { title: "Barrel, 16 inch", price: "189.00", class: "barrel" },
  apron: { title: "Workshop apron", price: "48.00", class: "" },
};

/** @param {Order} order */
export const payment = (order) => order.payments.at(-1) ?? "";

/** @param {Order} order */
const classOf = (order) => PRODUCTS[order.product]?.class ?? "";

/** @param {Order} order */
const cartOf = (order) => ({
  product_classes: [classOf(order)],
  ship_to: { state: order.to.state, zip: order.to.zip },
  residence_state: order.to.residence || null,
});

/**
 * Authorise, capture, void or refund. A real shop calls its gateway here, with the order's id for the
 * idempotency key; this one pretends.
 *
 * @param {Order} order
 * @param {string} what
 */
function pay(order, what) {
  order.payments.push(what);
  console.log(`${order.id}: ${what}, pretended`);
}

/** @param {Order} order @param {string[]} reasons */
function stop(order, reasons) {
  order.reasons = reasons;
  pay(order, payment(order) === "captured" ? "refunded" : "voided");
}

/**
 * Keep a new order, if its goods may be sent to buyers at all: returns whether.
 *
 * @param {Pick<Order, "id" | "visitor" | "product" | "to">} wanted
 */
export async function place(wanted) {
  /** @type {Order} */
  const order = { ...wanted, needs: "not_required", payments: [], reasons: [], obligations: [] };
  if (classOf(order)) {
    const found = await client.requirements.retrieve(cartOf(order));
    if (found.warnings.some((one) => one.type === "not_sufficient")) return false;
    order.needs = found.decision;
  }
  if (orders.has(order.id)) return true; // the form was sent twice
  order.number = String(1001 + orders.size);
  orders.set(order.id, order);
  pay(order, "authorised");
  // Only this word means that nothing is needed: what is unknown is required.
  if (order.needs === "not_required") pay(order, "captured");
  save();
  return true;
}

/** What is stored of an order that was not begun. */
const NOTHING = { ack_id: undefined, cbid: undefined, receipt: undefined, clearance_id: undefined, shipped: undefined, signed: undefined };

/** Whether what is stored is about this order, and not copied from another one. @param {Order} order */
const isBegun = (order) => order.session !== undefined && order.about === order.id;

/**
 * The buyer's link to the notice. The order's id makes it one session, however often this is called.
 *
 * @param {Order} order
 * @param {string} return_url
 */
export async function begin(order, return_url) {
  if (!isBegun(order)) {
    const made = await client.checkoutSessions.create(
      {
        session_id: order.id,
        order_reference: order.number,
        return_url,
        cart: cartOf(order),
        shipping_zip: order.to.zip,
        product_class: classOf(order),
      },
      { idempotencyKey: order.id },
    );
    const { checkout_session_id, url } = made;
    Object.assign(order, NOTHING, { about: order.id, session: checkout_session_id, link: url ?? return_url });
    save();
  }
  return order.link ?? return_url;
}

/**
 * Ask what has become of an order, and do what follows. Everyone comes here: the buyer who is back, a
 * webhook, the people who pack, and a shop that starts again. None of them knows the answer.
 *
 * @param {Order} order
 * @param {boolean} [asks] Whether for a new decision. A page that is opened reads what was decided, and asks for nothing.
 */
export async function check(order, asks = true) {
  const settled = () => order.shipped || !["authorised", "captured"].includes(payment(order));
  if (!isBegun(order) || !order.session || settled()) return;
  let decision = null;
  if (!order.ack_id) {
    const session = await client.checkoutSessions.retrieve(order.session);
    if (session.clearance_id) decision = await client.clearances.retrieve(session.clearance_id);
    if (settled()) return; // another request was faster
    if (session.status === "open") order.reasons = session.reasons;
    else if (session.status !== "completed") stop(order, [session.status]);
    // An id that does not exist is not cleared either.
    else {
      const { ack_id, cbid, receipt } = session;
      Object.assign(order, { ack_id: ack_id ?? "none", cbid: cbid ?? "none", receipt: receipt ?? "" });
    }
    save();
    if (!order.ack_id) return;
  }
  if (asks) {
    decision = await client.clearances.create({
      ack_id: order.ack_id,
      cbid: order.cbid ?? "none",
      session_id: order.id,
      order_reference: order.number,
      shipping_zip: order.to.zip,
      product_class: classOf(order),
    });
  }
  if (!decision || settled()) return;
  if ("already_shipped" in decision && decision.already_shipped) {
    order.shipped = "reported"; // the shop ended before it could write it down
  } else if (decision.cleared) {
    const { clearance_id, reasons, obligations } = decision;
    Object.assign(order, { clearance_id, reasons, obligations });
    if (payment(order) === "authorised") pay(order, "captured");
  } else stop(order, decision.reasons);
  save();
}

/** Orders of which a parcel is being reported. @type {Set<string>} */
const leaving = new Set();

/**
 * Decide once more, and report the parcel if it may leave: once, however often the button is pressed.
 *
 * @param {Order} order
 * @param {string} tracking_number
 * @returns {Promise<string>} Why it may not leave, as a word for the page; empty if it may.
 */
export async function ship(order, tracking_number) {
  if (order.shipped) return "reported_already";
  if (leaving.has(order.id)) return "being_reported";
  leaving.add(order.id);
  try {
    await check(order);
    if (order.shipped) return "reported_already";
    if (payment(order) !== "captured" || (order.needs !== "not_required" && !isBegun(order))) return "not_paid";
    if (order.clearance_id) {
      await client.clearances.fulfil(order.clearance_id, { order_reference: order.number, carrier: "UPS", tracking_number });
    }
    order.shipped = tracking_number;
    save();
    return "";
  } finally {
    leaving.delete(order.id);
  }
}

/** Report the signature of an adult, which some orders need. @param {Order} order @returns {Promise<string>} As `ship`. */
export async function sign(order) {
  if (!order.clearance_id || !order.shipped || order.signed) return "";
  await client.clearances.fulfil(order.clearance_id, { order_reference: order.number, adult_signature_obtained: true });
  order.signed = true;
  save();
  return "";
}

/**
 * Look at the orders that an authentic message is about. The message itself decides nothing: so one
 * that comes twice does no harm. Throws InvalidSignature.
 *
 * @param {Buffer} body
 * @param {import("node:http").IncomingHttpHeaders} headers
 */
export async function receive(body, headers) {
  const { data } = await client.webhooks.unwrap(body, headers, { secret });
  for (const order of orders.values()) {
    const about = data.checkout_session_id ?? data.cbid;
    if (about && [order.session, order.cbid].includes(String(about))) await check(order);
  }
}

/** What webhooks would have said while the shop or the service was down. */
export async function catchUp() {
  for (const order of orders.values()) {
    await check(order).catch((error) => console.error(`${order.id} is as it was: ${error.message}`));
  }
}
