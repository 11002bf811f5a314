// Opens the checkout of a cart with a classed product only with the token of its notice.
// It has no network and no clock but the shop's date: checkout.py looks at the order again.

const MESSAGE = "Please read and initial the legal notice for this cart and address first.";

/** Shopify's cart and checkout validation function, see run.graphql. */
export function cartValidationsGenerateRun(input) {
  const refused = input.buyerJourney.step !== "CART_INTERACTION" && !mayCheckOut(input);
  const errors = refused ? [{ message: MESSAGE, target: "$.cart" }] : [];
  return { operations: [{ validationAdd: { errors } }] };
}

function mayCheckOut({ cart, shop, validation }) {
  const classed = cart.lines.filter((line) => line.merchandise.product?.metafield?.value);
  if (classed.length === 0) return true;
  const [until, name, mac] = (cart.attribute?.value ?? "").split(".");
  if (!mac || shop.localTime.date > until) return false;
  const lines = classed.map((line) => `${line.merchandise.id} ${line.quantity}`).sort();
  const customer = cart.buyerIdentity?.customer?.id ?? "";
  // While a key is rotated there are two.
  const keys = (validation.metafield?.value ?? "").split(" ").filter((key) => key.length >= 32);
  const places = cart.deliveryGroups.map((group) => group.deliveryAddress);
  return places.length > 0 && places.every((place) => {
    const to = [place?.countryCode, place?.provinceCode, place?.zip?.slice(0, 5)];
    const about = JSON.stringify([until, name, customer, ...to.map((part) => part ?? ""), ...lines]);
    return keys.some((key) => hmac(key, about) === mac);
  });
}

/** HMAC-SHA-256 (RFC 2104) of texts, hexadecimal: functions have no library of cryptography. */
export function hmac(key, text) {
  let secret = utf8(key);
  if (secret.length > 64) secret = sha256(secret);
  const pad = (byte) => Array.from({ length: 64 }, (_, at) => (secret[at] ?? 0) ^ byte);
  const made = sha256([...pad(0x5c), ...sha256([...pad(0x36), ...utf8(text)])]);
  return made.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function utf8(text) {
  const bytes = [];
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (code < 0x80) bytes.push(code);
    else {
      const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      bytes.push(((0xf00 >> (more + 1)) & 0xff) | (code >> (6 * more)));
      for (let at = more - 1; at >= 0; at--) bytes.push(0x80 | ((code >> (6 * at)) & 0x3f));
    }
  }
  return bytes;
}

/** SHA-256 (FIPS 180-4) of bytes. */
function sha256(bytes) {
  const [roots, start] = constants();
  const padded = [...bytes, 0x80];
  while (padded.length % 64 !== 56) padded.push(0);
  for (let at = 7; at >= 0; at--) padded.push(Math.floor((bytes.length * 8) / 2 ** (8 * at)) & 0xff);
  const state = [...start];
  const turn = (word, by) => (word >>> by) | (word << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    const w = [];
    for (let at = 0; at < 64; at++) {
      if (at < 16) {
        const from = block + 4 * at;
        w[at] = (padded[from] << 24) | (padded[from + 1] << 16) | (padded[from + 2] << 8) | padded[from + 3];
      } else {
        const [x, y] = [w[at - 15], w[at - 2]];
        const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
        w[at] = (w[at - 16] + s0 + w[at - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
      }
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < 64; at++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + roots[at] + w[at]) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => { state[at] = (state[at] + word) | 0; });
  }
  return state.flatMap((word) => [24, 16, 8, 0].map((by) => (word >>> by) & 0xff));
}

/** The first 32 bits of the fractions of cube roots and square roots of the first primes. */
function constants() {
  const [roots, start] = [[], []];
  for (let number = 2; roots.length < 64; number++) {
    if (isPrime(number)) {
      if (start.length < 8) start.push(fraction(number ** (1 / 2)));
      roots.push(fraction(number ** (1 / 3)));
    }
  }
  return [roots, start];
}

function isPrime(number) {
  for (let by = 2; by * by <= number; by++) if (number % by === 0) return false;
  return true;
}

function fraction(root) {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}
