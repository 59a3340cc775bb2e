import type { SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import type { InboxRows } from '../../../lambdas/runtime/operations/inbox-rows.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';

/** An event at one consumer of another source. */
export interface MessageAtSource {
  readonly consumer: SourceConsumer;
  /** Absent if the consumer has not claimed it. */
  readonly row: InboxRow | UnreadableRow | undefined;
}

/** Reads an event at the consumers of other sources: those that have a row of it, or handle it. */
export async function readSourceMessages(
  inbox: Pick<InboxRows, 'byEvent'>,
  consumers: readonly SourceConsumer[],
  eventId: string,
  event: OutboxRow | undefined,
): Promise<MessageAtSource[]> {
  const handles = ({ events }: SourceConsumer) =>
    events.some(({ source, type }) => source === event?.source && type === event.type);
  const found = await Promise.all(
    consumers.map(async (consumer) => ({ consumer, row: await inbox.byEvent(consumer.name, eventId, true) })),
  );
  return found.filter(({ consumer, row }) => row !== undefined || handles(consumer));
}
