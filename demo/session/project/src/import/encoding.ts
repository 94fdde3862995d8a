/**
 * Which encoding a partner's file has. Nobody says so in the file: the bytes have to.
 */
export type Encoding = "utf-8" | "shift_jis" | "windows-1252";

export function decode(bytes: Uint8Array): { text: string; encoding: Encoding } {
  const encoding = guess(bytes);
  return { text: new TextDecoder(encoding).decode(bytes), encoding };
}

export function guess(bytes: Uint8Array): Encoding {
  if (isUtf8(bytes)) return "utf-8";
  return highBytes(bytes) > bytes.length / 10 ? "shift_jis" : "windows-1252";
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function highBytes(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte >= 0x80) count++;
  return count;
}
