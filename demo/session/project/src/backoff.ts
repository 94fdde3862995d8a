const BASE_MS = 2_000;
const CAP_MS = 15 * 60_000;

/** How long to wait after the nth failure: doubling, with full jitter, so that workers do not come back in step. */
export function backoff(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(CAP_MS, BASE_MS * 2 ** (attempt - 1));
  return Math.round(random() * ceiling);
}
