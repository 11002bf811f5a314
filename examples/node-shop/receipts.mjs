// Collect the receipts of all orders, for `countersign log monitor --receipts`: node receipts.mjs DIRECTORY

import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { orders } from "./store.mjs";

const folder = resolve(process.argv[2] ?? "receipts");
mkdirSync(folder, { recursive: true });
let count = 0;
for (const { ack_id = "", receipt } of orders.values()) {
  const name = `${ack_id}.txt`, file = join(folder, name);
  if (!receipt || !/^ack_[0-9a-z]+$/.test(ack_id) || existsSync(file)) continue;
  // The monitor reads each file of the directory, so the unfinished one is next to it.
  const unfinished = join(dirname(folder), `.${basename(folder)}.${name}`);
  writeFileSync(unfinished, receipt);
  renameSync(unfinished, file);
  count += 1;
}
console.log(`${count} receipts were new.`);
