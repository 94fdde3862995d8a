/**
 * The extension as Pi loads it: a table of Pi's events and what each calls.
 *
 * Any failure is shown once through Pi's UI, and Pi continues as it would without the extension. A factory that throws keeps Pi from
 * starting, so nothing is loaded at the top level.
 */

import { loadEngine } from "./shim/loader.js";
import { Session } from "./shim/session.js";
import { quietly } from "./shim/ui.js";

export { loadEngine };

/** Wires the extension into Pi. @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function losslessContext(pi) {
  /** @type {Session | undefined} */
  let session;

  /**
   * A handler that does nothing without an open session. Some are called `always`, also without an engine: a session that the extension
   * has changed before must go on.
   *
   * @template E, R
   * @param {(session: Session, event: E) => Promise<R> | R} call
   * @param {"always"} [when]
   * @returns {(event: E) => Promise<R | undefined>}
   */
  const guarded = (call, when) => async (event) => {
    const current = session;
    const acts = when === "always" ? !current?.isLeftAlone : current?.isOpen;
    return current && acts ? current.guard(() => call(current, event)) : undefined;
  };

  // In rpc mode, Pi up to 1.5.2 emits it twice per session.
  pi.on("session_start", (_event, ctx) => quietly(() => {
    if (session?.id === ctx.sessionManager.getSessionId()) return;
    session = new Session(pi, ctx);
    void session.start();
  }));
  pi.on("session_shutdown", async ({ reason }) => {
    const closing = session;
    session = undefined;
    await closing?.dispose(reason);
  });

  pi.on("before_agent_start", guarded((session, event) => session.beforePrompt(event)));
  pi.on("context", guarded((session, event) => session.thinking.atRequest(event), "always"));
  pi.on("before_provider_request", guarded((session, { payload }) => session.beforeRequest(payload)));
  pi.on("message_end", guarded((session) => session.handover.walkSoon()));
  pi.on("turn_start", guarded((session) => session.compaction.settle()));
  pi.on("turn_end", guarded((session, event) => session.atTurnEnd(event)));
  pi.on("agent_end", guarded((session) => session.atAgentEnd()));
  pi.on("agent_before_settle", guarded((session, event) => session.thinking.repair(event), "always"));
  // Entries that other extensions append at the end.
  pi.on("agent_settled", guarded((session) => session.handover.walkSoon()));

  pi.on("session_before_compact", guarded((session, event) => session.compaction.before(event)));
  pi.on("session_compact", guarded((session, event) => session.compaction.done(event.compactionEntry?.summary, event.fromExtension)));
  pi.on("session_compact_failed", guarded((session, event) => session.boundary.afterFailed(event)));
  pi.on("session_before_tree", guarded((session, event) => session.compaction.beforeTree(event)));
  pi.on("session_tree", guarded((session) => session.atTree()));
}
