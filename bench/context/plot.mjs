/** Plots the context's size by request, one line per way, as an SVG. */

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {number[]} values
 */

const [WIDTH, HEIGHT] = [900, 420];
const MARGIN = { left: 62, right: 16, top: 58, bottom: 40 };
/** Distinguishable with color blindness. */
const COLORS = ["#6e7781", "#0072b2", "#e69f00", "#56b4e9", "#cc3d78", "#009e73", "#d55e00"];
/** Names per row of the legend. */
const NAMES = 4;
const TICKS = 5;

/**
 * @param {Line[]} lines
 * @param {{ title: string, across: string }} labels
 * @returns {string} SVG
 */
export function plot(lines, { title, across }) {
  const longest = Math.max(...lines.map(({ values }) => values.length));
  const highest = roundUp(Math.max(...lines.flatMap(({ values }) => values)));
  const x = (/** @type {number} */ at) => MARGIN.left + (at / (longest - 1)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (/** @type {number} */ value) => HEIGHT - MARGIN.bottom - (value / highest) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const parts = [];
  for (let tick = 0; tick <= TICKS; tick++) {
    const value = (highest * tick) / TICKS;
    const at = Math.round(((longest - 1) * tick) / TICKS);
    parts.push(`<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(value)}" y2="${y(value)}" stroke="#8885" stroke-width="1"/>`);
    parts.push(`<text x="${MARGIN.left - 8}" y="${y(value) + 4}" text-anchor="end">${Math.round(value / 1000)}k</text>`);
    parts.push(`<text x="${x(at)}" y="${HEIGHT - MARGIN.bottom + 18}" text-anchor="middle">${at}</text>`);
  }
  lines.forEach(({ name, values }, n) => {
    const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const [across, down] = [MARGIN.left + ((n % NAMES) * (WIDTH - MARGIN.left)) / NAMES, 24 + Math.floor(n / NAMES) * 16];
    parts.push(`<polyline points="${points}" fill="none" stroke="${COLORS[n % COLORS.length]}" stroke-width="1.4"/>`);
    parts.push(`<rect x="${across}" y="${down}" width="14" height="3" fill="${COLORS[n % COLORS.length]}"/><text x="${across + 19}" y="${down + 5}">${name}</text>`);
  });
  parts.push(`<text x="${MARGIN.left}" y="14" font-weight="600">${title}</text>`, `<text x="${WIDTH - MARGIN.right}" y="${HEIGHT - 6}" text-anchor="end">${across}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#57606a">\n${parts.join("\n")}\n</svg>\n`;
}

/** @param {number} value */
function roundUp(value) {
  const step = 10 ** Math.floor(Math.log10(value)) / 2;
  return Math.ceil(value / step) * step;
}
