export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** One line an event: time, level, message, then `name=value`. */
export function consoleLog(write: (line: string) => void = (line) => process.stdout.write(`${line}\n`)): Log {
  const at = (level: string) => (message: string, fields: Record<string, unknown> = {}) => {
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    write([new Date().toISOString(), level, message, ...pairs].join(" "));
  };
  return { info: at("INFO "), warn: at("WARN ") };
}
