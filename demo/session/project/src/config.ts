export interface Config {
  readonly port: number;
  readonly database: string;
  readonly inbox: string;
  readonly workers: number;
  readonly gateway: { url: string; token: string };
}

/** All settings come from the environment; what is missing is said at once, all of it. */
export function configFrom(env: Record<string, string | undefined>): Config {
  const missing = ["KONTOR_DB", "KONTOR_INBOX", "PEPPOL_URL", "PEPPOL_TOKEN"].filter((name) => !env[name]);
  if (missing.length > 0) throw new Error(`not set: ${missing.join(", ")}`);
  return {
    port: integer(env.PORT ?? "8480", "PORT"),
    database: env.KONTOR_DB!,
    inbox: env.KONTOR_INBOX!,
    workers: integer(env.KONTOR_WORKERS ?? "2", "KONTOR_WORKERS"),
    gateway: { url: env.PEPPOL_URL!, token: env.PEPPOL_TOKEN! },
  };
}

function integer(text: string, name: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`${name} is not a number: ${JSON.stringify(text)}`);
  return Number(text);
}
