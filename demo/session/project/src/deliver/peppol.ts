import type { StoredInvoice } from "../store.ts";

export interface Gateway {
  readonly url: string;
  readonly token: string;
  readonly fetch?: typeof fetch;
}

export class DeliveryError extends Error {
  /** Whether another attempt can help. */
  readonly transient: boolean;

  constructor(message: string, transient: boolean) {
    super(message);
    this.name = "DeliveryError";
    this.transient = transient;
  }
}

/** Sends one invoice through the gateway. Returns the gateway's message id. */
export async function sendPeppol(stored: StoredInvoice, gateway: Gateway): Promise<string> {
  const receiver = stored.invoice.buyer.peppol;
  if (!receiver) throw new DeliveryError(`${stored.invoice.buyer.name} has no Peppol address`, false);
  const response = await (gateway.fetch ?? fetch)(`${gateway.url}/v2/documents`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.token}`, "content-type": "application/json" },
    body: JSON.stringify({ receiver, number: stored.invoice.number, total: String(stored.total) }),
  });
  if (response.ok) return ((await response.json()) as { id: string }).id;
  const text = (await response.text()).slice(0, 300);
  throw new DeliveryError(`gateway said ${response.status}: ${text}`, response.status >= 500 || response.status === 429);
}
