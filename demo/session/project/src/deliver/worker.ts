import { backoff } from "../backoff.ts";
import type { Log } from "../log.ts";
import type { Queue, Delivery } from "../queue.ts";
import type { Store, StoredInvoice } from "../store.ts";
import { DeliveryError } from "./peppol.ts";

export interface Channels {
  peppol(invoice: StoredInvoice): Promise<string>;
  mail(invoice: StoredInvoice): Promise<string>;
}

/** Takes deliveries from the queue one after another until it is told to stop. */
export class Worker {
  readonly #name: string;
  readonly #store: Store;
  readonly #queue: Queue;
  readonly #channels: Channels;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;

  constructor(name: string, store: Store, queue: Queue, channels: Channels, log: Log) {
    this.#name = name;
    this.#store = store;
    this.#queue = queue;
    this.#channels = channels;
    this.#log = log;
  }

  start(everyMs = 1_000): void {
    this.#timer = setInterval(() => void this.drain(), everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Delivers all that is due. Returns how many went out. */
  async drain(): Promise<number> {
    let sent = 0;
    for (let delivery = this.#queue.take(this.#name); delivery; delivery = this.#queue.take(this.#name)) {
      if (await this.#deliver(delivery)) sent++;
    }
    return sent;
  }

  async #deliver(delivery: Delivery): Promise<boolean> {
    const stored = this.#store.invoice(delivery.invoice);
    if (!stored) throw new Error(`delivery ${delivery.id} names invoice ${delivery.invoice}, which is gone`);
    try {
      const id = await this.#channels[delivery.channel](stored);
      this.#queue.done(delivery.id);
      this.#log.info("delivered", { number: stored.invoice.number, channel: delivery.channel, id });
      return true;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const transient = !(error instanceof DeliveryError) || error.transient;
      this.#queue.failed(delivery.id, message, transient ? backoff(delivery.attempts) : Number.MAX_SAFE_INTEGER);
      this.#log.warn("delivery failed", { number: stored.invoice.number, attempt: delivery.attempts, transient, message });
      return false;
    }
  }
}
