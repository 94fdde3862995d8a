/**
 * Several extensions of this folder in one, so that one Pi serves the tests of each. `/awake NAME` activates one; the others get no events.
 */
import editing from "./editing.mjs";
import noting from "./noting.mjs";
import oddTool from "./odd-tool.mjs";
import replacing from "./replacing.mjs";
import rewriting from "./rewriting.mjs";
import rival from "./rival.mjs";

const extensions = { editing, noting, "odd-tool": oddTool, replacing, rewriting, rival };

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function crowd(pi) {
  let awake = "";
  pi.registerCommand("awake", { description: "What a test wants", handler: async (name) => void (awake = name) });
  for (const [name, extension] of Object.entries(extensions)) {
    /** @type {any} */
    const lent = Object.create(pi);
    lent.on = (/** @type {any} */ event, /** @type {(...args: any[]) => any} */ handler) => {
      pi.on(event, (/** @type {any[]} */ ...args) => (awake === name ? handler(...args) : undefined));
    };
    extension(lent);
  }
}
