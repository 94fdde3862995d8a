/**
 * Three wire formats of model providers, on the server's side: OpenAI chat completions, OpenAI Responses and Anthropic messages.
 *
 * `read` converts a request body into a common form, so that a script need not know the format; `whole` and `stream` convert a reply back.
 * There is no HTTP here, and no state.
 */
import { itemsOf } from "./judge.mjs";

/** @typedef {"openai" | "responses" | "anthropic"} Api */

/**
 * @typedef {object} ToolCall
 * @property {string} name
 * @property {Record<string, unknown>} arguments
 * @property {string} [id] made by the server if the script gives none
 */

/**
 * A message of a request, in the common form. A tool result has the role `tool`.
 * @typedef {object} Message
 * @property {"user" | "assistant" | "tool"} role
 * @property {string} text all text blocks, joined by newlines
 * @property {ToolCall[]} toolCalls of an assistant message
 * @property {string} [toolCallId] of a tool result
 * @property {number} images the number of its image blocks
 */

/**
 * @typedef {object} Conversation
 * @property {string} system
 * @property {Message[]} messages
 * @property {string[]} toolNames
 * @property {boolean} streaming
 */

/**
 * @typedef {object} Usage
 * @property {number} input tokens read, without those from the cache
 * @property {number} output
 * @property {number} [cacheRead]
 * @property {number} [cacheWrite]
 * @property {number} [reasoning] the part of the output that is reasoning
 */

/**
 * A complete successful reply: the server has filled in ids and usage.
 * @typedef {object} Answer
 * @property {string} id
 * @property {string} model
 * @property {string} text
 * @property {string} thinking
 * @property {string} seal that binds the thinking to what stands before it
 * @property {object[]} transformations the reasoning that the model did not see
 * @property {Required<ToolCall>[]} toolCalls
 * @property {Usage} usage
 * @property {string} [refusal] the model's text when it refuses; one format has a field for it, the other a stop reason
 * @property {"stop" | "length" | "toolUse" | "filtered"} stopReason
 */

/**
 * @typedef {object} Wire
 * @property {string} path of requests in this format, after the version
 * @property {(body: any) => Conversation} read
 * @property {(answer: Answer, body: any) => object} whole the reply as one JSON object
 * @property {(answer: Answer, body: any) => Iterable<string>} stream the reply as server-sent events
 * @property {(status: number, message: string, code?: string) => object} error `code`: that clients recognize it by
 */

/** Pieces of this many characters, so that clients must really assemble the stream. */
const PIECE = 160;

/** Longer texts come in few pieces: a client may read and pass on the whole text with each. */
const HUGE = 100_000;
const PIECES_OF_HUGE = 10;

/** What the formats call blocks of text, and of images. */
const TEXTS = ["text", "input_text", "output_text"];
const IMAGES = ["image", "image_url", "input_image"];

/** @type {Record<Api, Wire>} */
export const wires = {
  openai: { path: "/chat/completions", read: readOpenAi, whole: wholeOpenAi, stream: streamOpenAi, error: openAiError },
  responses: { path: "/responses", read: readResponses, whole: wholeResponses, stream: streamResponses, error: openAiError },
  anthropic: { path: "/messages", read: readAnthropic, whole: wholeAnthropic, stream: streamAnthropic, error: anthropicError },
};

// ── OpenAI chat completions ──────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {any} body
 * @returns {Conversation}
 */
function readOpenAi(body) {
  const all = /** @type {any[]} */ (body.messages ?? []);
  const isSystem = (/** @type {any} */ message) => message.role === "system" || message.role === "developer";
  return {
    system: all.filter(isSystem).map((message) => textOf(message.content)).join("\n"),
    messages: all.filter((message) => !isSystem(message)).map(openAiMessage),
    toolNames: (body.tools ?? []).map((/** @type {any} */ tool) => tool.function?.name ?? tool.name),
    streaming: body.stream === true,
  };
}

/**
 * @param {any} message
 * @returns {Message}
 */
function openAiMessage(message) {
  const toolCalls = (message.tool_calls ?? []).map((/** @type {any} */ call) => ({
    id: call.id,
    name: call.function.name,
    arguments: JSON.parse(call.function.arguments || "{}"),
  }));
  return { role: message.role, text: textOf(message.content), toolCalls, toolCallId: message.tool_call_id, images: imagesIn(message.content) };
}

/** @type {Record<Answer["stopReason"], string>} */
const openAiReasons = { stop: "stop", length: "length", toolUse: "tool_calls", filtered: "content_filter" };

/** @param {Answer} answer */
function wholeOpenAi(answer) {
  const message = {
    role: "assistant",
    content: answer.text || null,
    ...(answer.refusal && { refusal: answer.refusal }),
    ...(answer.thinking && { reasoning_content: answer.thinking }),
    ...(answer.toolCalls.length > 0 && { tool_calls: answer.toolCalls.map(openAiCall) }),
  };
  return {
    ...openAiHead(answer, "chat.completion"),
    choices: [{ index: 0, message, finish_reason: openAiReasons[answer.stopReason] }],
    usage: openAiUsage(answer.usage),
  };
}

/**
 * @param {Answer} answer
 * @param {any} body
 */
function* streamOpenAi(answer, body) {
  const head = openAiHead(answer, "chat.completion.chunk");
  const chunk = (/** @type {object} */ delta, /** @type {string | null} */ finish = null) =>
    event({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] });

  yield chunk({ role: "assistant", content: "" });
  for (const piece of pieces(answer.thinking)) yield chunk({ reasoning_content: piece });
  for (const piece of pieces(answer.text)) yield chunk({ content: piece });
  for (const piece of pieces(answer.refusal ?? "")) yield chunk({ refusal: piece });
  for (const [index, call] of answer.toolCalls.map(openAiCall).entries()) {
    const { arguments: json, name } = call.function;
    yield chunk({ tool_calls: [{ index, id: call.id, type: "function", function: { name, arguments: "" } }] });
    for (const piece of pieces(json)) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
  }
  yield chunk({}, openAiReasons[answer.stopReason]);
  if (body.stream_options?.include_usage) yield event({ ...head, choices: [], usage: openAiUsage(answer.usage) });
  yield "data: [DONE]\n\n";
}

/**
 * @param {Answer} answer
 * @param {string} object
 */
const openAiHead = (answer, object) => ({ id: answer.id, object, created: Math.floor(Date.now() / 1000), model: answer.model });

/** @param {Required<ToolCall>} call */
const openAiCall = (call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.arguments) } });

/** @param {Usage} usage */
function openAiUsage({ input, output, cacheRead = 0, cacheWrite = 0 }) {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}

/**
 * @param {number} status
 * @param {string} message
 * @param {string} [code]
 */
function openAiError(status, message, code) {
  return { error: { message, type: status >= 500 ? "server_error" : "invalid_request_error", code: code ?? status } };
}

// ── Anthropic messages ───────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {any} body
 * @returns {Conversation}
 */
function readAnthropic(body) {
  return {
    system: textOf(body.system),
    messages: (body.messages ?? []).flatMap(anthropicMessages),
    toolNames: (body.tools ?? []).map((/** @type {any} */ tool) => tool.name),
    streaming: body.stream === true,
  };
}

/**
 * Here, tool results are inside user messages: each becomes a separate message, before the rest of the text.
 * @param {any} message
 * @returns {Message[]}
 */
function anthropicMessages(message) {
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const ofType = (/** @type {string} */ type) => blocks.filter((/** @type {any} */ block) => block.type === type);
  const toolAnswers = ofType("tool_result").map((/** @type {any} */ block) => ({
    role: /** @type {const} */ ("tool"),
    text: textOf(block.content),
    toolCalls: [],
    toolCallId: block.tool_use_id,
    images: imagesIn(block.content),
  }));
  const toolCalls = ofType("tool_use").map((/** @type {any} */ block) => ({ id: block.id, name: block.name, arguments: block.input }));
  const own = { role: message.role, text: textOf(blocks), toolCalls, images: imagesIn(blocks) };
  const saysSomething = own.text !== "" || toolCalls.length > 0 || own.images > 0;
  return saysSomething ? [...toolAnswers, own] : toolAnswers;
}

/** @type {Record<Answer["stopReason"], string>} */
const anthropicReasons = { stop: "end_turn", length: "max_tokens", toolUse: "tool_use", filtered: "refusal" };

/** The stop reason of an answer. @param {Answer} answer */
const anthropicEnd = ({ refusal, stopReason }) => ({
  stop_reason: refusal ? "refusal" : anthropicReasons[stopReason],
  ...(refusal && { stop_details: { type: "refusal", explanation: refusal } }),
});

/** @param {Answer} answer */
function wholeAnthropic(answer) {
  return {
    ...anthropicHead(answer),
    content: anthropicContent(answer),
    ...anthropicEnd(answer),
    usage: anthropicUsage(answer.usage),
    ...dropped(answer),
  };
}

/** @param {Answer} answer */
function* streamAnthropic(answer) {
  const named = (/** @type {any} */ data) => `event: ${data.type}\n${event(data)}`;
  const usage = anthropicUsage(answer.usage);

  yield named({ type: "message_start", message: { ...anthropicHead(answer), content: [], usage: { ...usage, output_tokens: 0 } } });
  for (const [index, { empty, deltas }] of anthropicBlocks(answer).entries()) {
    yield named({ type: "content_block_start", index, content_block: empty });
    for (const delta of deltas) yield named({ type: "content_block_delta", index, delta });
    yield named({ type: "content_block_stop", index });
  }
  yield named({ type: "message_delta", delta: { ...anthropicEnd(answer), stop_sequence: null }, usage, ...dropped(answer) });
  yield named({ type: "message_stop" });
}

/** The answer's content, as a later request returns it. @param {Answer} answer */
export const anthropicContent = (answer) => anthropicBlocks(answer).map(({ block }) => block);

/** @param {Answer} answer */
const dropped = ({ transformations }) => (transformations.length > 0 ? { input_transformations: transformations } : {});

/**
 * The content blocks of an answer: complete, as they start in a stream, and the pieces that follow.
 * @param {Answer} answer
 */
function anthropicBlocks(answer) {
  /** @type {{ block: object, empty: object, deltas: object[] }[]} */
  const blocks = [];
  if (answer.thinking) {
    const { seal: signature } = answer;
    blocks.push({
      block: { type: "thinking", thinking: answer.thinking, signature },
      empty: { type: "thinking", thinking: "", signature: "" },
      deltas: [...pieces(answer.thinking).map((thinking) => ({ type: "thinking_delta", thinking })), { type: "signature_delta", signature }],
    });
  }
  if (answer.text) {
    blocks.push({
      block: { type: "text", text: answer.text },
      empty: { type: "text", text: "" },
      deltas: pieces(answer.text).map((text) => ({ type: "text_delta", text })),
    });
  }
  for (const { id, name, arguments: input } of answer.toolCalls) {
    blocks.push({
      block: { type: "tool_use", id, name, input },
      empty: { type: "tool_use", id, name, input: {} },
      deltas: pieces(JSON.stringify(input)).map((partial_json) => ({ type: "input_json_delta", partial_json })),
    });
  }
  return blocks;
}

/** @param {Answer} answer */
const anthropicHead = (answer) => ({
  id: answer.id,
  type: "message",
  role: "assistant",
  model: answer.model,
  stop_reason: /** @type {string | null} */ (null),
  stop_sequence: null,
});

/** @param {Usage} usage */
const anthropicUsage = ({ input, output, cacheRead = 0, cacheWrite = 0, reasoning }) => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: cacheRead,
  cache_creation_input_tokens: cacheWrite,
  ...(reasoning !== undefined && { output_tokens_details: { thinking_tokens: reasoning } }),
});

/**
 * @param {number} status
 * @param {string} message
 * @param {string} [code]
 */
function anthropicError(status, message, code) {
  const named = { 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error" }[status];
  const type = named ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message, ...(code && { details: { error_code: code } }) } };
}

// ── OpenAI Responses ─────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * @param {any} body
 * @returns {Conversation}
 */
function readResponses(body) {
  const items = itemsOf(body.input);
  const isSystem = (/** @type {any} */ { role }) => role === "system" || role === "developer";
  return {
    system: [body.instructions, ...items.filter(isSystem).map(({ content }) => textOf(content))].filter(Boolean).join("\n"),
    messages: items.filter((item) => !isSystem(item)).reduce(withItem, []),
    // Newer models get their tools as an item of the input.
    toolNames: [...(body.tools ?? []), ...items.flatMap(({ tools }) => tools ?? [])].map(({ name }) => name),
    streaming: body.stream === true,
  };
}

/**
 * Here, an answer's text and each of its tool calls are separate items: together they are one message.
 * @param {Message[]} messages
 * @param {any} item
 * @returns {Message[]}
 */
function withItem(messages, { type, role, content, name, arguments: json, call_id: id, output }) {
  const images = imagesIn(content ?? output);
  if (type === "function_call_output") return [...messages, { role: "tool", text: textOf(output), toolCalls: [], toolCallId: id, images }];
  if (role === "user") return [...messages, { role, text: textOf(content), toolCalls: [], images }];
  if (role !== "assistant" && type !== "function_call") return messages;
  const last = messages.at(-1);
  const answer = last?.role === "assistant" ? last : { role: /** @type {const} */ ("assistant"), text: "", toolCalls: [], images };
  const toolCalls = type === "function_call" ? [...answer.toolCalls, { id, name, arguments: JSON.parse(json || "{}") }] : answer.toolCalls;
  const text = [answer.text, textOf(content)].filter(Boolean).join("\n");
  return [...(answer === last ? messages.slice(0, -1) : messages), { ...answer, text, toolCalls }];
}

/**
 * @param {Answer} answer
 * @param {any} body
 */
function wholeResponses(answer, body) {
  const reason = { length: "max_output_tokens", filtered: "content_filter", stop: undefined, toolUse: undefined }[answer.stopReason];
  return {
    ...responsesHead(answer),
    status: reason ? "incomplete" : "completed",
    ...(reason && { incomplete_details: { reason } }),
    output: responsesItems(answer, body),
    usage: responsesUsage(answer.usage),
    ...dropped(answer),
  };
}

/**
 * @param {Answer} answer
 * @param {any} body
 */
function* streamResponses(answer, body) {
  let number = 0;
  const named = (/** @type {string} */ type, /** @type {object} */ data) => `event: ${type}\n${event({ type, sequence_number: number++, ...data })}`;
  const end = wholeResponses(answer, body);
  yield named("response.created", { response: { ...responsesHead(answer), status: "in_progress", output: [] } });
  for (const [output_index, item] of responsesItems(answer, body).entries()) {
    const at = { output_index, item_id: item.id };
    const part = { type: "output_text", text: "", annotations: [] };
    yield named("response.output_item.added", { output_index, item: { ...item, ...emptied[item.type], status: "in_progress" } });
    if (item.type === "message") yield named("response.content_part.added", { ...at, content_index: 0, part });
    for (const delta of item.type === "message" ? pieces(textOfItem(item)) : []) yield named("response.output_text.delta", { ...at, content_index: 0, delta });
    for (const delta of item.type === "function_call" ? pieces(item.arguments) : []) yield named("response.function_call_arguments.delta", { ...at, delta });
    if (item.type === "function_call") yield named("response.function_call_arguments.done", { ...at, arguments: item.arguments });
    yield named("response.output_item.done", { output_index, item });
  }
  yield named(`response.${end.status}`, { response: end });
}

/** What an item lacks when it begins in a stream. @type {Record<string, object>} */
const emptied = { message: { content: [] }, function_call: { arguments: "" }, reasoning: { summary: [] } };

/** @param {any} item */
const textOfItem = ({ content: [{ text, refusal }] }) => text ?? refusal;

/**
 * @param {Answer} answer
 * @param {any} body
 * @returns {any[]}
 */
function responsesItems(answer, body) {
  const summary = [{ type: "summary_text", text: answer.thinking }];
  const isSealed = body.include?.includes("reasoning.encrypted_content");
  const content = answer.refusal ? { type: "refusal", refusal: answer.refusal } : { type: "output_text", text: answer.text, annotations: [] };
  return [
    ...(answer.thinking ? [{ type: "reasoning", id: `rs_${answer.id}`, summary, ...(isSealed && { encrypted_content: answer.seal }) }] : []),
    ...(answer.text || answer.refusal ? [{ type: "message", id: `msg_${answer.id}`, role: "assistant", status: "completed", content: [content] }] : []),
    ...answer.toolCalls.map((call, at) => ({ type: "function_call", id: `fc_${answer.id}_${at}`, call_id: call.id, name: call.name, arguments: JSON.stringify(call.arguments), status: "completed" })),
  ];
}

/** @param {Answer} answer */
const responsesHead = ({ id, model }) => ({ id: `resp_${id}`, object: "response", created_at: Math.floor(Date.now() / 1000), model });

/** @param {Usage} usage */
function responsesUsage({ input, output, cacheRead = 0, cacheWrite = 0, reasoning = 0 }) {
  const all = input + cacheRead + cacheWrite;
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: all + output,
  };
}

// ── All ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** @param {unknown} data */
const event = (data) => `data: ${JSON.stringify(data)}\n\n`;

/**
 * Splits a text into pieces, never inside a character.
 * @param {string} text
 */
function pieces(text) {
  const characters = [...text];
  const length = characters.length > HUGE ? Math.ceil(characters.length / PIECES_OF_HUGE) : PIECE;
  const result = [];
  for (let start = 0; start < characters.length; start += length) result.push(characters.slice(start, start + length).join(""));
  return result;
}

/**
 * The text of a message's content, which all formats write as a string or as blocks.
 * @param {any} content
 * @returns {string}
 */
function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.filter(({ type }) => TEXTS.includes(type)).map((block) => block.text).join("\n");
}

/**
 * @param {any} content
 * @returns {number}
 */
function imagesIn(content) {
  if (!Array.isArray(content)) return 0;
  return content.filter(({ type }) => IMAGES.includes(type)).length;
}
