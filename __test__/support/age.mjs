/** Reads files of age (https://age-encryption.org/v1) with Node's cryptography: what the engine encrypts, others can open. */
import assert from "node:assert/strict";
import { createDecipheriv, createPrivateKey, createPublicKey, diffieHellman, hkdfSync } from "node:crypto";

/** What bytes of a key come after. */
const PRIVATE = Buffer.from("302e020100300506032b656e04220420", "hex");
const PUBLIC = Buffer.from("302a300506032b656e032100", "hex");
const LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/** Bytes of a part of the text, and of what proves it. */
const [CHUNK, TAG] = [64 * 1024, 16];

/** @param {Buffer} bytes */
export const isEncrypted = (bytes) => bytes.subarray(0, 19).toString() === "age-encryption.org/";

/** The 32 bytes of a key's text. @param {string} text */
function keyIn(text) {
  const letters = text.trim().toLowerCase().split("1").at(-1)?.slice(0, -6) ?? "";
  const bits = [...letters].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
}

/** @param {Buffer} key @param {Buffer} nonce @param {Buffer} bytes */
function open(key, nonce, bytes) {
  const cipher = createDecipheriv("chacha20-poly1305", key, nonce, { authTagLength: TAG });
  cipher.setAuthTag(bytes.subarray(-TAG));
  return Buffer.concat([cipher.update(bytes.subarray(0, -TAG)), cipher.final()]);
}

/** @param {Buffer} from @param {Buffer} salt @param {string} info */
const derived = (from, salt, info) => Buffer.from(hkdfSync("sha256", from, salt, info, 32));

/**
 * @param {Buffer} bytes
 * @param {string} secret `AGE-SECRET-KEY-1…`
 */
export function decrypted(bytes, secret) {
  const privateKey = createPrivateKey({ key: Buffer.concat([PRIVATE, keyIn(secret)]), format: "der", type: "pkcs8" });
  const own = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  const end = bytes.indexOf("\n", bytes.indexOf("\n--- ") + 1) + 1;
  for (const [, share, body] of bytes.toString("latin1", 0, end).matchAll(/^-> X25519 (\S+)\n(\S+)$/gm)) {
    const theirs = Buffer.from(share, "base64");
    const publicKey = createPublicKey({ key: Buffer.concat([PUBLIC, theirs]), format: "der", type: "spki" });
    const wrapping = derived(diffieHellman({ privateKey, publicKey }), Buffer.concat([theirs, own]), "age-encryption.org/v1/X25519");
    let key;
    try {
      key = open(wrapping, Buffer.alloc(12), Buffer.from(body, "base64"));
    } catch {
      continue;
    }
    const payload = derived(key, bytes.subarray(end, end + 16), "payload");
    const parts = [];
    for (let at = end + 16, count = 0; at < bytes.length; at += CHUNK + TAG, count++) {
      const nonce = Buffer.alloc(12);
      nonce.writeUInt32BE(count, 7);
      nonce[11] = Number(at + CHUNK + TAG >= bytes.length);
      parts.push(open(payload, nonce, bytes.subarray(at, at + CHUNK + TAG)));
    }
    return Buffer.concat(parts);
  }
  return assert.fail("it is not encrypted to this key");
}
