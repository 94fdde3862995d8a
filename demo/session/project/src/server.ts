import http from "node:http";
import type { Queue } from "./queue.ts";
import type { Store } from "./store.ts";

/** The HTTP door: health for the monitor, invoices for the bookkeeping. Reads only. */
export function createServer(store: Store, queue: Queue): http.Server {
  return http.createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const route = `${request.method} ${url.pathname}`;
    if (route === "GET /health") return send(response, 200, { ok: true, deliveries: queue.counts() });
    if (route === "GET /invoices/unpaid") {
      const direction = url.searchParams.get("direction") === "in" ? "in" : "out";
      const invoices = store.unpaid(direction).map(({ id, invoice, total }) => ({
        id,
        number: invoice.number,
        due: invoice.due,
        total: String(total),
        currency: invoice.currency,
      }));
      return send(response, 200, { invoices });
    }
    send(response, 404, { error: `no such route: ${route}` });
  });
}

function send(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(body)}\n`);
}
