/**
 * An npm registry on loopback: it keeps and serves published packages while the test runs. It has the parts of npm's protocol for
 * installing and publishing.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { json } from "node:stream/consumers";
import { integrityOf } from "../../scripts/tarballs.mjs";

/**
 * Starts an empty registry, which stops after the test.
 * @param {import("node:test").TestContext} t
 */
export async function aRegistry(t) {
  const registry = new Registry();
  await registry.listen();
  t.after(() => registry.close());
  return registry;
}

class Registry {
  /** The packages, by name and version. @type {Map<string, Map<string, { manifest: Record<string, any>, bytes: Buffer }>>} */
  #packages = new Map();
  /** Names and versions in the order they were published. @type {string[]} */
  published = [];
  #server = http.createServer((request, response) => {
    this.#answer(request).then(
      ({ status = 200, body }) => response.writeHead(status, { connection: "close" }).end(body),
      (error) => response.writeHead(500).end(String(error)),
    );
  });

  get url() {
    const { port } = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${port}/`;
  }

  listen() {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve(undefined)));
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** Adds packed packages. @param {...import("../../scripts/pack.mjs").Packed} packed */
  add(...packed) {
    for (const { manifest, tarball } of packed) this.#keep(manifest, readFileSync(tarball));
  }

  /**
   * @param {Record<string, any>} manifest
   * @param {Buffer} bytes
   */
  #keep(manifest, bytes) {
    const versions = this.#packages.get(manifest.name) ?? new Map();
    this.#packages.set(manifest.name, versions.set(manifest.version, { manifest, bytes }));
    this.published.push(`${manifest.name}@${manifest.version}`);
  }

  /**
   * @param {http.IncomingMessage} request
   * @returns {Promise<{ status?: number, body: string | Buffer }>}
   */
  async #answer(request) {
    const [name = "", , file] = decodeURIComponent(request.url ?? "").slice(1).split("/");
    if (request.method === "PUT") return this.#take(await json(request));
    const versions = this.#packages.get(name);
    if (!versions) return { status: 404, body: JSON.stringify({ error: "Not found" }) };
    if (!file) return { body: JSON.stringify(this.#document(name, versions)) };
    const asked = [...versions.values()].find(({ manifest }) => tarballOf(manifest) === file);
    return asked ? { body: asked.bytes } : { status: 404, body: "" };
  }

  /** Takes the request of `npm publish`: the manifest, and the tarball as text. @param {any} document */
  #take({ versions, _attachments: attachments }) {
    const [manifest] = /** @type {any[]} */ (Object.values(versions));
    const [tarball] = /** @type {any[]} */ (Object.values(attachments));
    this.#keep(manifest, Buffer.from(tarball.data, "base64"));
    return { status: 201, body: "{}" };
  }

  /**
   * @param {string} name
   * @param {Map<string, { manifest: Record<string, any>, bytes: Buffer }>} versions
   */
  #document(name, versions) {
    const described = [...versions].map(([version, { manifest, bytes }]) => {
      const shasum = createHash("sha1").update(bytes).digest("hex");
      return [version, { ...manifest, dist: { tarball: `${this.url}${name}/-/${tarballOf(manifest)}`, integrity: integrityOf(bytes), shasum } }];
    });
    return { name, "dist-tags": { latest: [...versions.keys()].at(-1) }, versions: Object.fromEntries(described) };
  }
}

/** @param {Record<string, any>} manifest */
const tarballOf = ({ name, version }) => `${name}-${version}.tgz`;
