import { createHash } from 'node:crypto';
import { isMailroomError, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { isDeeperThan, PAYLOAD_DEPTH_MAX, textOf } from '../../../lambdas/runtime/base/json.ts';
import { type Envelope, HOPS_MAX } from '../../../lambdas/runtime/events/event.ts';
import { type ConsumerDeadLetters, depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEvent } from '../../../lambdas/runtime/operations/delivered-event.ts';
import { eventIdTime, mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { refuseUnreached } from '../../deployment/inbox-home.ts';
import { checkBodies } from '../../deployment/invoke.ts';
import { type Place, placeOf } from '../../deployment/place.ts';
import type { DeadLetter, DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { type JudgedDeadLetter, judgeDeadLetters } from '../../reports/dead-letters/redrive-plan.ts';
import type { EventAtConsumer } from '../../reports/dead-letters/standing.ts';
import { exactJson } from '../../terminal/exact-json.ts';
import { shell } from '../../terminal/shell.ts';
import { type DataChange, dataChanges } from './data-changes.ts';
import {
  cannot,
  readableEvent,
  refuseEffects,
  refuseFiltered,
  refusePassedOver,
  refuseRunningEffects,
  refuseSettled,
  refuseTooLarge,
} from './resend-refusals.ts';

/** The plan of a resend. */
export interface ResendPlan {
  readonly place: Place;
  readonly source: ConsumerDeadLetters;
  /** The dead letter whose event is replaced. */
  readonly deadLetter: DeadLetter;
  readonly eventId: string;
  /** The event that is discarded: that of the dead letter, or a replacement of it that was never received. */
  readonly replaced: EventAtConsumer;
  readonly changes: readonly DataChange[];
  /** The message of the new event, as if it had been received, with the verdict on it. */
  readonly judged: JudgedDeadLetter & { readonly eventId: string };
}

/** The events that new data replaces, in order, and the id of the event in their place. */
interface Replacing {
  readonly replaced: readonly [EventAtConsumer, ...EventAtConsumer[]];
  readonly newEventId: string;
}

/** The new data of an event. */
export interface NewData {
  /** Parsed. */
  readonly data: unknown;
  /** Side effects that have run for the old event may run again. @default false */
  readonly repeatEffects?: boolean | undefined;
}

/** The sources whose dead letters have one consumer. @throws `CANNOT_RESEND` for another source */
export function consumerSource(source: DeadLetterSource): ConsumerDeadLetters {
  if (source.kind === 'consumer' || source.kind === 'rule') return source;
  throw cannot(
    source.kind === 'dead'
      ? 'A DEAD event was not published yet, so all of its consumers would need the new data: have its producer write a correct event, then discard this one.'
      : 'A dead letter of the stream names a batch of events and holds no data. Redrive it.',
  );
}

/**
 * Reads the new data of an event.
 *
 * @throws `BAD_ARGUMENT` if it is not JSON, is nested too deeply, or has a number that would be sent as another one
 */
export function newData(text: string): unknown {
  if (isDeeperThan(text, PAYLOAD_DEPTH_MAX))
    throw new MailroomError('BAD_ARGUMENT', `--data is nested more than ${PAYLOAD_DEPTH_MAX} levels deep.`);
  try {
    return exactJson(text);
  } catch (error) {
    if (isMailroomError(error, 'BAD_ARGUMENT'))
      throw new MailroomError('BAD_ARGUMENT', `--data: ${error.message}`);
    // The parser's own message quotes the data.
    throw new MailroomError(
      'BAD_ARGUMENT',
      '--data is not JSON. It must hold the whole new data of the event.',
    );
  }
}

/**
 * Plans to send the event of a dead letter with other data, as a new event for its consumer. It changes nothing.
 *
 * @throws `CANNOT_RESEND`, `ALREADY_RESENT`, `EVENT_TOO_LARGE`; each says what to do
 */
export async function planResend(
  deployment: Deployment,
  source: ConsumerDeadLetters,
  deadLetter: DeadLetter,
  wanted: NewData,
): Promise<ResendPlan> {
  const { data } = wanted;
  const { stored, clients, queues, clock } = deployment;
  const { consumer } = source;
  refuseUnreached(consumer, deployment.database?.engine);
  const { bus, envelope } = readableEvent(deadLetter);
  const { replaced, newEventId } = replacementBy(deployment, consumer.name, deadLetter, wanted);
  const [{ eventId }, ...replacedBefore] = replaced;
  // The data of a large payload is in S3, where the command does not read it.
  const changes = dataChanges(envelope.data ?? null, data);
  if (changes.length === 0 && replacedBefore.length === 0)
    throw cannot('Its data would not change. Redrive the dead letter.');
  const made = [...replacedBefore.map((event) => event.eventId), newEventId];
  const detail = JSON.stringify(made.reduce((cause, id) => replacement(cause, id, data), envelope));
  refuseTooLarge({ source: bus, detailType: envelope.type, detail, traceHeader: textOf(envelope.traceId) });
  refuseFiltered(deployment, source, { source: bus, type: envelope.type }, data);
  const depth = await depthOf(queues, consumer.queue);
  if (depth === undefined)
    throw cannot(
      `The queue of ${consumer.name} does not exist. mailroom status prints the command that restores it.`,
    );
  const [, , , region = '', account = ''] = depth.arn.split(':');
  const event = { source: bus, type: envelope.type, envelope: detail };
  const body = deliveredEvent(event, { region, account, time: clock.now() });
  const message: DeadLetter & { readonly eventId: string } = {
    ...deadLetter,
    id: newEventId,
    eventId: newEventId,
    fingerprint: undefined,
    lastError: undefined,
    received: { messageId: newEventId, receiptHandle: '', body, sentAt: clock.now(), attributes: {} },
    row: await stored.inbox.byEvent(consumer.name, newEventId, true),
    replacements: undefined,
    isRowDeleted: undefined,
  };
  const check = (of: typeof consumer, bodies: readonly string[]) => checkBodies(clients.lambda, of, bodies);
  const [verdict] = await judgeDeadLetters({ stored, check, now: clock.now() }, source, [message]);
  if (verdict?.verdict === 'runs') await refusePassedOver(stored, consumer, deadLetter);
  const judged = {
    ...message,
    verdict: verdict?.verdict ?? 'unreadable',
    code: verdict?.code,
    message: verdict?.message,
  };
  return {
    place: await placeOf(deployment),
    source,
    deadLetter,
    eventId,
    replaced: replaced.at(-1) ?? replaced[0],
    changes,
    judged,
  };
}

/** The new event: everything but its id, its cause and its data is that of the event that it replaces. */
function replacement(envelope: Envelope, newEventId: string, data: unknown): Envelope {
  const hops = Number.isSafeInteger(envelope.hops) ? Number(envelope.hops) : 0;
  const caused = { causationId: envelope.eventId, hops: Math.min(hops + 1, HOPS_MAX) };
  return { ...envelope, eventId: newEventId, ...caused, payload: undefined, data };
}

/**
 * The events that new data replaces, and the id of the event in their place. The last of them is discarded: the event of the dead
 * letter, or a replacement of it that its consumer has not received. So each event names one replacement at most, and no chain of
 * them has a cycle.
 *
 * @throws `CANNOT_RESEND` if the event may still run, has run, or has started effects; `ALREADY_RESENT` if its replacement was received
 */
export function replacementBy(
  deployment: Pick<Deployment, 'clock' | 'commandLine'>,
  consumer: string,
  deadLetter: DeadLetter,
  { data, repeatEffects = false }: NewData,
): Replacing {
  const replacing = replacingBy(deployment, consumer, deadLetter, data);
  const now = deployment.clock.now();
  for (const event of replacing.replaced) {
    if (!repeatEffects) refuseEffects(event, consumer, now);
    refuseRunningEffects(event, consumer, now);
  }
  return replacing;
}

function replacingBy(
  deployment: Pick<Deployment, 'clock' | 'commandLine'>,
  consumer: string,
  deadLetter: DeadLetter,
  data: unknown,
): Replacing {
  const { row, eventId = '', replacements = [] } = deadLetter;
  const events = [{ eventId, row }, ...replacements] as const;
  const idAfter = (event: EventAtConsumer) => resentEventId(consumer, event.eventId, data);
  const last = replacements.at(-1);
  if (last === undefined) {
    refuseSettled(deployment, deadLetter, consumer);
    return { replaced: events, newEventId: idAfter({ eventId, row }) };
  }
  const before = events.at(-2) ?? last;
  // The same resend, repeated.
  if (idAfter(before) === last.eventId)
    return { replaced: [{ eventId, row }, ...replacements.slice(0, -1)], newEventId: last.eventId };
  if (last.row === undefined) return { replaced: events, newEventId: idAfter(last) };
  throw new MailroomError(
    'ALREADY_RESENT',
    `Event ${eventId} was already sent again with other data, as ${last.eventId}. Look at that one: \`${deployment.commandLine(shell`why ${last.eventId}`)}\`. ` +
      'If its data is wrong too, resend its own dead letter.',
  );
}

/** The number of shards that an event id can name. */
const SHARDS_MAX = 256;

/**
 * Computes the id of the event that replaces another one at a consumer. The same replacement always has the same id, so repeating a
 * resend sends a duplicate that the inbox absorbs. It has the time of the event that it replaces: when its inbox row may have
 * expired, the inbox refuses it as too old.
 *
 * @param data - its data, parsed; the order of members does not count
 *
 * @example
 * ```ts
 * resentEventId('payments', '01a1fe32-7358-7e75-8b69-4ee374467501', { amountCents: 100 });
 * ```
 */
export function resentEventId(consumer: string, eventId: string, data: unknown): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(['resend', consumer, eventId, sorted(data)]))
    .digest();
  return mintEventId(eventIdTime(eventId), SHARDS_MAX, () => digest.subarray(0, 16));
}

/** Objects as sorted lists of their members. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, inner]) => [name, sorted(inner)] as const);
  return { members: members.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
