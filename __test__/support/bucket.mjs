/**
 * A bucket: a small server that speaks what a sync uses of S3's protocol, checks each signature as S3 does, and fails as a test wants.
 *
 * The signature is computed here once more, after AWS's description of presigned requests, and not with the product's code.
 */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";

/** @typedef {import("node:test").TestContext} TestContext */
/** @typedef {import("node:http").IncomingMessage} Request */
/** @typedef {import("node:http").ServerResponse} Response */

/** @typedef {"list" | "get" | "put" | "delete"} Kind */

/**
 * What happens to requests instead of an answer.
 * @typedef {object} Trouble
 * @property {Kind} [of] only these
 * @property {number} [times] then everything is well again; without it, it stays
 * @property {number} [status] an error of the server, with an empty body unless there is a code
 * @property {string} [code] of S3's errors
 * @property {boolean} [cuts] the connection breaks in the middle of a body: of the request's, or of the answer's
 * @property {boolean} [hangs] no answer comes
 */

const NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";
const REGION = "eu-test-1";
const KEYS = { id: "AKIDTEST", secret: "not/a+secret" };
/** How far the clocks of both sides may be apart. */
const SKEW_MS = 15 * 60_000;

/**
 * Starts one; it ends with the test.
 * @param {TestContext} t
 * @param {{ pageSize?: number, name?: string }} [options] `pageSize`: names in one page of a list
 */
export async function aBucket(t, options) {
  const bucket = new Bucket(options);
  await bucket.begin();
  t.after(() => bucket.end());
  return bucket;
}

export class Bucket {
  /** @type {Map<string, Buffer>} */
  objects = new Map();
  /** Every request that had an answer or a trouble. @type {{ kind: Kind, key: string, status: number | undefined }[]} */
  requests = [];
  #url = "";
  #server;
  #options;
  /** @type {Trouble | undefined} */
  #trouble;
  /** Requests that wait in vain now. @type {Set<Response>} */
  #hanging = new Set();

  /** @param {{ pageSize?: number, name?: string }} [options] */
  constructor({ pageSize = 1000, name = "histories" } = {}) {
    this.#options = { pageSize, name };
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async begin() {
    await /** @type {Promise<void>} */ (new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve)));
    const { port } = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    this.#url = `http://127.0.0.1:${port}`;
  }

  async end() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** What a user exports to reach it. */
  get env() {
    return { AWS_ACCESS_KEY_ID: KEYS.id, AWS_SECRET_ACCESS_KEY: KEYS.secret, AWS_REGION: REGION, AWS_ENDPOINT_URL: this.#url };
  }

  /** The target with a prefix. @param {string} [prefix] */
  target(prefix = "") {
    return `s3://${this.#options.name}${prefix && `/${prefix}`}`;
  }

  /** @param {Trouble} trouble that begins now, and ends an earlier one */
  disturb(trouble) {
    this.#trouble = trouble;
  }

  /** Ends the trouble. */
  calm() {
    this.#trouble = undefined;
  }

  /** How many requests hang now: whoever sent them has not gone away. */
  get hanging() {
    return this.#hanging.size;
  }

  /**
   * Counts the requests during some work.
   * @param {() => Promise<unknown>} work
   * @returns {Promise<Record<Kind, number>>}
   */
  async counting(work) {
    const before = this.requests.length;
    await work();
    const counts = { list: 0, get: 0, put: 0, delete: 0 };
    for (const { kind } of this.requests.slice(before)) counts[kind]++;
    return counts;
  }

  /**
   * @param {Request} request
   * @param {Response} response
   */
  async #serve(request, response) {
    const url = new URL(request.url ?? "", this.#url);
    const [, name, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    const key = rest.join("/");
    const query = parameters(url.search);
    const kind = kindOf(request.method, query, key);
    const trouble = this.#next(kind);
    const noted = { kind, key, status: /** @type {number | undefined} */ (undefined) };
    this.requests.push(noted);
    if (trouble?.hangs) {
      this.#hanging.add(response);
      response.on("close", () => this.#hanging.delete(response));
      return;
    }
    if (trouble?.cuts && kind === "put") {
      // Most of the body may be on its way.
      request.once("data", () => request.socket.destroy());
      return;
    }
    const body = await bodyOf(request).catch(() => undefined);
    if (!body) return;
    /** @param {number} status @param {string | Buffer} [content] @param {Record<string, string>} [headers] */
    const answer = (status, content = "", headers = {}) => {
      noted.status = status;
      response.writeHead(status, { "content-length": Buffer.byteLength(content), ...headers });
      if (trouble?.cuts) return response.write(Buffer.from(content).subarray(0, Buffer.byteLength(content) / 2), () => request.socket.destroy());
      response.end(content);
    };
    const refuse = (/** @type {number} */ status, /** @type {string} */ code, /** @type {string} */ message) => answer(status, `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message><RequestId>1</RequestId></Error>`, { "content-type": "application/xml" });
    const wrong = whyRefused(request, url, query);
    if (wrong) return refuse(403, wrong, "The signature does not match.");
    if (trouble?.status) return trouble.code ? refuse(trouble.status, trouble.code, `It is ${trouble.code}.`) : answer(trouble.status);
    if (name !== this.#options.name) return refuse(404, "NoSuchBucket", "The specified bucket does not exist");
    const known = this.objects.get(key);
    if (kind === "list") return answer(200, this.#list(query), { "content-type": "application/xml" });
    if (kind === "get") return known ? answer(200, known) : refuse(404, "NoSuchKey", "The specified key does not exist.");
    if (kind === "delete") {
      this.objects.delete(key);
      return answer(204);
    }
    if (known && request.headers["if-none-match"] === "*") return refuse(412, "PreconditionFailed", "At least one of the preconditions you specified did not hold.");
    this.objects.set(key, body);
    answer(200);
  }

  /** @param {Kind} kind */
  #next(kind) {
    const trouble = this.#trouble;
    if (!trouble || (trouble.of && trouble.of !== kind)) return undefined;
    if (trouble.times !== undefined && --trouble.times <= 0) this.#trouble = undefined;
    return trouble;
  }

  /** A page of names, or of what they begin with up to the delimiter. @param {Map<string, string>} query */
  #list(query) {
    const [prefix, delimiter, token] = [query.get("prefix") ?? "", query.get("delimiter"), query.get("continuation-token")];
    // A token is not the last name: it is the server's own.
    const after = token === undefined ? (query.get("start-after") ?? "") : Buffer.from(token, "base64").toString();
    const shown = (/** @type {string} */ key) => {
      const end = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
      return delimiter && end >= 0 ? key.slice(0, end + delimiter.length) : key;
    };
    const all = [...new Set([...this.objects.keys()].filter((key) => key.startsWith(prefix)).map(shown))].filter((key) => key > after).sort();
    const page = all.slice(0, this.#options.pageSize);
    const encoded = query.get("encoding-type") === "url" ? encode : (/** @type {string} */ text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    const lines = page.map((key) => {
      const bytes = this.objects.get(key);
      if (!bytes) return `<CommonPrefixes><Prefix>${encoded(key)}</Prefix></CommonPrefixes>`;
      return `<Contents><Key>${encoded(key)}</Key><LastModified>2026-11-02T08:00:00.000Z</LastModified><ETag>&quot;${createHash("md5").update(bytes).digest("hex")}&quot;</ETag><Size>${bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
    });
    const isCut = all.length > page.length;
    const next = isCut ? `<NextContinuationToken>${Buffer.from(/** @type {string} */ (page.at(-1))).toString("base64")}</NextContinuationToken>` : "";
    return `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="${NAMESPACE}"><Name>${this.#options.name}</Name><Prefix>${encoded(prefix)}</Prefix><EncodingType>url</EncodingType><KeyCount>${page.length}</KeyCount><MaxKeys>${this.#options.pageSize}</MaxKeys><IsTruncated>${isCut}</IsTruncated>${next}${lines.join("")}</ListBucketResult>`;
  }
}

/**
 * @param {string | undefined} method
 * @param {Map<string, string>} query
 * @param {string} key
 * @returns {Kind}
 */
function kindOf(method, query, key) {
  if (method === "GET" && key === "" && query.has("list-type")) return "list";
  const kinds = /** @type {const} */ ({ GET: "get", PUT: "put", DELETE: "delete" });
  const kind = kinds[/** @type {keyof typeof kinds} */ (method)];
  assert.ok(kind && key, `a sync sends no ${method} of "${key}"`);
  return kind;
}

/** The parameters of a query; a plus is a plus, as in a signature. @param {string} search @returns {Map<string, string>} */
const parameters = (search) => new Map(search.slice(1).split("&").filter(Boolean).map((pair) => /** @type {[string, string]} */ (pair.split("=").map(decodeURIComponent))));

/** As AWS encodes the parts of a signed request: all but letters, digits and `-._~`. @param {string} text */
const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * Why a presigned request is refused: S3's code. Undefined if its signature, credentials and time are right.
 * @param {Request} request
 * @param {URL} url
 * @param {Map<string, string>} query
 */
function whyRefused({ method, headers }, url, query) {
  const date = query.get("X-Amz-Date") ?? "";
  const day = date.slice(0, 8);
  const scope = `${day}/${REGION}/s3/aws4_request`;
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  const expires = Number(query.get("X-Amz-Expires"));
  if (query.get("X-Amz-Credential") !== `${KEYS.id}/${scope}`) return "InvalidAccessKeyId";
  if (query.get("X-Amz-Algorithm") !== "AWS4-HMAC-SHA256" || !(expires > 0 && expires <= 604_800)) return "AuthorizationQueryParametersError";
  if (!(Math.abs(at - Date.now()) < SKEW_MS)) return "RequestTimeTooSkewed";
  const signedHeaders = query.get("X-Amz-SignedHeaders") ?? "";
  if (!signedHeaders.split(";").includes("host")) return "AccessDenied";
  const path = url.pathname.split("/").map((part) => encode(decodeURIComponent(part))).join("/");
  const signed = [...query].filter(([name]) => name !== "X-Amz-Signature").map(([name, value]) => `${encode(name)}=${encode(value)}`).sort();
  const lines = signedHeaders.split(";").map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
  const canonical = [method, path, signed.join("&"), lines.join(""), signedHeaders, "UNSIGNED-PAYLOAD"].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", date, scope, createHash("sha256").update(canonical).digest("hex")].join("\n");
  const hmac = (/** @type {string | Buffer} */ key, /** @type {string} */ text) => createHmac("sha256", key).update(text).digest();
  const key = [day, REGION, "s3", "aws4_request"].reduce(/** @type {(key: string | Buffer, part: string) => Buffer} */ (hmac), `AWS4${KEYS.secret}`);
  return hmac(/** @type {Buffer} */ (/** @type {unknown} */ (key)), toSign).toString("hex") === query.get("X-Amz-Signature") ? undefined : "SignatureDoesNotMatch";
}

/** @param {Request} request */
async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
