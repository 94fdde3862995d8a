/**
 * A CSV reader for what the warehouse and Osaka send: quotes, doubled quotes, newlines inside quotes, `;` or `,`.
 */
export interface Row {
  /** Line in the file, from 1, for messages. */
  readonly line: number;
  readonly cells: Record<string, string>;
}

export function parseCsv(text: string): Row[] {
  const separator = separatorOf(text);
  const records = split(text.replace(/^\uFEFF/, ""), separator);
  const [header, ...rest] = records;
  if (!header) return [];
  const names = header.cells.map((name) => name.trim());
  return rest
    .filter((record) => record.cells.some((cell) => cell.trim() !== ""))
    .map(({ line, cells }) => ({ line, cells: Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ""])) }));
}

/** Whichever of the two stands more often in the first line. */
function separatorOf(text: string): string {
  const [first = ""] = text.split("\n", 1);
  const count = (separator: string) => first.split(separator).length - 1;
  return count(";") >= count(",") ? ";" : ",";
}

function split(text: string, separator: string): { line: number; cells: string[] }[] {
  const records: { line: number; cells: string[] }[] = [];
  let cells: string[] = [];
  let cell = "";
  let quoted = false;
  let line = 1;
  let start = 1;
  const endCell = () => {
    cells.push(cell);
    cell = "";
  };
  const endRecord = () => {
    endCell();
    records.push({ line: start, cells });
    cells = [];
    start = line;
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\n") line++;
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
      continue;
    }
    if (character === '"') quoted = true;
    else if (character === separator) endCell();
    else if (character === "\n") endRecord();
    else if (character !== "\r") cell += character;
  }
  if (cell !== "" || cells.length > 0) endRecord();
  return records;
}
