import { backoff } from "../backoff.ts";
import type { Log } from "../log.ts";
import type { Queue, Delivery } from "../queue.ts";
import type { Store, StoredInvoice } from "../store.ts";
import { DeliveryError } from "./peppol.ts";

export interface Channels {
  peppol(invoice: StoredInvoice): Promise<string>;
  mail(invoice: StoredInvoice): Promise<string>;
}

/**
 * Takes deliveries from the queue one after another until it is told to stop.
 *
 * Never two rounds at once: a round that outlasts the interval is not overtaken by the next. `stop` waits for the delivery
 * in hand and for no other.
 */
export class Worker {
  readonly #name: string;
  readonly #store: Store;
  readonly #queue: Queue;
  readonly #channels: Channels;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<number> | undefined;
  #stopping = false;

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

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping = true;
    await this.#round;
  }

  /** Delivers all that is due. Returns how many went out. */
  drain(): Promise<number> {
    this.#round ??= this.#run().finally(() => (this.#round = undefined));
    return this.#round;
  }

  async #run(): Promise<number> {
    let sent = 0;
    while (!this.#stopping) {
      const delivery = this.#queue.take(this.#name);
      if (!delivery) break;
      if (await this.#deliver(delivery)) sent++;
    }
    return sent;
  }

  async #deliver(delivery: Delivery): Promise<boolean> {
    const stored = this.#store.invoice(delivery.invoice);
    if (!stored) throw new Error(`delivery ${delivery.id} names invoice ${delivery.invoice}, which is gone`);
    try {
      const id = await this.#channels[delivery.channel](stored);
      const ours = this.#queue.done(delivery.id, this.#name);
      if (!ours) this.#log.warn("delivered after the lease ran out", { number: stored.invoice.number, id });
      else this.#log.info("delivered", { number: stored.invoice.number, channel: delivery.channel, id });
      return ours;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const transient = !(error instanceof DeliveryError) || error.transient;
      const atLeast = error instanceof DeliveryError ? error.retryAfterMs : undefined;
      this.#queue.failed(delivery.id, this.#name, message, transient ? backoff(delivery.attempts, Math.random, atLeast) : Number.MAX_SAFE_INTEGER);
      this.#log.warn("delivery failed", { number: stored.invoice.number, attempt: delivery.attempts, transient, message });
      return false;
    }
  }
}
