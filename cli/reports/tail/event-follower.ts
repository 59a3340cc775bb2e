import { jsonObject, textOf } from '../../../lambdas/runtime/base/json.ts';
import { type InboxState, inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { consumersOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdTime } from '../../../lambdas/runtime/store/event-id.ts';
import { isUnreadable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { isLimited } from '../status/waiting-keys.ts';
import type { NewRow } from './event-cursor.ts';

/** The state of an event, as in the JSON document of docs/cli-json.md. */
export interface TailedEvent {
  readonly eventId: string;
  /** When it was committed, epoch milliseconds. */
  readonly at: number;
  readonly type: string | null;
  readonly source: string | null;
  /** The status of its outbox row. */
  readonly status: string;
  /** The state of its message at each consumer; `waiting` before the claim, `limited` while it waits for a limit. */
  readonly consumers: Readonly<Record<string, TailedState>>;
}

/** The state of a message. */
type TailedState = 'waiting' | 'working' | 'limited' | Exclude<InboxState['is'], 'absent' | 'leased'>;

/** An event that is followed. */
export interface FollowedEvent extends TailedEvent {
  readonly aggregateType: string | null;
  readonly aggregateId: string | null;
  readonly correlationId: string | null;
  /** Epoch milliseconds; `null` until it is published. */
  readonly publishedAt: number | null;
}

/** The result of one step. */
export interface FollowStep {
  /** The events that are new, or whose state changed. */
  readonly events: readonly FollowedEvent[];
  /** The messages that were found processed, each once. */
  readonly processed: readonly ProcessedMessage[];
  /** The number of events that were left out because there are too many. */
  readonly skipped: number;
}

interface ProcessedMessage {
  readonly consumer: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The most unfinished events whose rows are read again in each step. */
export const FOLLOWED_MAX = 50;

const FINAL: ReadonlySet<TailedState> = new Set(['processed', 'rejected', 'discarded', 'unreadable']);

/** Dependencies of {@link createFollower}. */
export interface FollowerDeps {
  readonly directory: Directory;
  readonly stored: Pick<StoredRows, 'outbox' | 'inbox'>;
}

/**
 * Follows events until every consumer has finished them. A step takes new rows, and returns the events that are new or whose state
 * changed. It follows at most 50 at a time, the newest, so that a busy Mailroom costs no more than a quiet one: their outbox rows in
 * one request until they are published, and the rows of their unfinished messages in batches of 100. If a step fails, the next one
 * makes up for it.
 *
 * @example
 * ```ts
 * const follow = createFollower({ directory, stored });
 * const { events } = await follow(rows, clock.now());
 * ```
 */
export function createFollower(
  deps: FollowerDeps,
): (rows: readonly NewRow[], now: number) => Promise<FollowStep> {
  let followed: readonly FollowedEvent[] = [];
  let taken: readonly NewRow[] = [];
  let skipped = 0;
  return async (rows, now) => {
    const fresh = [...taken, ...rows];
    taken = fresh.slice(-FOLLOWED_MAX);
    skipped += fresh.length - taken.length;
    const before = new Map(followed.map((event) => [event.eventId, event]));
    const read = new Map(taken.map(({ eventId, row }) => [eventId, row]));
    const ids = [...new Set([...before.keys(), ...read.keys()])].slice(-FOLLOWED_MAX);
    const expected = await readOutbox(deps, ids, read, before);
    const { events, processed } = await readMessages(deps.stored.inbox, expected, before, now);
    followed = events.filter((event) => !isFinished(event));
    const step = {
      events: events.filter((event) => stateText(event) !== stateText(before.get(event.eventId))),
      processed,
      skipped,
    };
    taken = [];
    skipped = 0;
    return step;
  };
}

/** An event whose messages are still to be read. */
type Expected = Omit<FollowedEvent, 'consumers'> & {
  /** The names of the consumers that must receive it. */
  readonly names: readonly string[];
};

type Known = ReadonlyMap<string, FollowedEvent>;

/** @param rows - the outbox rows that were just read */
async function readOutbox(
  { directory, stored }: FollowerDeps,
  ids: readonly string[],
  rows: ReadonlyMap<string, StoredEventRow>,
  before: Known,
): Promise<Expected[]> {
  const isKnown = (eventId: string) => before.get(eventId)?.status === 'PUBLISHED';
  const unread = ids.filter((eventId) => !rows.has(eventId) && !isKnown(eventId));
  const read = new Map(await stored.outbox.byIds(unread, (eventId, row) => [eventId, row] as const));
  return ids.map((eventId) => {
    const event = before.get(eventId);
    if (event !== undefined && isKnown(eventId)) return { ...event, names: Object.keys(event.consumers) };
    return expectedOf(directory, eventId, rows.get(eventId) ?? read.get(eventId));
  });
}

function expectedOf(directory: Directory, eventId: string, row: StoredEventRow | undefined): Expected {
  const at = eventIdTime(eventId);
  if (row === undefined || isUnreadable(row)) {
    const nothing = { type: null, source: null, aggregateType: null, aggregateId: null, correlationId: null };
    return { eventId, at, ...nothing, publishedAt: null, status: 'UNREADABLE', names: [] };
  }
  const { type, source, status, publishedBy, publishedAt = null } = row;
  const envelope = jsonObject(row.envelope);
  const names = consumersOf(directory, { source, type, publishedBy, data: () => envelope?.data }).map(nameOf);
  return {
    eventId,
    at,
    type,
    source,
    status,
    aggregateType: textOf(envelope?.aggregateType) ?? null,
    aggregateId: textOf(envelope?.aggregateId) ?? null,
    correlationId: textOf(envelope?.correlationId) ?? null,
    publishedAt,
    names,
  };
}

async function readMessages(
  inbox: StoredRows['inbox'],
  events: readonly Expected[],
  before: Known,
  now: number,
): Promise<Pick<FollowStep, 'events' | 'processed'>> {
  const knownState = (eventId: string, name: string) => before.get(eventId)?.consumers[name];
  const isOpen = (state: TailedState | undefined) => state === undefined || !FINAL.has(state);
  const open = events.flatMap(({ eventId, names }) =>
    names.filter((name) => isOpen(knownState(eventId, name))).map((consumer) => ({ eventId, consumer })),
  );
  const read = await inbox.byEvents(open, ({ eventId, consumer: name }, row) => ({
    eventId,
    name,
    state: inboxState(row, now),
  }));
  const idOf = (eventId: string, name: string) => `${eventId} ${name}`;
  const states = new Map(read.map(({ eventId, name, state }) => [idOf(eventId, name), tailed(state, now)]));
  const stateOf = (eventId: string, name: string) =>
    states.get(idOf(eventId, name)) ?? knownState(eventId, name) ?? 'waiting';
  return {
    events: events.map(({ names, ...event }) => ({
      ...event,
      consumers: Object.fromEntries(names.map((name) => [name, stateOf(event.eventId, name)])),
    })),
    processed: read.flatMap(({ name, state }) =>
      state.is === 'processed' ? [{ consumer: name, at: state.row.processedAt ?? now }] : [],
    ),
  };
}

function tailed(state: InboxState, now: number): TailedState {
  const { is } = state;
  if (is === 'failed' && isLimited({ state }, now)) return 'limited';
  return is === 'absent' ? 'waiting' : is === 'leased' ? 'working' : is;
}

function nameOf({ name }: ConsumerEntry): string {
  return name;
}

/** True if the rows of an event do not change any more. */
function isFinished({ status, consumers }: TailedEvent): boolean {
  if (status === 'PENDING') return false;
  return status !== 'PUBLISHED' || Object.values(consumers).every((state) => FINAL.has(state));
}

function stateText(event: TailedEvent | undefined): string {
  return event === undefined ? '' : JSON.stringify([event.status, event.consumers]);
}
