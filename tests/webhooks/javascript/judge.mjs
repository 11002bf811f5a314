// Reads a list of [secret, headers, body] as JSON, and prints what `receive` makes of each.
//
// The first argument is the module that exports it, as the documentation shows it.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { receive } = await import(pathToFileURL(process.argv[2]).href);
const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = asked.map(([secret, headers, body]) =>
  receive(secret, headers, Buffer.from(body, "base64")),
);
process.stdout.write(JSON.stringify(answers));
