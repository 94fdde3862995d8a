/**
 * A small PNG, drawn in code: the screenshot that the story's user pastes.
 *
 * The pixels are stored uncompressed, since compressed bytes differ between versions of zlib.
 */
import { crc32, deflateSync } from "node:zlib";

/**
 * An image block of Pi's messages.
 * @param {number} width
 * @param {number} height
 * @param {(x: number, y: number) => [red: number, green: number, blue: number]} colour
 */
export function imageBlock(width, height, colour) {
  return { type: "image", data: png(width, height, colour).toString("base64"), mimeType: "image/png" };
}

/**
 * @param {number} width
 * @param {number} height
 * @param {(x: number, y: number) => [red: number, green: number, blue: number]} colour
 */
function png(width, height, colour) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8); // eight bits per channel, RGB, no interlacing
  const rows = Array.from({ length: height }, (_, y) => [0, ...Array.from({ length: width }, (_, x) => colour(x, y)).flat()]);
  const pixels = deflateSync(Buffer.from(rows.flat()), { level: 0 });
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

/**
 * @param {string} type
 * @param {Buffer} data
 */
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body) >>> 0);
  return Buffer.concat([length, body, check]);
}

/** A mail seen from far away: a header, some lines, and one word in red. */
export function mailScreenshot() {
  return imageBlock(64, 48, (x, y) => {
    if (y < 8) return [30, 60, 110];
    const line = (y - 12) % 6 < 2 && x > 4 && x < 58 - ((y * 7) % 17);
    if (y >= 24 && y < 26 && x > 20 && x < 42) return [200, 30, 30];
    return line ? [90, 90, 90] : [250, 250, 248];
  });
}
