import { TOO_OLD } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { clipped, many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { time } from '../../terminal/times.ts';
import type {
  AggregateEvent,
  AggregateEventState,
  AggregateOrder,
  OrderedAggregate,
} from './order-of-aggregate.ts';

/** The next number of an aggregate at a consumer: why it is not applied, and what to do. */
export interface OrderBlock {
  /** True if later events are not applied without an operator. */
  readonly isStuck: boolean;
  /** False if no event with the number was found. */
  readonly isFound: boolean;
  /** A sentence about the event that has the number. */
  readonly text: string;
  /** The sentence that introduces the command. */
  readonly todo: string;
  readonly next: ShellText;
}

/** The name of an aggregate in a text. */
export function aggregateName({ aggregateType, aggregateId }: OrderedAggregate): string {
  return `${clipped(aggregateType)} ${clipped(aggregateId)}`;
}

/** The words of each state of the event that has the next number. */
const STATE_WORDS: Readonly<
  Record<AggregateEventState, (consumer: string, event: AggregateEvent) => string>
> = {
  dead: () => 'is DEAD: it could not be published',
  discarded: () => 'was discarded, so it is never applied',
  cancelled: () => 'was cancelled, so it is never published',
  pending: () => 'is not published yet',
  scheduled: () => 'is scheduled, and not due yet',
  published: (consumer) => `is published, and ${consumer} has not begun it`,
  leased: (consumer) => `is being processed by ${consumer}`,
  abandoned: (consumer) => `was begun by ${consumer}, and is begun again when its queue redelivers it`,
  failed: (consumer) => `failed at ${consumer}, and is retried`,
  rejected: (consumer, { reason = 'UNKNOWN' }) => `was rejected by ${consumer} (${clipped(reason)})`,
  processed: (consumer) => `was processed by ${consumer} before it kept this order`,
  unreadable: (consumer) => `has a row at ${consumer} that cannot be read`,
};

/** Why the next number of an aggregate is not applied. @param consumer - its name */
export function blockOf(consumer: string, order: AggregateOrder): OrderBlock {
  const { missing, holder, exists, waiting, aggregateType, aggregateId, sourceWords } = order;
  const change = (to: 'skip' | 'seed', sequence: number) =>
    shell`order ${[to, consumer, aggregateType, aggregateId, String(sequence), ...sourceWords]}`;
  const skip = change('skip', missing);
  const [first] = waiting;
  const seed = exists || first === undefined ? undefined : change('seed', first.sequence - 1);
  const begin =
    seed === undefined
      ? ''
      : `If the state of ${consumer} already contains the events before number ${first?.sequence}, begin there: \`${seed}\`. `;
  if (holder === undefined) {
    const todo = `${begin}If it does not come, pass over it: \`${skip}\`. To search further back for it first:`;
    return {
      isStuck: true,
      isFound: false,
      text: unfound(order),
      todo,
      next: shell`why ${aggregateId} --since 24h`,
    };
  }
  const { eventId, type = 'Event', state } = holder;
  const text = `Number ${missing} is ${clipped(type)} ${eventId}, which ${STATE_WORDS[state](consumer, holder)}.`;
  switch (state) {
    case 'dead':
    case 'rejected': {
      const source = state === 'dead' ? 'dead' : `consumer:${consumer}`;
      const isTooOld = holder.reason === TOO_OLD;
      const fix = isTooOld
        ? 'Otherwise, if it was never processed, allow it, then redrive it'
        : 'Otherwise fix its cause, then redrive it first';
      const todo = `${isTooOld ? begin : ''}If number ${missing} must not be applied, pass over it: \`${skip}\`. ${fix}:`;
      const next = isTooOld
        ? shell`messages allow ${[consumer, eventId]}`
        : shell`dlq redrive ${source} ${eventId}`;
      return { isStuck: true, isFound: true, text, todo, next };
    }
    case 'discarded':
    case 'cancelled':
      return { isStuck: true, isFound: true, text, todo: 'To pass over it:', next: skip };
    case 'processed':
      return { isStuck: true, isFound: true, text, todo: 'To begin after it:', next: seed ?? skip };
    default:
      return { isStuck: false, isFound: true, text, todo: 'For its state:', next: shell`why ${eventId}` };
  }
}

function unfound({ missing, searched }: AggregateOrder): string {
  const where =
    searched === undefined
      ? 'the outbox was not searched'
      : `the outbox has none from ${time(searched.since)} to ${time(searched.until)}`;
  return `No rejected message and no DEAD event has number ${missing}, and ${where}.`;
}

/** Names the events that wait for the next number; empty without one. */
export function waitingText({ waiting }: Pick<AggregateOrder, 'waiting'>): string {
  if (waiting.length === 0) return '';
  return ` ${many(waiting.length, 'later event')} of the aggregate ${waiting.length === 1 ? 'was' : 'were'} found: ${eventsText(waiting)}.`;
}

/** Names numbered events with their states. */
export function eventsText(events: readonly AggregateEvent[]): string {
  const shown = events.slice(0, EVENTS_MAX).map((event) => {
    const { sequence, type = 'Event', eventId, state, reason } = event;
    const is =
      state === 'dead' ? 'DEAD' : [state, ...(reason === undefined ? [] : [clipped(reason)])].join(' ');
    return `${sequence} (${clipped(type)} ${eventId}, ${is})`;
  });
  const more = events.length > EVENTS_MAX ? `, and ${events.length - EVENTS_MAX} more` : '';
  return `number ${shown.join(', ')}${more}`;
}

/** The most events that a text names. */
const EVENTS_MAX = 3;
