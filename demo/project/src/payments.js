/** The payment provider: captures money that a customer has authorized, and says whether an event is really the provider's. */
import { createHmac, timingSafeEqual } from "node:crypto";

export class Payments {
  constructor({ url, secrets, fetch = globalThis.fetch }) {
    Object.assign(this, { url, secrets, fetch });
  }

  /** Captures an order's money. The key makes it safe to try again: its second request is answered with the result of the first one. */
  async capture(order, cents, attempt = 1) {
    const response = await this.fetch(`${this.url}/captures`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": `capture-${order}` },
      body: JSON.stringify({ order, amount: cents }),
    });
    if (response.ok) return response.json();
    if (response.status >= 500 && attempt < 3) return this.capture(order, cents, attempt + 1);
    throw new Error(`capture of order ${order}: ${response.status}`);
  }

  /** Whether one of our secrets has signed this body. While a secret is replaced there are two. */
  isSigned(body, signature = "") {
    const given = Buffer.from(signature, "hex");
    return this.secrets.some((secret) => {
      const own = createHmac("sha256", secret).update(body).digest();
      return own.length === given.length && timingSafeEqual(own, given);
    });
  }
}
