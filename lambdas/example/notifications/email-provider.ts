import { createHash } from 'node:crypto';
import { type Clock, isMailroomError, type Table } from '../../runtime/index.ts';

/** One e-mail to send. */
interface Email {
  /** The customer's id: this provider stores the addresses. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Our reference, here the order's id. */
  readonly reference: string;
  /** The provider sends once per key, however often it is called. */
  readonly idempotencyKey: string;
}

/** An external service that sends e-mails. */
export interface EmailProvider {
  /** @returns the provider's id of the message, identical for repeated calls with the same key */
  send(email: Email, signal: AbortSignal): Promise<{ readonly messageId: string }>;
}

/** The version of the e-mail row's shape. */
const EMAIL_SCHEMA = 1;

/**
 * Creates a stand-in for an e-mail provider: it sends nothing and stores each e-mail as a row, `NOTIFICATION#<reference>` /
 * `EMAIL#<messageId>`, which tests can read. Like a real provider, it honors the idempotency key. Two e-mails about one order are
 * two rows.
 */
export function storedEmails(deps: { readonly table: Table; readonly clock: Clock }): EmailProvider {
  return {
    send: async ({ idempotencyKey, ...email }) => {
      const messageId = createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 32);
      const key = { PK: `NOTIFICATION#${email.reference}`, SK: `EMAIL#${messageId}` };
      const row = { ...key, schema: EMAIL_SCHEMA, ...email, idempotencyKey, sentAt: deps.clock.now() };
      try {
        await deps.table.write({ Put: { Item: row, ConditionExpression: 'attribute_not_exists(PK)' } });
      } catch (error) {
        if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
      }
      return { messageId };
    },
  };
}
