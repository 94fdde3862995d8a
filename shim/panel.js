/**
 * What the panels in the TUI have in common: Pi's own components, as this Pi brings them, and its theme.
 */

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {typeof import("@earendil-works/pi-tui")} Tui */
/** @typedef {import("@earendil-works/pi-coding-agent").Theme} Theme */
/** @typedef {{ render(width: number): string[], handleInput(data: string): void, invalidate(): void, dispose?(): void, focused?: boolean }} Panel */

/** Lines that the rest of Pi takes of the screen beside a panel. */
const BESIDE = 12;
const FEWEST = 5;

/**
 * Pi's components, or nothing where this Pi does not lend them.
 *
 * @param {ExtensionContext} ctx
 * @returns {Promise<Tui | undefined>}
 */
export async function components({ ui }) {
  if (!ui.custom) return undefined;
  for (const name of ["@earendil-works/pi-tui", "@mariozechner/pi-tui"]) {
    try {
      const tui = await import(name);
      if (tui.Input && tui.SettingsList && tui.truncateToWidth && tui.matchesKey) return tui;
    } catch {
      // The other name, or none.
    }
  }
  return undefined;
}

/**
 * Shows a panel in place of the editor until it is done.
 *
 * @param {ExtensionContext} ctx
 * @param {(screen: Screen) => Panel} make
 * @returns {Promise<void>}
 */
export async function showPanel(ctx, make) {
  await ctx.ui.custom((tui, theme, keybindings, done) => {
    const screen = new Screen(tui, theme, keybindings, () => done(undefined));
    return screen.guarded(make(screen));
  });
}

/** A panel's way to the screen. */
export class Screen {
  #tui;
  #keybindings;

  /**
   * @param {any} tui
   * @param {Theme} theme
   * @param {any} keybindings
   * @param {() => void} close
   */
  constructor(tui, theme, keybindings, close) {
    this.#tui = tui;
    this.#keybindings = keybindings;
    this.theme = theme;
    this.close = close;
  }

  /** Lines that a list may take. */
  get rows() {
    return Math.max(FEWEST, (this.#tui.terminal?.rows ?? 24) - BESIDE);
  }

  /** Draws anew. */
  draw() {
    this.#tui.requestRender();
  }

  /**
   * Is it this key, as the user has bound it?
   *
   * @param {string} data
   * @param {"up" | "down" | "confirm" | "cancel" | "pageUp" | "pageDown"} what
   */
  is(data, what) {
    return this.#keybindings.matches(data, `tui.select.${what}`);
  }

  /**
   * What a panel throws would end Pi.
   *
   * @param {Panel} panel
   * @returns {Panel}
   */
  guarded(panel) {
    const { close } = this;
    return {
      render: (width) => {
        try {
          return panel.render(width);
        } catch {
          return [];
        }
      },
      handleInput: (data) => {
        try {
          panel.handleInput(data);
        } catch {
          close();
        }
      },
      invalidate: () => panel.invalidate(),
      dispose: () => panel.dispose?.(),
      get focused() {
        return panel.focused ?? false;
      },
      set focused(value) {
        panel.focused = value;
      },
    };
  }
}
