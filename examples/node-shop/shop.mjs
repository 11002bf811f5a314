// A small shop with Express. Start it with `make demo-node`.

import { randomBytes } from "node:crypto";
import { CountersignError, InvalidSignature } from "countersign-client";
import express from "express";
import { begin, catchUp, check, payment, place, PRODUCTS, receive, sign, ship } from "./orders.mjs";
import * as pages from "./pages.mjs";
import { orders } from "./store.mjs";

const port = Number(process.env.SHOP_PORT ?? 8000);
const url = process.env.SHOP_URL ?? `http://localhost:${port}`;
// Everyone knows this one: with a live key there is none until you choose it.
const isTest = /^csign_[a-z]+_test_/.test(process.env.COUNTERSIGN_API_KEY ?? "");
const password = process.env.SHOP_PASSWORD || (isTest ? "sandbox" : "");
if (!password) {
  console.error("Set SHOP_PASSWORD: with a live key, the page for parcels has no password of its own.");
  process.exit(1);
}
const staff = `Basic ${Buffer.from(`staff:${password}`).toString("base64")}`;
const app = express().disable("x-powered-by");

// The signature is over the bytes as they came: no parser of JSON before this.
app.post("/webhooks", express.raw({ type: () => true, limit: "64kb" }), async (req, res) => {
  try {
    await receive(req.body, req.headers);
    res.sendStatus(204);
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    // 503: the service could not be asked, so the message has to come again.
    res.sendStatus(error instanceof InvalidSignature ? 400 : 503);
  }
});

app.use(express.urlencoded({ extended: false, limit: "8kb" }), (req, res, next) => {
  res.set({ "Content-Security-Policy": pages.POLICY, "Cache-Control": "no-store", "Referrer-Policy": "same-origin" });
  // Browsers say which site a form is from; that of another site changes nothing here.
  if (req.method === "POST" && req.get("Origin") !== url) return res.sendStatus(403);
  res.locals.visitor = /(?:^|; )node_shop=([0-9a-f]{32})(?:;|$)/.exec(req.headers.cookie ?? "")?.[1];
  if (!res.locals.visitor) {
    res.locals.visitor = randomBytes(16).toString("hex");
    res.cookie("node_shop", res.locals.visitor, { httpOnly: true, sameSite: "lax", secure: url.startsWith("https:") });
  }
  next();
});

app.get("/", (_req, res) => void res.send(pages.catalogue()));

app.get("/products/:slug", (req, res, next) => {
  const { slug } = req.params;
  if (!Object.hasOwn(PRODUCTS, slug)) return next();
  // A form that is sent twice has one id, so it makes one order.
  res.send(pages.form(slug, `cs_${randomBytes(16).toString("hex")}`));
});

app.post("/orders", async (req, res) => {
  const { id = "", product = "", state = "", zip = "", residence = "" } = req.body ?? {};
  const known = /^cs_[0-9a-f]{32}$/.test(id) && Object.hasOwn(PRODUCTS, product);
  if (!known || !/^[A-Z]{2} [0-9]{5} ([A-Z]{2})?$/.test(`${state} ${zip} ${residence}`)) {
    const form = "A state has two capital letters, a ZIP code five digits.";
    return void res.status(422).send(pages.page("Please check the form", form));
  }
  const wanted = { id, visitor: res.locals.visitor, product, to: { state, zip, residence } };
  if (orders.has(id) || (await place(wanted))) return lead(id, res);
  const dealer = "This product may not be sent to buyers: a licensed dealer has to hand it over. Nothing was charged.";
  res.status(422).send(pages.page("Not sold here", dealer));
});

app.post("/orders/:id/notice", (req, res) => lead(req.params.id, res));

// The buyer is back. What the address says besides is not read, and no decision is asked for: anybody can open a page.
app.get("/orders/:id", async (req, res, next) => {
  const order = own(req.params.id, res);
  if (!order) return next();
  await check(order, false);
  res.send(pages.status(order));
});

app.use("/dispatch", (req, res, next) => {
  if (req.get("Authorization") === staff) return next();
  res.set("WWW-Authenticate", 'Basic realm="Dispatch"').sendStatus(401);
});

app.get("/dispatch", (_req, res) => {
  const waiting = [...orders.values()].filter((order) => payment(order) === "captured"
    && (!order.shipped || (!order.signed && order.obligations.some((one) => one.type === "adult_signature"))));
  res.send(pages.dispatch(waiting));
});

app.post("/dispatch/:id", async (req, res, next) => {
  const order = orders.get(req.params.id);
  if (!order) return next();
  const { signed, tracking_number } = req.body ?? {};
  const refused = await (signed ? sign(order) : ship(order, String(tracking_number || "none")));
  if (!refused) res.redirect(303, "/dispatch");
  else res.status(409).send(pages.notShipped(order, refused));
});

app.use((_req, res) => void res.status(404).send(pages.page("Not found", "There is no such page.")));

app.use(/** @type {express.ErrorRequestHandler} */ ((error, _req, res, _next) => {
  console.error(error);
  // Without an answer of the service nothing changes: treat it as a no.
  const status = error instanceof CountersignError ? 503 : (error.status ?? 500);
  res.status(status).send(pages.page("Please try again later", "Your order is as it was. Nothing more was charged."));
}));

/** The order, if this browser made it. @param {string} id @param {express.Response} res */
function own(id, res) {
  const order = orders.get(id);
  return order?.visitor === res.locals.visitor ? order : undefined;
}

/** Lead to the notice, or to the order's page if there is nothing to initial. @param {string} id @param {express.Response} res */
async function lead(id, res) {
  const order = own(id, res);
  if (!order) return void res.sendStatus(404);
  const place = `${url}/orders/${id}`;
  await check(order); // the link of a session that has ended leads nowhere
  res.redirect(303, payment(order) === "authorised" ? await begin(order, place) : place);
}

setInterval(catchUp, 3_600_000);
app.listen(port, "127.0.0.1", async (error) => {
  if (error) throw error;
  await catchUp();
  console.log(`The shop is open: ${url}. Parcels: ${url}/dispatch`);
});
