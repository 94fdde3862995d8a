/** Shared parts of the TUI panels: Pi's own components and its theme. */

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {typeof import("@earendil-works/pi-tui")} Tui */
/** @typedef {import("@earendil-works/pi-coding-agent").Theme} Theme */
/** @typedef {{ render(width: number): string[], handleInput(data: string): void, invalidate(): void, dispose?(): void, capturesViewportInput?: boolean }} Panel */
/** A panel's access to the screen. @typedef {ReturnType<typeof screenOf>} Screen */

/** Lines of the screen that Pi's footer takes. */
const FOOTER = 4;
const FEWEST = 3;
/** What a terminal sends before and after a pasted text. */
const PASTE = ["\x1b[200~", "\x1b[201~"];

/** The text, if it was pasted. @param {string} data */
export function pastedIn(data) {
  const [begin, end] = PASTE;
  return data.startsWith(begin) ? data.slice(begin.length).replace(end, "") : undefined;
}

/** Pi's components; undefined if this Pi does not provide them. @param {ExtensionContext} ctx @returns {Promise<Tui | undefined>} */
export async function components({ ui }) {
  if (!ui.custom) return undefined;
  for (const name of ["@earendil-works/pi-tui", "@mariozechner/pi-tui"]) {
    try {
      const tui = await import(name);
      if (tui.Input && tui.SettingsList && tui.truncateToWidth && tui.matchesKey) return tui;
    } catch {
      // Try the other name, or return none.
    }
  }
  return undefined;
}

/** Shows a panel in place of the editor until it is done. @param {ExtensionContext} ctx @param {(screen: Screen) => Panel} make */
export async function showPanel(ctx, make) {
  await ctx.ui.custom((tui, theme, keybindings, done) => {
    const screen = screenOf(tui, theme, keybindings, () => done(undefined));
    return guarded(make(screen), screen.close);
  });
}

/** @param {any} tui @param {Theme} theme @param {any} keybindings @param {() => void} close */
function screenOf(tui, theme, keybindings, close) {
  return {
    theme,
    close,
    draw: () => tui.requestRender(),
    /** The lines left for a list. @param {number} beside the panel's other lines */
    rows: (beside) => Math.max(FEWEST, (tui.terminal?.rows ?? 24) - FOOTER - beside),
    /**
     * Whether it is this key, as bound by the user.
     *
     * @param {string} data
     * @param {"up" | "down" | "confirm" | "cancel" | "pageUp" | "pageDown"} key
     */
    is: (data, key) => keybindings.matches(data, `tui.select.${key}`),
  };
}

/** A text of lines that scrolls. */
export class Scroll {
  #screen;
  #beside;
  #length = 0;
  top = 0;

  /** @param {Screen} screen @param {number} beside the panel's other lines */
  constructor(screen, beside) {
    this.#screen = screen;
    this.#beside = beside;
  }

  /** The lines in sight, and which ones they are. @param {string[]} lines */
  seen(lines) {
    const rows = this.#screen.rows(this.#beside);
    this.#length = lines.length;
    this.top = Math.max(0, Math.min(this.top, lines.length - rows));
    const end = Math.min(lines.length, this.top + rows);
    return { lines: lines.slice(this.top, end), note: `lines ${this.top + 1} to ${end} of ${lines.length}` };
  }

  /** Scrolls so that a line is in sight. @param {number} line @param {number} above lines before it */
  show(line, above) {
    this.top = line < this.#screen.rows(this.#beside) ? 0 : line - above;
  }

  /** Scrolls by a key. @param {string} data */
  turn(data) {
    const rows = this.#screen.rows(this.#beside);
    if (this.#screen.is(data, "up")) this.top -= 1;
    else if (this.#screen.is(data, "down")) this.top += 1;
    else if (this.#screen.is(data, "pageUp")) this.top -= rows;
    else if (this.#screen.is(data, "pageDown") || data === " ") this.top += rows;
    this.top = Math.max(0, Math.min(this.top, this.#length - rows));
  }
}

/** Catches a panel's exceptions, which would end Pi. @param {Panel} panel @param {() => void} close */
function guarded(panel, close) {
  const render = panel.render.bind(panel);
  const handleInput = panel.handleInput.bind(panel);
  panel.render = (width) => {
    try {
      return render(width);
    } catch {
      return [];
    }
  };
  panel.handleInput = (data) => {
    try {
      handleInput(data);
    } catch {
      close();
    }
  };
  // Otherwise, Pi's fullscreen view scrolls the transcript at page keys.
  panel.capturesViewportInput = true;
  return panel;
}

/**
 * A line in the color `base`, with the words of `found` highlighted.
 *
 * @param {Theme} theme
 * @param {string} line
 * @param {RegExp | undefined} found
 * @param {"text" | "accent"} base
 */
export function lit(theme, line, found, base) {
  const parts = found ? line.split(found) : [line];
  // With one group, every second part is a match.
  return parts.map((part, at) => (at % 2 ? theme.bold(theme.fg("warning", part)) : theme.fg(base, part))).join("");
}
