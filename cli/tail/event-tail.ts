import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import { consumersOf } from '../../lambdas/runtime/operations/subscriptions.ts';
import { eventIdTime, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { type InboxState, inboxState } from '../../lambdas/runtime/store/inbox-state.ts';
import { readable, readOutboxRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { jsonObject } from '../reading/json-object.ts';
import { readInbox } from '../reading/message-reader.ts';
import type { OutboxReaderDeps } from '../reading/published-events.ts';
import { eachOf } from '../reading/rows-reader.ts';
import { createEventCursor } from './event-cursor.ts';

/** The state of an event, as in the JSON document of docs/cli.md. */
export interface TailedEvent {
  readonly eventId: string;
  /** When it was committed, epoch milliseconds. */
  readonly at: number;
  readonly type: string | null;
  readonly source: string | null;
  /** The status of its outbox row. */
  readonly status: string;
  /** The state of its message at each consumer; `waiting` before the claim. */
  readonly consumers: Readonly<Record<string, TailedState>>;
}

/** The state of a message. */
type TailedState = 'waiting' | 'working' | Exclude<InboxState['is'], 'absent' | 'leased'>;

/** The events that changed since the step before, and those that were left out because there are too many. */
export interface TailStep {
  readonly events: readonly TailedEvent[];
  readonly skipped: number;
  /** More than `skipped` were left out. */
  readonly more: boolean;
}

/** The most unfinished events whose rows are read again in each step. */
const FOLLOWED_MAX = 50;

const FINAL: ReadonlySet<TailedState> = new Set(['processed', 'rejected', 'discarded', 'unreadable']);

/** Dependencies of {@link createTail}. */
export interface TailDeps extends OutboxReaderDeps {
  readonly directory: Directory;
}

/**
 * Follows new events until every consumer has finished them. Each step returns the events that are new or whose state changed. It
 * follows at most 50 at a time, the newest, so that a busy Mailroom costs no more than a quiet one.
 *
 * @param since - epoch milliseconds
 */
export function createTail(deps: TailDeps, since: number): (now: number) => Promise<TailStep> {
  const read = createEventCursor(deps, since);
  let followed: readonly TailedEvent[] = [];
  return async (now) => {
    const { rows, more } = await read(now);
    const taken = rows.slice(-FOLLOWED_MAX);
    const before = new Map(followed.map((event) => [event.eventId, event]));
    const items = new Map<string, Item>(taken.map(({ eventId, item }) => [eventId, item]));
    const ids = [...new Set([...before.keys(), ...items.keys()])].slice(-FOLLOWED_MAX);
    const events = await eachOf(ids, (eventId) =>
      stateOf(deps, eventId, items.get(eventId), before.get(eventId), now),
    );
    followed = events.filter((event) => !isFinished(event));
    return {
      events: events.filter((event) => stateText(event) !== stateText(before.get(event.eventId))),
      skipped: rows.length - taken.length,
      more,
    };
  };
}

/** @param item - its outbox row, if it was just read */
async function stateOf(
  { directory, table }: TailDeps,
  eventId: string,
  item: Item | undefined,
  before: TailedEvent | undefined,
  now: number,
): Promise<TailedEvent> {
  const at = eventIdTime(eventId);
  const isKnown = before !== undefined && before.status === 'PUBLISHED';
  const row = isKnown ? before : readable(readOutboxRow(item ?? (await table.get(outboxKeyOf(eventId)))));
  if (row === undefined || row.type === null || row.source === null)
    return { eventId, at, type: null, source: null, status: 'UNREADABLE', consumers: {} };
  const { type, source, status } = row;
  const names =
    'consumers' in row
      ? Object.keys(row.consumers)
      : consumersOf(directory, { source, type, data: () => jsonObject(row.envelope)?.data }).map(nameOf);
  const states = await eachOf(names, async (name) => {
    const known = before?.consumers[name];
    if (known !== undefined && FINAL.has(known)) return [name, known] as const;
    const { is } = inboxState(await readInbox(table, name, eventId), now);
    return [name, is === 'absent' ? 'waiting' : is === 'leased' ? 'working' : is] as const;
  });
  return { eventId, at, type, source, status, consumers: Object.fromEntries(states) };
}

function nameOf({ name }: ConsumerEntry): string {
  return name;
}

function isFinished({ status, consumers }: TailedEvent): boolean {
  if (status === 'PENDING') return false;
  return status !== 'PUBLISHED' || Object.values(consumers).every((state) => FINAL.has(state));
}

function stateText(event: TailedEvent | undefined): string {
  return event === undefined ? '' : JSON.stringify([event.status, event.consumers]);
}
