// SPDX-License-Identifier: Apache-2.0
// The proof of work, in a worker: counts up until the derived key begins with the wanted prefix. ALTCHA v2, PBKDF2/SHA-256.

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

async function derive({ nonce, salt, cost, keyLength }, counter) {
  const password = new Uint8Array(nonce.length + 4);
  password.set(nonce);
  new DataView(password.buffer).setUint32(nonce.length, counter);
  const key = await crypto.subtle.importKey("raw", password, "PBKDF2", false, ["deriveBits"]);
  return hex(await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations: cost }, key, keyLength * 8));
}

/** The first solution among first, first + step, ...; each worker of a group has a first of its own. */
export async function solve({ parameters }, first = 0, step = 1) {
  const asked = { ...parameters, nonce: bytes(parameters.nonce), salt: bytes(parameters.salt) };
  for (let counter = first; ; counter += step) {
    const derivedKey = await derive(asked, counter);
    if (derivedKey.startsWith(parameters.keyPrefix)) return { counter, derivedKey };
  }
}

if (typeof WorkerGlobalScope === "function") {
  onmessage = ({ data }) => solve(data.challenge, data.first, data.step).then(postMessage, (fault) => postMessage({ fault: String(fault) }));
}
