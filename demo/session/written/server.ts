import http from "node:http";
import type { Queue } from "./queue.ts";
import type { Store, StoredInvoice } from "./store.ts";

type Answer = [status: number, body: unknown];
type Handler = (url: URL, parameter: string) => Answer;

const MAX_PAGE = 200;

/** The HTTP door: health for the monitor, invoices for the bookkeeping, one button for whoever looks after deliveries. */
export function createServer(store: Store, queue: Queue): http.Server {
  const routes: [method: string, pattern: RegExp, handler: Handler][] = [
    ["GET", /^\/health$/, () => [200, { ok: true, deliveries: queue.counts() }]],
    ["GET", /^\/invoices\/unpaid$/, (url) => [200, { invoices: store.unpaid(directionOf(url)).map(shown) }]],
    ["GET", /^\/invoices$/, (url) => page(store, url)],
    ["POST", /^\/deliveries\/(\d+)\/retry$/, (_url, id) => retry(queue, Number(id))],
  ];
  return http.createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    for (const [method, pattern, handler] of routes) {
      const match = pattern.exec(url.pathname);
      if (match && method === request.method) return send(response, ...handler(url, match[1] ?? ""));
    }
    send(response, 404, { error: `no such route: ${request.method} ${url.pathname}` });
  });
}

/** A page of invoices and where the next one begins. The cursor is the last id: rows that come later do not shift pages. */
function page(store: Store, url: URL): Answer {
  const limit = Number(url.searchParams.get("limit") ?? "50");
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) return [400, { error: `limit must be a whole number from 1 to ${MAX_PAGE}` }];
  const after = Number(url.searchParams.get("after") ?? "0");
  if (!Number.isInteger(after) || after < 0) return [400, { error: "after must be the `next` of the page before" }];
  const found = store.page(directionOf(url), after, limit + 1);
  const invoices = found.slice(0, limit);
  return [200, { invoices: invoices.map(shown), next: found.length > limit ? String(invoices.at(-1)!.id) : null }];
}

/** Only what is dead can be tried again by hand: what waits comes back by itself, and what is done is done. */
function retry(queue: Queue, id: number): Answer {
  const outcome = queue.revive(id);
  if (outcome === "unknown") return [404, { error: `no delivery ${id}` }];
  if (outcome === "not dead") return [409, { error: `delivery ${id} is not dead` }];
  return [202, { id }];
}

function directionOf(url: URL): "in" | "out" {
  return url.searchParams.get("direction") === "in" ? "in" : "out";
}

function shown({ id, invoice, total }: StoredInvoice) {
  return { id, number: invoice.number, due: invoice.due, total: String(total), currency: invoice.currency };
}

function send(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(`${JSON.stringify(body)}\n`);
}
