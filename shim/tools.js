/**
 * The tools as Pi registers them: the engine's specs, its answers, and short lines for the screen.
 *
 * A renderer's exception would end Pi, so renderers only return plain lines cut to the width.
 */

import { columns, fit, wrap } from "./columns.js";
import { cancellable, unlessAborted, unwrap } from "./pi.js";

/** @typedef {{ fg(color: string, text: string): string, bold(text: string): string }} Theme */

/** Lines of an answer that are shown by default. */
const PREVIEW = 3;
/** The most characters before the match in a preview. */
const LEAD = 24;
/** The beginning of a hit. */
const HIT = /^[ms]-[0-9a-f]{10}\b/gm;

/** @param {import("./session.js").Session} session */
export function registerTools(session) {
  for (const spec of JSON.parse(session.native.toolSpecs(session.settings.notes))) {
    session.pi.registerTool({
      ...spec,
      /** @type {import("@earendil-works/pi-coding-agent").ToolDefinition["execute"]} */
      execute: async (id, params, signal) => {
        const engine = await unlessAborted(session.ready(), signal);
        if (!engine) throw new Error("the call was stopped");
        const { leafId, newerRequest } = session.handover.storedLeaf();
        const call = (/** @type {number} */ operation) => engine.callTool(operation, spec.name, JSON.stringify(params), leafId, newerRequest, id);
        // Pi shows the model a thrown error's message.
        const result = unwrap(await cancellable(session, engine, signal, call));
        return { ...result, details: detailsOf(result.content) };
      },
      renderCall: (/** @type {unknown} */ args, /** @type {Theme} */ theme) => drawn((width) => callLine(spec, args, theme, width)),
      renderResult: (/** @type {any} */ result, /** @type {any} */ options, /** @type {Theme} */ theme) =>
        drawn((width) => resultLines(spec, result, options, theme, width)),
    });
  }
}

/**
 * The ids in an answer, each once, and the number of lines that begin with one, which are hits in a search. For other extensions and
 * exports.
 *
 * @param {{ type: string, text?: string }[]} content
 */
function detailsOf(content) {
  const text = content.map((block) => block.text ?? "").join("\n");
  return { ids: [...new Set(text.match(/\b[ms]-[0-9a-f]{10}\b/g))], hits: text.match(HIT)?.length ?? 0 };
}

/** @param {(width: number) => string[]} draw */
function drawn(draw) {
  /** Pi renders every line of the session at every key. @type {{ width: number, lines: string[] } | undefined} */
  let last;
  return {
    render: (/** @type {number} */ width) => {
      try {
        if (last?.width !== width) last = { width, lines: draw(Math.max(1, width)) };
        return last.lines;
      } catch {
        return [];
      }
    },
    invalidate: () => {
      last = undefined;
    },
  };
}

/**
 * `Search history  "the question"  project, regex`
 *
 * @param {{ name: string, label: string }} spec
 * @param {any} args
 * @param {Theme} theme
 * @param {number} width
 */
function callLine(spec, args, theme, width) {
  const { query, summary_id: id, ...rest } = args && typeof args === "object" ? args : {};
  const about = query === undefined ? (id ?? "") : `"${query}"`;
  const bounds = Object.entries(rest).map(([name, value]) => (value === true ? name : `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`));
  const title = fit(spec.label ?? spec.name, width);
  const words = fit([about, bounds.join(", ")].filter(Boolean).join("  "), Math.max(0, width - columns(title) - 2));
  return [theme.fg("toolTitle", theme.bold(title)) + (words ? `  ${theme.fg("accent", words)}` : "")];
}

/**
 * @param {{ name: string }} spec
 * @param {{ content?: { type: string, text?: string, mimeType?: string }[] }} result
 * @param {{ expanded?: boolean, isPartial?: boolean }} options
 * @param {Theme} theme
 * @param {number} width
 */
function resultLines({ name }, { content = [] }, { expanded, isPartial }, theme, width) {
  if (isPartial) return [theme.fg("muted", fit("…", width))];
  const text = content.map((block) => (block.type === "text" ? (block.text ?? "") : `[${block.mimeType ?? block.type}]`)).join("\n").trimEnd();
  // A preview needs no headings about summaries, and not how the model goes on.
  const lines = text.split("\n").filter((line) => expanded || (line.trim() && !/^(In s-[0-9a-f]+:|Not summarized:|To read one in full: .*)$/.test(line)));
  if (expanded) return lines.flatMap((line) => wrap(line, width)).map((line) => theme.fg("toolOutput", line));
  const hits = name === "lcm_grep" ? detailsOf(content).hits : 0;
  const shown = lines.slice(0, PREVIEW).map((line) => theme.fg("toolOutput", glimpse(line, width)));
  const more = lines.length - shown.length;
  const counts = [hits > 0 && `${hits} ${hits === 1 ? "hit" : "hits"}`, more > 0 && `${more} more ${more === 1 ? "line" : "lines"}`].filter(Boolean);
  return counts.length > 0 ? [...shown, theme.fg("muted", fit(counts.join(", "), width))] : shown;
}

/** A line that is cut to the width, with its first match in sight. @param {string} line @param {number} width */
function glimpse(line, width) {
  const [match, end] = [line.indexOf("«"), line.indexOf("»") + 1];
  const head = line.slice(0, line.indexOf(": ") + 2);
  if (match < head.length || columns(line.slice(0, end)) < width) return fit(line, width);
  const room = width - columns(head) - columns(line.slice(match, end)) - 2;
  const word = line.indexOf(" ", match - Math.min(LEAD, Math.max(1, room))) + 1;
  return fit(`${head}…${line.slice(Math.min(word || match, match))}`, width);
}
