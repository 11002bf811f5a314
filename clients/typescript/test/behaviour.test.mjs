// Runs every case of clients/behaviour.json with the built client, as tests/clients/runner.py does
// in Python. What it needs to know of the server is in the variable BEHAVIOUR.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { table, cases, built, proxy, key, values: given } = JSON.parse(process.env.BEHAVIOUR);
const { Countersign, CountersignError } = await import(pathToFileURL(`${built}/index.js`).href);
const RUNNER = "node";

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const camelled = (found) =>
  Object.fromEntries(Object.entries(found ?? {}).map(([name, item]) => [camel(name), item]));

function valueAt(found, path) {
  for (const part of path.split(".").filter(Boolean)) found = found[part];
  return found;
}

/** What is written, with the values that it names. */
function filled(written, values) {
  if (Array.isArray(written)) return written.map((item) => filled(item, values));
  if (written !== null && typeof written === "object") {
    return Object.fromEntries(
      Object.entries(written).map(([name, item]) => [name, filled(item, values)]),
    );
  }
  if (typeof written !== "string") return written;
  const whole = /^\$([a-z_]+)$/.exec(written);
  if (whole) return values[whole[1]];
  return written.replace(/\$([a-z_]+)/g, (_, name) => String(values[name]));
}

/** Everything that is expected is there; of a list, as many items from its start. */
function assertHas(found, expected, where) {
  if (expected !== null && typeof expected === "object" && "begins" in expected) {
    const text = typeof found === "string" ? found : Buffer.from(found).toString("latin1");
    assert.ok(text.startsWith(expected.begins), `${where}: ${text.slice(0, 80)}`);
  } else if (expected !== null && typeof expected === "object") {
    for (const [name, item] of Object.entries(expected)) {
      assertHas(found[name], item, `${where} .${name}`);
    }
  } else {
    assert.equal(found, expected, where);
  }
}

async function act(client, step, values, here) {
  if (step.unwrap) {
    const wanted = filled(step.unwrap, values);
    const message = (await (await fetch(`${here}/-received`)).json()).at(-1);
    delete message.headers[wanted.without];
    const body = Buffer.from(message.body + (wanted.body ?? ""));
    const { secret, now } = wanted;
    return client.webhooks.unwrap(body, message.headers, now ? { secret, now } : { secret });
  }
  const [resource, method] = step.call.split(".").map(camel);
  const others = "with" in step ? [filled(step.with, values)] : [];
  if (step.options) others.push(camelled(filled(step.options, values)));
  const result = client[resource][method](...filled(step.at ?? [], values), ...others);
  if (!(Symbol.asyncIterator in result)) return result;
  const items = [];
  for await (const item of result) items.push(item);
  return items;
}

async function take(client, step, values, here) {
  const where = JSON.stringify(step);
  let result;
  try {
    result = await act(client, step, values, here);
  } catch (error) {
    if (!(error instanceof CountersignError) || !step.error) throw error;
    const { name, code, status, retry_after, request_id } = error;
    const found = { class: name, code, status, retry_after, has_request_id: request_id !== null };
    assertHas(found, step.error, where);
    return;
  }
  assert.ok(!step.error, `${where}: ${JSON.stringify(result)}`);
  for (const [name, path] of Object.entries(step.keep ?? {})) values[name] = valueAt(result, path);
  if ("exactly" in step) assert.equal(result.length, step.exactly, where);
  if (step.expect) assertHas(result, filled(step.expect, values), where);
}

const all = JSON.parse(readFileSync(table, "utf8")).cases;
for (const made of all.filter(({ name }) => cases.includes(name))) {
  test(`${made.name}: ${made.promise}`, async () => {
    const here = `${proxy}/${RUNNER}/${made.name}`;
    const session = `cs_${crypto.randomUUID()}`;
    const values = { ...given, session, receiver: `${here}/-received` };
    const waits = [];
    const clients = new Map();
    for (const step of made.steps) {
      const apiKey = filled(step.key ?? key, values);
      if (!clients.has(apiKey)) {
        const client = new Countersign({
          apiKey,
          baseUrl: made.unreachable ? values.closed : here,
          timeoutSeconds: made.timeout ?? 30,
          retries: camelled(made.retries),
          sleep: async (seconds) => void waits.push(seconds),
        });
        clients.set(apiKey, client);
      }
      await take(clients.get(apiKey), step, values, here);
    }
    const seen = await (await fetch(`${here}/-attempts`)).json();
    if ("attempts" in made) assert.equal(seen.length, made.attempts, JSON.stringify(seen));
    if (made.statuses) assert.deepEqual(seen.map((attempt) => attempt.status), made.statuses);
    if (made.waits) {
      const fit = made.waits.map(([low, high], n) => low <= waits[n] && waits[n] <= high);
      assert.ok(waits.length === made.waits.length && fit.every(Boolean), String(waits));
    }
    if (made.same_key) {
      const [first, last] = made.same_key.map((number) => seen[number]);
      assert.ok(first.key);
      assert.deepEqual([first.key, first.body], [last.key, last.body]);
    }
  });
}
