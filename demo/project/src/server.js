/** HTTP: `node src/server.js` listens on :8080. */
import http from "node:http";
import { pathToFileURL } from "node:url";
import { reserve } from "./cart.js";
import { open } from "./db.js";
import { list, place } from "./orders.js";
import { Payments } from "./payments.js";
import { handle, settle } from "./webhook.js";

export function serve({ db, payments }) {
  const routes = {
    "POST /cart": ({ cart, product, quantity }) => (reserve(db, cart, product, quantity) ? [201, {}] : [409, { error: "sold out" }]),
    "POST /checkout": ({ cart, ...customer }) => [201, { order: place(db, cart, customer) }],
    "POST /webhooks/payments": (event) => [200, { result: handle(db, event) }],
    "GET /admin/orders": () => [200, list(db)],
    "GET /health": () => [200, { ok: true }],
  };
  return http.createServer(async (request, response) => {
    const [status, body] = await answer(request).catch((error) => [500, { error: error.message }]);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });

  async function answer(request) {
    const route = routes[`${request.method} ${request.url}`];
    if (!route) return [404, { error: "no such route" }];
    const body = (await request.toArray()).join("");
    if (request.url === "/webhooks/payments" && !payments.isSigned(body, request.headers["x-signature"])) return [401, { error: "bad signature" }];
    return route(body ? JSON.parse(body) : {});
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const db = open(process.env.SHOP_DB ?? "shop.db");
  const payments = new Payments({ url: process.env.PAYMENTS_URL, secrets: process.env.WEBHOOK_SECRETS.split(",") });
  serve({ db, payments }).listen(8080);
  setInterval(() => settle(db, payments).catch(console.error), 1000);
}
