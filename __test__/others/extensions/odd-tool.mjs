/** An extension whose tool returns every kind of answer. */

/** @type {Record<string, any[]>} */
export const answers = {
  nothing: [],
  blank: [{ type: "text", text: "" }],
  "half a character": [{ type: "text", text: "before0000x \ud83d and after0000x \udc4b" }],
  control: [{ type: "text", text: "bell0000x \u0000\u0007\u001b[31m\u2028\u2029\ufeff\r\n" }],
  image: [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo".repeat(2_000) }],
  "image and text": [
    { type: "text", text: "caption0000x" },
    { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" },
    { type: "text", text: "caption0001x" },
  ],
  huge: [{ type: "text", text: `head0000x ${"the same words again ".repeat(4_000)} middle0000x ${"一二三四五六七八九十".repeat(2_000)} tail0000x` }],
};

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function oddTool(pi) {
  pi.registerTool({
    name: "odd",
    label: "Odd",
    description: "Answers oddly",
    parameters: /** @type {any} */ ({ type: "object", properties: { what: { type: "string" } }, required: ["what"] }),
    execute: async (_id, { what }) => ({ content: answers[what], details: { what, of: [null, undefined, "\ud83d"] } }),
  });
}
