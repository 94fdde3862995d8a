import { format } from "../money.ts";
import type { StoredInvoice } from "../store.ts";
import { DeliveryError } from "./peppol.ts";

export interface Mailer {
  send(mail: { to: string; subject: string; text: string }): Promise<string>;
}

const GREETING: Record<string, string> = { DE: "Guten Tag", JP: "お世話になっております", CN: "您好", US: "Hello" };

/** Sends one invoice by mail. Returns the mail's message id. */
export async function sendMail(stored: StoredInvoice, mailer: Mailer): Promise<string> {
  const { buyer, number, due, currency } = stored.invoice;
  if (!buyer.mail) throw new DeliveryError(`${buyer.name} has no mail address`, false);
  const greeting = GREETING[buyer.country] ?? GREETING.US;
  const total = format({ units: stored.total, currency });
  return mailer.send({
    to: buyer.mail,
    subject: `Invoice ${number}`,
    text: `${greeting},\n\nplease find invoice ${number} over ${total}, due on ${due}.\n\nKontor Reuter & Söhne\n`,
  });
}
