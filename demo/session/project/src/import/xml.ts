/**
 * A pull parser for the one XML dialect we receive: elements, text, attributes, comments. No DTD, no namespaces.
 */
export type Token =
  | { kind: "open"; name: string; attributes: Record<string, string>; line: number }
  | { kind: "text"; text: string; line: number }
  | { kind: "close"; name: string; line: number };

export class XmlError extends Error {
  readonly line: number;

  constructor(message: string, line: number) {
    super(`${message} at line ${line}`);
    this.name = "XmlError";
    this.line = line;
  }
}

export function* tokens(text: string): Generator<Token> {
  const pattern = /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<\/([\w.-]+)\s*>|<([\w.-]+)((?:\s+[\w.-]+="[^"]*")*)\s*(\/?)>|([^<]+)/g;
  let line = 1;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index !== at) throw new XmlError(`unexpected ${JSON.stringify(text.slice(at, at + 12))}`, line);
    at = match.index + match[0].length;
    const [, close, open, attributes = "", selfClosing, content] = match;
    if (close) yield { kind: "close", name: close, line };
    if (open) {
      yield { kind: "open", name: open, attributes: attributesOf(attributes), line };
      if (selfClosing) yield { kind: "close", name: open, line };
    }
    if (content && content.trim() !== "") yield { kind: "text", text: unescape(content), line };
    line += match[0].split("\n").length - 1;
  }
  if (at !== text.length) throw new XmlError(`unexpected ${JSON.stringify(text.slice(at, at + 12))}`, line);
}

export interface Element {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: Element[];
  text: string;
  readonly line: number;
}

/** The whole document as a tree: partners' files are small. */
export function parseXml(text: string): Element {
  const root: Element = { name: "", attributes: {}, children: [], text: "", line: 1 };
  const open: Element[] = [root];
  for (const token of tokens(text)) {
    const parent = open.at(-1)!;
    if (token.kind === "text") parent.text += token.text;
    if (token.kind === "open") {
      const element: Element = { name: token.name, attributes: token.attributes, children: [], text: "", line: token.line };
      parent.children.push(element);
      open.push(element);
    }
    if (token.kind === "close") {
      if (parent.name !== token.name) throw new XmlError(`unexpected closing tag </${token.name}> (expected </${parent.name}>)`, token.line);
      open.pop();
    }
  }
  if (open.length > 1) throw new XmlError(`<${open.at(-1)!.name}> is never closed`, open.at(-1)!.line);
  const [first] = root.children;
  if (!first) throw new XmlError("no element", 1);
  return first;
}

export function child(element: Element, name: string): Element | undefined {
  return element.children.find((one) => one.name === name);
}

export function textOf(element: Element, name: string): string {
  return child(element, name)?.text.trim() ?? "";
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/([\w.-]+)="([^"]*)"/g)].map(([, name, value]) => [name!, unescape(value!)]));
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescape(text: string): string {
  return text.replace(/&(#x?[0-9a-f]+|\w+);/gi, (whole, name: string) => {
    if (name.startsWith("#x")) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
    if (name.startsWith("#")) return String.fromCodePoint(Number.parseInt(name.slice(1), 10));
    return ENTITIES[name] ?? whole;
  });
}
