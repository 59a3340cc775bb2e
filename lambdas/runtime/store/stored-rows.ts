import { isTime } from '../base/clock.ts';
import { isDeeperThan, JSON_DEPTH_MAX } from '../base/json.ts';
import { eventIdOf, isEventId } from './event-id.ts';
import type { FailedHint, InboxRow, InboxStatus, RejectedPointer } from './inbox-row.ts';
import type { OperationRow } from './operation-record.ts';
import type { DeadPointer, OutboxRow, OutboxStatus } from './outbox-row.ts';
import { SCHEMA } from './row-schema.ts';
import type { EffectStatus, StoredEffect } from './stored-effect.ts';
import { envelopeJson } from './stored-envelope.ts';
import type { Item, Key } from './table.ts';

/**
 * A row that exists but cannot be read: an attribute is missing or has a type that Mailroom does not write, or a newer version
 * wrote it. It is reported as such, and never treated as missing or guessed at.
 */
export interface UnreadableRow extends Key {
  /** The reason, as the end of a sentence: `its "schema" is 2, and this version reads up to 1`. */
  readonly unreadable: string;
}

/** Returns true if a row exists but cannot be read. */
export function isUnreadable(row: Key | undefined): row is UnreadableRow {
  // A row that was read has only the attributes of its shape, so this cannot be a stored attribute of the same name.
  return row !== undefined && 'unreadable' in row;
}

/** Returns the row if it can be read; `undefined` if it does not exist or cannot be read. */
export function readable<R extends Key>(row: R | undefined): Exclude<R, UnreadableRow> | undefined {
  return isUnreadable(row) ? undefined : (row as Exclude<R, UnreadableRow> | undefined);
}

/** The kinds of stored attributes. */
type Kind = 'text' | 'json' | 'time' | 'number' | 'flag' | 'texts' | 'list' | 'effects' | 'order' | 'event';

/** The attributes of a row besides its key, in any of its states, with their kinds; `?` marks those that may be missing. */
type Shape<R> = {
  readonly [A in Exclude<AttributeOf<R>, keyof Key | 'schema' | 'status'>]: R extends {
    readonly [B in A]: unknown;
  }
    ? Kind
    : `${Kind}?`;
};

/** The names of the attributes that a row has in one of its states. */
type AttributeOf<R> = R extends unknown ? keyof R : never;

const INBOX: Shape<InboxRow> = {
  fence: 'text',
  leaseUntil: 'time?',
  endsBy: 'time?',
  attempts: 'number',
  unfinished: 'number?',
  effects: 'effects?',
  pastAttempts: 'list?',
  outOfTime: 'flag?',
  type: 'text?',
  claimedAt: 'time?',
  processedAt: 'time?',
  result: 'text?',
  commitId: 'text?',
  lastError: 'text?',
  fingerprint: 'text?',
  retryAt: 'time?',
  reason: 'text?',
  rejectedAt: 'time?',
  rejectedIds: 'texts?',
  runAnyway: 'flag?',
  order: 'order?',
  allowedBy: 'text?',
  allowedAt: 'time?',
  allowedReason: 'text?',
  supersededBy: 'number?',
  resolvedBy: 'text?',
  resolvedReason: 'text?',
  discardedBy: 'text?',
  discardedAt: 'time?',
  discardedReason: 'text?',
  replacedBy: 'event?',
  expiresAt: 'number?',
};

const OUTBOX: Shape<OutboxRow> = {
  leaseUntil: 'time',
  producerUntil: 'time?',
  dueAt: 'time?',
  scheduledAt: 'time?',
  attempts: 'number',
  source: 'text',
  type: 'text',
  envelope: 'json',
  traceId: 'text?',
  lastError: 'text?',
  fingerprint: 'text?',
  publishedAt: 'time?',
  publishedBy: 'text?',
  deadAt: 'time?',
  resentAt: 'time?',
  requeuedBy: 'text?',
  requeuedAt: 'time?',
  requeuedReason: 'text?',
  discardedBy: 'text?',
  discardedAt: 'time?',
  discardedReason: 'text?',
  cancelledBy: 'text?',
  cancelledAt: 'time?',
  expiresAt: 'number?',
};

const EFFECT: Shape<StoredEffect> = {
  fence: 'text',
  run: 'number',
  endsBy: 'time',
  startedAt: 'time',
  completedAt: 'time?',
  result: 'text?',
  endedAt: 'time?',
  error: 'text?',
  nothingHappened: 'flag?',
};

const PLACE = { key: 'text', mode: 'text', sequence: 'number' } as const;

const DEAD: Shape<DeadPointer> = { deadAt: 'time', type: 'text', lastError: 'text', fingerprint: 'text' };
const REJECTED: Shape<RejectedPointer> = {
  rejectedAt: 'time',
  reason: 'text',
  lastError: 'text',
  fingerprint: 'text',
  sentAt: 'time?',
  expiresAt: 'number?',
};
const FAILED: Shape<FailedHint> = { failedAt: 'time', expiresAt: 'number' };
const OPERATION: Shape<OperationRow> = {
  at: 'time',
  by: 'text',
  command: 'text',
  subject: 'text',
  reason: 'text',
  expiresAt: 'number',
  consumer: 'text?',
  source: 'text?',
  eventId: 'text?',
  newEventId: 'text?',
  finding: 'text?',
  until: 'time?',
  upTo: 'number?',
};

const INBOX_STATUSES: readonly InboxStatus[] = ['PROCESSING', 'PROCESSED', 'FAILED', 'REJECTED', 'DISCARDED'];
const OUTBOX_STATUSES: readonly OutboxStatus[] = ['PENDING', 'PUBLISHED', 'DEAD', 'DISCARDED', 'CANCELLED'];
const EFFECT_STATUSES: readonly EffectStatus[] = ['IN_PROGRESS', 'COMPLETED', 'RELEASED'];

/**
 * Reads an inbox row; `undefined` if it does not exist. Every row that the inbox itself acts on can be read, so `leaseUntil`, `fence`
 * and `attempts` may be missing.
 */
export function readInboxRow(item: Item | undefined): InboxRow | UnreadableRow | undefined {
  return (
    item && read<InboxRow>(item, INBOX, { statuses: INBOX_STATUSES, defaults: { fence: '', attempts: 0 } })
  );
}

/** Reads an outbox row; `undefined` if it does not exist. A row under a key that its event's id does not lead to is unreadable. */
export function readOutboxRow(item: Item | undefined): OutboxRow | UnreadableRow | undefined {
  if (item === undefined) return undefined;
  if (eventIdOf(item) === undefined) return { ...keyOf(item), unreadable: 'its key is not that of an event' };
  const stored = envelopeJson(item);
  const problem =
    schemaProblem(item.schema ?? SCHEMA) ?? (item.encoding === undefined ? undefined : stored.problem);
  if (problem !== undefined) return { ...keyOf(item), unreadable: problem };
  const whole = stored.problem === undefined ? { ...item, envelope: stored.json } : item;
  // The sweep claims a PENDING row on its lease; without one, the row would never be published.
  const defaults = { attempts: 0, ...(item.status === 'PENDING' ? {} : { leaseUntil: 0 }) };
  return read<OutboxRow>(whole, OUTBOX, { statuses: OUTBOX_STATUSES, defaults });
}

/** Reads the pointer to a DEAD event. */
export function readDeadPointer(item: Item): DeadPointer | UnreadableRow {
  return read<DeadPointer>(item, DEAD);
}

/** Reads the pointer to a REJECTED message. */
export function readRejectedPointer(item: Item): RejectedPointer | UnreadableRow {
  return read<RejectedPointer>(item, REJECTED);
}

/** Reads the hint at a FAILED message. */
export function readFailedHint(item: Item): FailedHint | UnreadableRow {
  return read<FailedHint>(item, FAILED);
}

/** Reads the record of an operator's change. */
export function readOperation(item: Item): OperationRow | UnreadableRow {
  return read<OperationRow>(item, OPERATION);
}

/** The differences between kinds of rows besides their attributes. */
interface Rules<R extends Key> {
  /** The allowed statuses. @default the row has no status */
  readonly statuses?: readonly string[];
  /** The values of required attributes that may be missing. @default none may be missing */
  readonly defaults?: Partial<R>;
}

/**
 * Returns the attributes of the shape, or the reason why they cannot be read. A newer schema is reported first, because it
 * explains every other problem. Every version writes its schema, so a row without one was not written by a newer version.
 */
function read<R extends Key>(
  item: Item,
  shape: Shape<R>,
  { statuses, defaults = {} }: Rules<R> = {},
): R | UnreadableRow {
  const key = keyOf(item);
  const whole: Item = { schema: SCHEMA, ...defaults, ...item };
  const problem =
    schemaProblem(whole.schema) ?? statusProblem(whole.status, statuses) ?? shapeProblem(whole, shape);
  if (problem !== undefined) return { ...key, unreadable: problem };
  const names = [...Object.keys(shape), 'schema', ...(statuses === undefined ? [] : ['status'])];
  const attributes = names.filter((name) => whole[name] !== undefined).map((name) => [name, whole[name]]);
  return { ...key, ...Object.fromEntries(attributes) } as R;
}

function keyOf({ PK, SK }: Item): Key {
  return { PK: String(PK), SK: String(SK) };
}

/** The reason why a schema cannot be read, as the end of a sentence; `undefined` if this version reads it. */
export function schemaProblem(schema: unknown): string | undefined {
  if (typeof schema !== 'number' || !Number.isSafeInteger(schema) || schema < 1)
    return 'its "schema" is not a whole number from 1';
  return schema > SCHEMA ? `its "schema" is ${schema}, and this version reads up to ${SCHEMA}` : undefined;
}

/** The reason why the status of an inbox row cannot be read, as the end of a sentence; `undefined` if this version reads it. */
export function inboxStatusProblem(status: unknown): string | undefined {
  return statusProblem(status, INBOX_STATUSES);
}

function statusProblem(status: unknown, known: readonly string[] | undefined): string | undefined {
  if (known === undefined || known.some((one) => one === status)) return undefined;
  if (status === undefined) return 'it has no "status"';
  const said = typeof status === 'string' ? JSON.stringify(status.slice(0, 40)) : 'not a string';
  return `its "status" is ${said}; expected ${known.join(', ')}`;
}

function shapeProblem(item: Item, shape: Readonly<Record<string, `${Kind}?` | Kind>>): string | undefined {
  for (const [name, kind] of Object.entries(shape)) {
    const value: unknown = item[name];
    const { is, called } = KINDS[kind.replace('?', '') as Kind];
    if (value === undefined && kind.endsWith('?')) continue;
    if (value === undefined) return `it has no "${name}"`;
    if (!is(value)) return `its "${name}" is not ${called}`;
  }
  return undefined;
}

const KINDS: Readonly<Record<Kind, { is(value: unknown): boolean; readonly called: string }>> = {
  text: { is: (value) => typeof value === 'string', called: 'a string' },
  // Whether it is JSON is checked where it is parsed; but no code may traverse JSON that is too deep.
  json: {
    is: (value) => typeof value === 'string' && !isDeeperThan(value, JSON_DEPTH_MAX),
    called: `a JSON string of at most ${JSON_DEPTH_MAX} levels`,
  },
  time: { is: isTime, called: 'a time in epoch milliseconds' },
  number: { is: (value) => Number.isSafeInteger(value), called: 'a whole number' },
  flag: { is: (value) => typeof value === 'boolean', called: 'true or false' },
  texts: {
    is: (value) => value instanceof Set && [...value].every((text) => typeof text === 'string'),
    called: 'a set of strings',
  },
  list: { is: Array.isArray, called: 'a list' },
  effects: {
    is: (value) => isMap(value) && Object.values(value).every(isEffect),
    called: 'a map of side effects',
  },
  order: {
    is: (value) => isMap(value) && shapeProblem(value, PLACE) === undefined,
    called: 'the number of an event in an order',
  },
  event: { is: isEventId, called: 'the id of an event' },
};

function isEffect(value: unknown): boolean {
  return (
    isMap(value) &&
    statusProblem(value.status, EFFECT_STATUSES) === undefined &&
    shapeProblem(value, EFFECT) === undefined
  );
}

function isMap(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
