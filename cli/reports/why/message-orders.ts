import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { AggregateOrder, OrderedAggregate, OrderReader } from '../order/order-of-aggregate.ts';
import { isStrict, placed, placeOfMessage, placeOfRow } from '../order/place-of-message.ts';
import { bornAt, type Trace } from './trace.ts';

/** A message that its strict consumer has not applied, in the order of its aggregate. */
interface MessageOrder {
  readonly aggregate: OrderedAggregate;
  readonly sequence: number;
  /** The number that was applied last. */
  readonly last: number;
  /** The state of its aggregate, if it waits for another event or others wait for it. */
  readonly order?: AggregateOrder | undefined;
}

/** Returns the order of an event's message at a consumer. */
export type MessageOrders = (eventId: string, consumer: string) => MessageOrder | undefined;

/** Reads the orders of the messages of a trace that strict consumers have not applied. */
export async function readMessageOrders(
  reader: OrderReader,
  { events }: Trace,
  now: number,
): Promise<MessageOrders> {
  const found = await eachOf(
    events.flatMap((event) => event.messages.map((message) => ({ event, message }))),
    async ({ event, message }) => {
      const { consumer, row, deadLetter } = message;
      const outbox = readable(event.row);
      const found = placeOfMessage(consumer, {
        eventId: event.eventId,
        row,
        body: deadLetter?.received.body,
      });
      const place = placed(found) ?? placeOfRow(consumer, outbox);
      const { is } = inboxState(row, now);
      if (place?.mode !== 'strict' || !isStrict(consumer) || is === 'processed' || is === 'discarded')
        return [];
      const { key, sequence } = place;
      const aggregate = sequenceOf(key);
      const { last } = await reader.last(key);
      const isLost =
        is === 'rejected' ||
        deadLetter !== undefined ||
        outbox?.status === 'DEAD' ||
        outbox?.status === 'DISCARDED';
      const isSearched = sequence > last + 1 || (sequence === last + 1 && isLost);
      const order = isSearched
        ? await reader.read(consumer, aggregate, { around: bornAt(event) })
        : undefined;
      return [[`${consumer.name} ${event.eventId}`, { aggregate, sequence, last, order }] as const];
    },
  );
  const orders = new Map(found.flat());
  return (eventId, consumer) => orders.get(`${consumer} ${eventId}`);
}
