/** An extension that leaves the model two tools: at the event that `NARROW_AT` names. */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function narrowing(pi) {
  const narrow = async () => {
    // After every handler of a session's start: tools that are registered later are active.
    if (process.env.NARROW_AT === "session_start") await new Promise((resolve) => setTimeout(resolve));
    pi.setActiveTools(["read", "bash"]);
  };
  if (process.env.NARROW_AT === "session_start") pi.on("session_start", narrow);
  else pi.on("before_agent_start", narrow);
}
