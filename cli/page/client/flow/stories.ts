import type { Flow, FlowEvent } from '../../server/protocol.ts';
import { groupsOf, type StateName, stateOf, WORST_FIRST } from '../frame/format.ts';
import { hasNotArrived } from './troubles.ts';

/** The flow before the first reading. */
export const NO_FLOW: Flow = {
  at: 0,
  status: null,
  committedPerS: [],
  processedPerS: {},
  queues: {},
  events: [],
  eventsSince: null,
  isSample: false,
  unread: [],
};

/** An event and the state of its message at each consumer, in words. */
export interface ShownEvent extends Omit<FlowEvent, 'consumers'> {
  readonly consumers: Readonly<Record<string, string>>;
}

/** The events with one correlation id, e.g. those of an order. */
export interface Story {
  /** The correlation id; of an event without one, its own id. */
  readonly id: string;
  /** In order of commit. */
  readonly events: readonly ShownEvent[];
  /** The commit of the newest, epoch milliseconds. */
  readonly at: number;
}

/** Groups events into stories, that with the newest event first. Events that were cancelled are shown only if there are no others. */
export function storiesOf(events: readonly ShownEvent[]): Story[] {
  const happened = events.filter(({ status }) => status !== 'CANCELLED');
  return [
    ...groupsOf(
      happened.length > 0 ? happened : events,
      ({ correlationId, eventId }) => correlationId ?? eventId,
    ),
  ]
    .map(([id, group]) => {
      const inOrder = group.sort((a, b) => a.at - b.at);
      return { id, events: inOrder, at: Math.max(...inOrder.map(({ at }) => at)) };
    })
    .sort((a, b) => b.at - a.at);
}

/** The events as the status knows them: a message without a row waits, unless it has not arrived. */
export function arrivedEvents(events: readonly FlowEvent[], status: Flow['status']): readonly ShownEvent[] {
  if (status === null) return events;
  return events.map((event): ShownEvent => {
    const { consumers, publishedAt } = event;
    const shown = Object.entries(consumers).map(([name, state]) => {
      const isLost = state === 'waiting' && publishedAt !== null && hasNotArrived(status, name, publishedAt);
      return [name, isLost ? 'not arrived' : state];
    });
    return { ...event, consumers: Object.fromEntries(shown) };
  });
}

/** The state of an event in one word: the worst of its outbox row and its messages. */
interface EventSummary {
  readonly is: StateName;
  /** E.g. `failed at payments`. */
  readonly text: string;
}

/** Summarizes an event. */
export function summaryOf({ status, consumers }: Pick<ShownEvent, 'status' | 'consumers'>): EventSummary {
  const outbox = status.toLowerCase();
  if (status !== 'PUBLISHED') return { is: stateOf(outbox), text: outbox };
  const states = Object.entries(consumers).map(([name, state]) => ({ name, state, is: stateOf(state) }));
  const [worst] = states.sort((a, b) => WORST_FIRST.indexOf(a.is) - WORST_FIRST.indexOf(b.is));
  if (worst === undefined) return { is: 'ok', text: 'published' };
  if (worst.is === 'ok') return { is: 'ok', text: 'processed' };
  const names = states.filter(({ state }) => state === worst.state).map(({ name }) => name);
  return { is: worst.is, text: `${worst.state} at ${names.join(', ')}` };
}
