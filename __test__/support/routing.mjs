/** An extension with a virtual model, `router/auto`, which sends every request to the scripted model. */

/** @param {any} pi of a Pi with virtual models */
export default function routing(pi) {
  pi.registerVirtualModel({
    provider: "router",
    id: "auto",
    name: "Auto",
    thinkingLevels: ["off"],
    route: (/** @type {unknown} */ _request, /** @type {any} */ { modelRegistry }) => ({ model: modelRegistry.find("demo", "demo-model"), thinkingLevel: "off" }),
  });
}
