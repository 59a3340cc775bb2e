import { orderOfText } from '../../../lambdas/runtime/base/order.ts';
import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { clipped } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { time } from '../../terminal/times.ts';
import { aggregateName, blockOf, waitingText } from '../order/order-block.ts';
import { type AggregateOrder, numberingServices } from '../order/order-of-aggregate.ts';
import type { PassedOver } from '../order/passed-over.ts';
import type { StateText, WhyContext, WhyVerdict } from './event-state.ts';
import type { Trace, TracedEvent, TracedMessage } from './trace.ts';

/** A message to judge. */
interface PlacedMessage {
  readonly event: TracedEvent;
  readonly message: TracedMessage;
  readonly context: WhyContext;
  /** The sentences about the queue of a message that was not claimed. */
  readonly place: string;
}

/** Adds the order of its aggregate to the verdict on a message: the event that it waits for, or those that wait for it. */
export function orderedVerdict(
  verdict: WhyVerdict,
  { event, message, context: { orders, redrive, commandLine }, place }: PlacedMessage,
): WhyVerdict {
  const { consumer, row, deadLetter } = message;
  const found = orders?.(event.eventId, consumer.name);
  if (found === undefined) return verdict;
  const { sequence, last, order } = found;
  const aggregate = aggregateName(found.aggregate);
  const { name } = consumer;
  if (sequence <= last) {
    // Its own plan has said so.
    if (redrive?.verdict === 'superseded' && redrive.id === deadLetter?.id) return verdict;
    const text = `${verdict.text} It has number ${sequence} of ${aggregate}, and ${name} has applied or passed over number ${last}: a run of it changes nothing.`;
    if (deadLetter === undefined || verdict.next === null) return { ...verdict, text };
    return { ...verdict, text: `${text} ${SUPERSEDED_TODO}`, next: commandLine(discardLine(deadLetter)) };
  }
  if (order === undefined) return verdict;
  if (sequence === order.missing) return { ...verdict, text: `${verdict.text}${blockingText(name, order)}` };
  const block = blockOf(name, order);
  const waits = `It has number ${sequence} of ${aggregate}, and ${name} has not applied number ${order.missing}. ${block.text}`;
  if (readable(row)?.status === 'REJECTED') {
    if (!block.isStuck) return { ...verdict, text: `${verdict.text} ${waits} A redrive waits for it:` };
    const text = `${verdict.text} ${waits} Redrive this message after number ${order.missing}. ${block.todo}`;
    return { ...verdict, text, next: commandLine(block.next) };
  }
  if (verdict.state !== 'waiting' && verdict.state !== 'late')
    return { ...verdict, text: `${verdict.text} ${waits}` };
  const state = block.isStuck ? 'blocked' : 'waiting';
  const delay = block.isStuck ? { place, problem: waits, asksFirst: false, before: null } : undefined;
  const next = commandLine(block.next);
  return { ...verdict, state, text: `${place} ${waits} ${block.todo}`, next, delay };
}

/** The help for a dead letter whose message would not run. */
export const SUPERSEDED_TODO =
  'If its change is still needed, do the work by hand, or have its producer publish it under the next number. Then discard the dead letter:';

/** The command that plans the discard of a dead letter. */
export function discardLine({ source, id }: NonNullable<TracedMessage['deadLetter']>): ShellText {
  return shell`dlq discard ${source.name} ${id}`;
}

/** Adds the events that wait for it to the verdict on an event that is DEAD, or was discarded, and is next at a strict consumer. */
export function blockingVerdict(
  verdict: StateText,
  event: TracedEvent,
  { orders, commandLine }: WhyContext,
): StateText {
  const blocked = event.messages.flatMap(({ consumer: { name } }) => {
    const { order, sequence } = orders?.(event.eventId, name) ?? {};
    return order !== undefined && order.missing === sequence ? [{ name, order }] : [];
  });
  const [first] = blocked;
  if (first === undefined) return verdict;
  const text = `${verdict.text}${blocked.map(({ name, order }) => blockingText(name, order)).join('')}`;
  if (verdict.state !== 'discarded') return { ...verdict, text };
  const block = blockOf(first.name, first.order);
  return { state: 'blocked', text: `${text} ${block.todo}`, next: commandLine(block.next) };
}

function blockingText(consumer: string, order: AggregateOrder): string {
  const waiting = waitingText(order);
  return ` ${consumer} applies no later event of ${aggregateName(order)} before its number, ${order.missing}, is applied or passed over.${waiting || ' None was found that waits.'}`;
}

/** True if a strict consumer ended one of the messages of a trace without running it. */
export function hasSuperseded({ events }: Trace): boolean {
  return events.some(({ messages }) => messages.some((message) => supersededPlace(message) !== undefined));
}

/** The place of a message that its strict consumer ended without running it, because its number was applied or passed over before. */
function supersededPlace({ row }: TracedMessage) {
  const known = readable(row);
  if (known?.status !== 'PROCESSED' || known.supersededBy === undefined) return undefined;
  return known.order?.mode === 'strict' ? { place: known.order, last: known.supersededBy } : undefined;
}

/**
 * The verdict on an event that its strict consumer did not run although neither an operator nor a rejection passed over its number: its change is
 * missing, unless the state of the consumer began after it. `undefined` for any other.
 */
export function supersededVerdict(
  name: string,
  message: TracedMessage,
  { passedOver, commandLine }: WhyContext,
): StateText | undefined {
  const found = supersededPlace(message);
  if (found === undefined || passedOver === undefined || passedOver(found.place) !== undefined)
    return undefined;
  const { consumer } = message;
  const order = orderOfText(consumer.order ?? '');
  if (order?.mode === 'strict' && order.onReject === 'skip') return undefined;
  const aggregate = sequenceOf(found.place.key);
  const { sequence } = found.place;
  const text =
    `${consumer.name} did not run ${name}: it has number ${sequence} of ${aggregateName(aggregate)}, whose number ${found.last} had been applied before, and no operator passed over it. ` +
    'Either two events have this number, or the numbers of its publisher began again: its counter was deleted or restored. Correct the counter. If the change of the event is missing, have it published ' +
    `again under the next number. If a backfill began the order of ${consumer.name} after it, its state contains the event, and nothing is missing. For the last number and its event:`;
  const { aggregateType, aggregateId, source } = aggregate;
  const services = numberingServices(consumer).length > 1 ? ['--source', source] : [];
  return {
    state: 'superseded',
    text,
    next: commandLine(shell`order show ${[atHome(consumer).name, aggregateType, aggregateId, ...services]}`),
  };
}

/** Names the messages of a chain that were superseded; empty without one. */
export function supersededText(events: readonly TracedEvent[], passedOver?: PassedOver): string {
  const texts = events.flatMap((event) =>
    event.messages.flatMap(({ consumer, row }) => {
      const known = readable(row);
      if (known?.status !== 'PROCESSED' || known.supersededBy === undefined) return [];
      const own = known.order?.sequence;
      const by =
        own === known.supersededBy
          ? `its number, ${own}, was applied before or passed over`
          : `number ${known.supersededBy} of its aggregate was applied before${own === undefined ? '' : ` its number, ${own}`}`;
      const change = known.order && passedOver?.(known.order);
      const who =
        change === undefined
          ? ''
          : ` ${clipped(change.by)} passed over it with \`${change.command}\` at ${time(change.at)}: ${clipped(change.reason)}. If its change is still needed, have its producer publish it under the next number.`;
      return [` ${consumer.name} did not run ${event.eventId}, which was superseded: ${by}.${who}`];
    }),
  );
  const more = texts.length > SUPERSEDED_MAX ? ` ${texts.length - SUPERSEDED_MAX} more were superseded.` : '';
  return texts.slice(0, SUPERSEDED_MAX).join('') + more;
}

/** The most superseded messages that a verdict names. */
const SUPERSEDED_MAX = 3;
