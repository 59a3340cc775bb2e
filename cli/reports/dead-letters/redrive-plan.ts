import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { entryBytes, PUT_EVENTS_BYTES_MAX } from '../../../lambdas/runtime/bus/event-bus.ts';
import { STALE, TOO_OLD } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { forgottenBecause } from '../../../lambdas/runtime/inbox/inbox-history.ts';
import { effectStates, hasNoEffect } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { SweepRange } from '../../../lambdas/runtime/relay/sweep-range.ts';
import type { Check } from '../../../lambdas/runtime/sources/sqs/check-messages.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxHistory } from '../../../lambdas/runtime/store/inbox-row.ts';
import { SHARDS_MAX } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { FoundProblem } from '../checks/check.ts';
import type { OrderReader } from '../order/order-of-aggregate.ts';
import type { DeadLetter, DeadLetterSource } from './dead-letters.ts';
import { pastPlaces, placesIn, placesInOrder, type RedrivePlace } from './redrive-order.ts';
import { type SettledVerdict, settled, supersededText, unsentReplacement } from './standing.ts';

/** Every {@link RedriveVerdict}, in the order in which a plan counts them. */
export const REDRIVE_VERDICTS = [
  'runs',
  'fails',
  'handled',
  'superseded',
  'stale',
  'unsent',
  'too-old',
  'out-of-order',
  'busy',
  'unreadable',
  'row-deleted',
] as const;

/**
 * The effect of a redrive on a dead letter: it is already `handled`; it `runs` again; it would be absorbed without a run, because it is
 * `superseded`: a number of its aggregate from its own on was applied or passed over; it still `fails`, because today's code cannot
 * read it; it is `stale`: it has waited for longer than its handler takes; it is replaced by an event that may be `unsent`; it is `too-old` to know whether it ran before; it is `out-of-order`,
 * because it would wait in vain for an earlier event of its aggregate; it is `busy`, because a
 * worker holds its lease or it is retried soon; its row is `unreadable`; or its `row-deleted` by hand leaves its side effects unknown.
 */
export type RedriveVerdict = (typeof REDRIVE_VERDICTS)[number];

/** A dead letter with its {@link RedriveVerdict}. */
export interface JudgedDeadLetter extends DeadLetter {
  readonly verdict: RedriveVerdict;
  /** Why it would not run: an error code, e.g. `INVALID_PAYLOAD`, and its message. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  /** The rule of its consumer that changes events, which is why it cannot be read. */
  readonly rule?: FoundProblem | undefined;
  /** Its place among the events of its aggregate, if its consumer has a strict order and it would run, or is out of order. */
  readonly place?: RedrivePlace | undefined;
}

/** Dependencies of {@link judgeDeadLetters}. */
export interface JudgeDeps {
  readonly stored: StoredRows;
  /** Returns which bodies the deployed consumer can read. */
  readonly check: (consumer: ConsumerEntry, bodies: readonly string[]) => Promise<Check[]>;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Finds a rule of the consumer that changes its events. @default the rules are not looked at */
  readonly changing?: ((consumer: ConsumerEntry) => Promise<FoundProblem | undefined>) | undefined;
  /** Reads the orders of strict consumers. @default their orders are not judged */
  readonly orders?: OrderReader | undefined;
}

/** Judges each dead letter. It changes nothing. */
export async function judgeDeadLetters(
  deps: JudgeDeps,
  source: DeadLetterSource,
  deadLetters: readonly DeadLetter[],
): Promise<JudgedDeadLetter[]> {
  if (source.kind === 'dead')
    return eachOf(deadLetters, (deadLetter) => judgeDeadEvent(deps.stored, deadLetter));
  if (source.kind === 'stream') return deadLetters.map(judgeStreamBatch);
  const { consumer } = source;
  const open = deadLetters.filter((deadLetter) => settled(deadLetter, deps.now) === undefined);
  const bodies = open.map(({ received }) => received?.body ?? '');
  const checks = await deps.check(consumer, bodies);
  const history = await deps.stored.inbox.history(consumer.name);
  const { stored, orders } = deps;
  const places = placesIn(consumer, open, (index) => checks[index]);
  const past = await pastPlaces(stored, places);
  const isUnread = (deadLetter: DeadLetter) =>
    deadLetter.eventId === undefined && checks[open.indexOf(deadLetter)]?.ok === false;
  const rule = open.some(isUnread) ? await deps.changing?.(consumer) : undefined;
  const isOrdered = (deadLetter: DeadLetter) => places.has(deadLetter) && { isOrdered: true };
  const judged = deadLetters.map((deadLetter): JudgedDeadLetter => {
    const verdict = settled(deadLetter, deps.now);
    if (verdict !== undefined) return { ...deadLetter, verdict, message: settledText(deadLetter, verdict) };
    // Before what its code says of it: the gate of its consumer comes first.
    const over = past.get(deadLetter);
    if (over !== undefined) return { ...deadLetter, ...over };
    const check = checks[open.indexOf(deadLetter)];
    const tooOld = isTooOld(deadLetter, consumer, history, deps.now);
    // Before its payload is read.
    if (!tooOld && isStale(deadLetter, check, deps.now))
      return { ...deadLetter, verdict: 'stale', code: STALE };
    if (check?.ok === false)
      return {
        ...deadLetter,
        verdict: 'fails',
        code: check.code,
        message: check.message,
        ...(isUnread(deadLetter) && { rule }),
      };
    if (tooOld) return { ...deadLetter, verdict: 'too-old', code: TOO_OLD };
    return { ...deadLetter, ...isOrdered(deadLetter), verdict: 'runs' };
  });
  if (orders === undefined) return judged;
  const running = deadLetters.flatMap((deadLetter, index) => {
    const [one, place] = [judged[index], places.get(deadLetter)];
    return one?.verdict === 'runs' && place !== undefined ? [[one, place] as const] : [];
  });
  const inOrder = await placesInOrder(orders, source, new Map(running));
  return judged.map((deadLetter): JudgedDeadLetter => {
    const place = inOrder.get(deadLetter);
    if (place?.block === undefined) return { ...deadLetter, place };
    const { text: message } = place.block;
    return { ...deadLetter, place, verdict: 'out-of-order', code: 'OUT_OF_ORDER', message };
  });
}

/** The details of a verdict that the inbox rows alone decide. */
function settledText(deadLetter: DeadLetter, verdict: SettledVerdict): string | undefined {
  if (verdict === 'unsent') return unsentText(deadLetter);
  if (verdict === 'superseded') return supersededText(deadLetter);
  const last = deadLetter.replacements?.at(-1)?.row ?? deadLetter.row;
  return isUnreadable(last) ? last.unreadable : undefined;
}

/** Names the event in place of a dead letter's event. */
export function unsentText(deadLetter: DeadLetter): string {
  return `replaced by ${unsentReplacement(deadLetter)}, which its consumer has not received`;
}

/** True if the consumer would reject it. */
export function isTooOld(
  { row, eventId = '' }: Pick<DeadLetter, 'row' | 'eventId'>,
  { inboxSince, inboxRetentionDays }: ConsumerEntry,
  history: InboxHistory | undefined,
  now: number,
): boolean {
  if (row !== undefined)
    return !isUnreadable(row) && row.status === 'REJECTED' && row.reason === TOO_OLD && !row.runAnyway;
  const inbox = { clock: { now: () => now }, inboxRetentionDays, inboxSince, memory: { history } };
  return forgottenBecause(inbox, eventId) !== undefined;
}

/** True if the consumer would discard it: its handler no longer takes it, and no operator allowed it, and no effect of it has happened, nor may have. */
function isStale({ row }: DeadLetter, check: Check | undefined, now: number): boolean {
  if (check?.staleFrom === undefined || now <= check.staleFrom || readable(row)?.runAnyway) return false;
  return hasNoEffect(effectStates(readable(row)?.effects ?? {}, now));
}

async function judgeDeadEvent({ outbox }: StoredRows, deadLetter: DeadLetter): Promise<JudgedDeadLetter> {
  if (!isEventId(deadLetter.id))
    return { ...deadLetter, verdict: 'unreadable', message: 'its pointer does not name an event' };
  const row = await outbox.byId(deadLetter.id, true);
  if (isUnreadable(row)) return { ...deadLetter, verdict: 'unreadable', message: row.unreadable };
  if (row?.status !== 'DEAD') return { ...deadLetter, verdict: 'handled' };
  const message = tooLarge(row);
  return message === undefined
    ? { ...deadLetter, verdict: 'runs' }
    : { ...deadLetter, verdict: 'fails', code: 'EVENT_TOO_LARGE', message };
}

/** Says that a DEAD event is too large to be published, by its own size; `undefined` if it is not. */
export function tooLarge({ source, type, envelope, traceId }: OutboxRow): string | undefined {
  const bytes = entryBytes({ source, detailType: type, detail: envelope, traceHeader: traceId });
  return bytes < PUT_EVENTS_BYTES_MAX
    ? undefined
    : `It takes ${bytes} bytes; EventBridge accepts fewer than ${PUT_EVENTS_BYTES_MAX}.`;
}

function judgeStreamBatch(deadLetter: DeadLetter): JudgedDeadLetter {
  if (streamRange(deadLetter) !== undefined) return { ...deadLetter, verdict: 'runs' };
  return {
    ...deadLetter,
    verdict: 'fails',
    code: 'UNREADABLE_DEAD_LETTER',
    message: 'It does not name a batch of the stream.',
  };
}

/** The most by which an event id may be older than its row: commit refuses older ones, and clocks differ. */
const ID_BEFORE_ROW_MS = 6 * MINUTE_MS;

/**
 * The minutes in which the events of a stream batch were created, in every shard. The mapping's dead letter names the batch by the times
 * of its first and last record; the records are in the outbox. The stream relay did not report their shards to the sweep, so any of them may be
 * one that the sweep does not read.
 *
 * @returns `undefined` if the dead letter does not name a batch
 */
export function streamRange({ received }: Pick<DeadLetter, 'received'>): SweepRange | undefined {
  const batch = jsonObject(received?.body)?.DDBStreamBatchInfo as
    | Readonly<Record<string, unknown>>
    | undefined;
  const first = Date.parse(String(batch?.approximateArrivalOfFirstRecord));
  const last = Date.parse(String(batch?.approximateArrivalOfLastRecord));
  if (!(first <= last)) return undefined; // also where one of them is not a time
  return { since: first - ID_BEFORE_ROW_MS, until: last + MINUTE_MS, shards: SHARDS_MAX };
}
