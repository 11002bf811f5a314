// What the client promises beyond the behaviour that both clients share.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { built, messages, tokens, order } = JSON.parse(process.env.BEHAVIOUR);
const load = (name) => import(pathToFileURL(`${built}/${name}.js`).href);
const { Countersign, errors, InvalidClearanceToken, InvalidSignature, verifyClearanceToken, Webhooks } =
  await load("index");
const { Answers, Refusal, webhookMessage } = await load("testing");

const STATUS = { cbid: "cbid_1", status: "verified", verified_at: null, expires_at: null };
const clientOf = (answers, more = {}) =>
  new Countersign({
    apiKey: "csign_sk_test_x",
    baseUrl: "https://countersign.example.com/",
    fetch: answers.fetch,
    sleep: async () => {},
    ...more,
  });

test("an identifier that would change the path is refused before anything is sent", () => {
  const answers = new Answers({});
  for (const name of ["", ".", ".."]) {
    assert.throws(() => clientOf(answers).notices.retrieve(name), TypeError);
  }
  assert.equal(answers.requests.length, 0);
});

test("a missing key or address is named when the client is made", () => {
  const addresses = ["", "x.example", "https://", "https://x.example/?a", "https://x.example\n"];
  for (const wrong of [{ apiKey: "" }, ...addresses.map((baseUrl) => ({ baseUrl }))]) {
    assert.throws(() => clientOf(new Answers({}), wrong), /pass (apiKey|baseUrl)/);
  }
});

test("a key that cannot be sent is refused and not shown", async () => {
  const answers = new Answers({});
  const refused = (error) => /line break/.test(error.message) && !/csign_sk/.test(error.message);
  for (const key of ["csign_sk_test_x\n", "csign_sk_test_é"]) {
    assert.throws(() => clientOf(answers, { apiKey: key }), refused);
    const params = { initials_per_line: ["JD"] };
    const call = clientOf(answers).notices.acknowledge("ab1263", params, { idempotencyKey: key });
    await assert.rejects(call, refused);
  }
  assert.equal(answers.requests.length, 0);
});

test("a list whose pages lead to themselves ends", async () => {
  const answers = new Answers({ "GET /v1/events": { data: [], next_cursor: "evt_1" } });
  const list = async () => {
    for await (const _ of clientOf(answers).events.list());
  };
  await assert.rejects(list, /itself/);
  assert.equal(answers.requests.length, 2);
});

test("a secret that is none verifies nothing", async () => {
  const { body, headers } = await webhookMessage("buyer.failed", { cbid: "c" });
  for (const secret of ["", "whsec_", "whsec_c2hvcnQ=", "whsec_é", "whpk_", "secret"]) {
    await assert.rejects(new Webhooks().unwrap(body, headers, { secret }), /webhook secret/);
  }
});

test("a browser is refused an API key, and gets a client token", () => {
  globalThis.document = {};
  try {
    for (const apiKey of ["csign_sk_test_x", "csign_rk_test_x"]) {
      assert.throws(() => clientOf(new Answers({}), { apiKey }), /client token/);
    }
    clientOf(new Answers({}), { apiKey: "cst_test_x" });
  } finally {
    delete globalThis.document;
  }
});

test("a signal ends the call while it waits", async () => {
  const answers = new Answers({ "GET /v1/buyers/x/status": new Refusal(503, "overloaded") });
  const client = clientOf(answers, { sleep: undefined, retries: { waitInitial: 30, waitMax: 30 } });
  const controller = new AbortController();
  const call = client.buyers.status("x", { signal: controller.signal });
  while (answers.requests.length === 0) await new Promise(setImmediate);
  controller.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  assert.equal(answers.requests.length, 1);
});

test("no error shows the key", async () => {
  const answers = new Answers({ "GET /v1/buyers/x/status": new Refusal(404, "not_found") });
  const error = await clientOf(answers).buyers.status("x").catch((found) => found);
  assert.ok(error instanceof errors.NotFound);
  assert.ok(!`${error.stack} ${JSON.stringify(error)}`.includes("csign_sk"));
});

test("what is undefined is not sent", async () => {
  const answers = new Answers({ "GET /v1/events": { data: [], next_cursor: null } });
  for await (const _ of clientOf(answers).events.list({ type: undefined, limit: 5 }));
  assert.equal(new URL(answers.requests[0].url).search, "?limit=5");
});

test("the same client serves many calls at once", async () => {
  const client = clientOf(new Answers({ "GET /v1/buyers/cbid_1/status": STATUS }));
  const found = await Promise.all(Array.from({ length: 20 }, () => client.buyers.status("cbid_1")));
  assert.ok(found.every((one) => one.status === "verified"));
});

test("messages are judged as the Python client judges them", async () => {
  const webhooks = new Webhooks();
  for (const { secret, headers, body, authentic } of messages) {
    const judged = webhooks.unwrap(Buffer.from(body, "base64"), headers, { secret });
    if (authentic) assert.equal((await judged).id, "evt_1");
    else await assert.rejects(judged, InvalidSignature, JSON.stringify(headers));
  }
});

test("tokens are judged as the Python client judges them", async () => {
  for (const { why, token, keys, allows } of tokens) {
    const judged = verifyClearanceToken(token, { ...order, keys: { keys } });
    if (allows) assert.equal((await judged).sub, "clr_1");
    else await assert.rejects(judged, InvalidClearanceToken, why);
  }
});
