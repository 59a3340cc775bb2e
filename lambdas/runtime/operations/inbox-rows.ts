import type { InboxHistory, InboxRow } from '../store/inbox-row.ts';
import { inboxHistoryKey, inboxKey } from '../store/keys.ts';
import { asRow } from '../store/row-schema.ts';
import { readInboxRow, type UnreadableRow } from '../store/stored-rows.ts';
import type { Table } from '../store/table.ts';
import { inBatches } from './row-batches.ts';

/** A row of an inbox. */
export type StoredMessageRow = InboxRow | UnreadableRow;

/** Names a message at a consumer. */
export interface MessageKey {
  readonly consumer: string;
  readonly eventId: string;
}

/** Reads the inboxes. */
export interface InboxRows {
  /** Reads a consumer's row of an event; `undefined` if it does not exist. @param consistent - the read sees every earlier write */
  byEvent(consumer: string, eventId: string, consistent?: boolean): Promise<StoredMessageRow | undefined>;
  /** Reads the rows of messages in batches of 100, and maps each with its message. Eventually consistent. Keeps their order. */
  byEvents<M extends MessageKey, T>(
    messages: readonly M[],
    map: (message: M, row: StoredMessageRow | undefined) => T,
  ): Promise<T[]>;
  /** Reads the history of a consumer's inbox; `undefined` if it has none. The read sees every earlier write. */
  history(consumer: string): Promise<InboxHistory | undefined>;
}

/** Reads the inboxes in a table. */
export function dynamoInboxRows(table: Pick<Table, 'get' | 'getEach'>): InboxRows {
  return {
    ...dynamoInboxRow(table),
    byEvents: (messages, map) =>
      inBatches(messages, async (batch) => {
        const items = await table.getEach(batch.map(({ consumer, eventId }) => inboxKey(consumer, eventId)));
        return batch.map((message, index) => map(message, readInboxRow(items[index])));
      }),
  };
}

/** Reads single rows of the inboxes in a table, as the policy of another Mailroom's table may allow. */
export function dynamoInboxRow(table: Pick<Table, 'get'>): Pick<InboxRows, 'byEvent' | 'history'> {
  return {
    byEvent: async (consumer, eventId, consistent = false) =>
      readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent })),
    history: async (consumer) => {
      const item = await table.get(inboxHistoryKey(consumer), { consistent: true });
      return item && asRow<InboxHistory>(item);
    },
  };
}
