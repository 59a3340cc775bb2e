import type { SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { readInboxRow, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { eachOf } from '../../deployment/rows-reader.ts';

/** An event at one consumer of another source. */
export interface MessageAtSource {
  readonly consumer: SourceConsumer;
  /** Absent if the consumer has not claimed it. */
  readonly row: InboxRow | UnreadableRow | undefined;
}

/** Reads an event at the consumers of other sources: those that have a row of it, or handle it. */
export async function readSourceMessages(
  table: Table,
  consumers: readonly SourceConsumer[],
  eventId: string,
  event: OutboxRow | undefined,
): Promise<MessageAtSource[]> {
  const handles = ({ events }: SourceConsumer) =>
    events.some(({ source, type }) => source === event?.source && type === event.type);
  const found = await eachOf(consumers, async (consumer) => {
    const row = readInboxRow(await table.get(inboxKey(consumer.name, eventId), { consistent: true }));
    return { consumer, row };
  });
  return found.filter(({ consumer, row }) => row !== undefined || handles(consumer));
}
