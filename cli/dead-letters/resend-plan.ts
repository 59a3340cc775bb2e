import { entryBytes, PUT_EVENTS_BYTES_MAX } from '../../lambdas/runtime/bus/event-bus.ts';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/clock.ts';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { type Envelope, HOPS_MAX } from '../../lambdas/runtime/event.ts';
import { isDeeperThan, PAYLOAD_DEPTH_MAX, parseJson } from '../../lambdas/runtime/json-depth.ts';
import { type ConsumerDeadLetters, depthOf } from '../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEvent } from '../../lambdas/runtime/operations/delivered-event.ts';
import { consumersOf, mailroomEventsOf } from '../../lambdas/runtime/operations/subscriptions.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { EffectStatus, InboxRow } from '../../lambdas/runtime/store/rows.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { checkBodies } from '../frame/invoke.ts';
import { minuteAfter } from '../frame/output.ts';
import { type Place, placeOf } from '../frame/place.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import { jsonObject, textOf } from '../reading/json-object.ts';
import { readInbox } from '../reading/message-reader.ts';
import { replacementOf } from '../reading/resent-event.ts';
import { type DataChange, dataChanges } from './data-changes.ts';
import type { DeadLetter } from './dead-letters.ts';
import { lossyNumberText } from './lossy-number.ts';
import { type JudgedDeadLetter, judgeDeadLetters, settled } from './redrive-plan.ts';
import { resentEventId } from './resent-id.ts';
import type { DeadLetterSource } from './sources.ts';

/** The plan of a resend. */
export interface ResendPlan {
  readonly place: Place;
  readonly source: ConsumerDeadLetters;
  /** The dead letter whose event is replaced. */
  readonly deadLetter: DeadLetter;
  readonly eventId: string;
  readonly changes: readonly DataChange[];
  /** The message of the new event, as if it had been received, with the verdict on it. */
  readonly judged: JudgedDeadLetter & { readonly eventId: string };
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
  const data = parsedData(text);
  const lossy = lossyNumberText(text);
  if (lossy === undefined) return data;
  throw new MailroomError('BAD_ARGUMENT', `--data: ${lossy} Write it as a string, if the event allows that.`);
}

function parsedData(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
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
  session: Session,
  source: ConsumerDeadLetters,
  deadLetter: DeadLetter,
  { data, repeatEffects = false }: NewData,
): Promise<ResendPlan> {
  const { table, lambda, queues, clock } = session;
  const { consumer } = source;
  const { bus, envelope } = readableEvent(deadLetter);
  const newEventId = resentEventId(consumer.name, envelope.eventId, data);
  refuseSettled(session, deadLetter, newEventId, consumer.name);
  if (!repeatEffects) refuseEffects(deadLetter, consumer.name);
  refuseRunningEffects(deadLetter, clock.now());
  const changes = dataChanges(envelope.data, data);
  if (changes.length === 0) throw cannot('Its data would not change. Redrive the dead letter.');
  const detail = JSON.stringify(replacement(envelope, newEventId, data));
  refuseTooLarge({ source: bus, detailType: envelope.type, detail, traceHeader: textOf(envelope.traceId) });
  refuseFiltered(session, source, { source: bus, type: envelope.type }, data);
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
    row: await readInbox(table, consumer.name, newEventId, true),
  };
  const check = (of: typeof consumer, bodies: readonly string[]) => checkBodies(lambda, of, bodies);
  const [verdict] = await judgeDeadLetters({ table, check, now: clock.now() }, source, [message]);
  const { eventId } = envelope;
  const judged = {
    ...message,
    verdict: verdict?.verdict ?? 'unreadable',
    code: verdict?.code,
    message: verdict?.message,
  };
  return { place: await placeOf(session), source, deadLetter, eventId, changes, judged };
}

/** The new event: everything but its id, its cause and its data is that of the event that it replaces. */
function replacement(envelope: Envelope, newEventId: string, data: unknown): Envelope {
  const hops = Number.isSafeInteger(envelope.hops) ? Number(envelope.hops) : 0;
  const caused = { causationId: envelope.eventId, hops: Math.min(hops + 1, HOPS_MAX) };
  return { ...envelope, eventId: newEventId, ...caused, data };
}

/** @throws `CANNOT_RESEND` if it is not a Mailroom event that its consumer can read */
function readableEvent({ eventId, received }: DeadLetter): {
  readonly bus: string;
  readonly envelope: Envelope;
} {
  const body = jsonObject(received?.body);
  if (eventId === undefined || body === undefined)
    throw cannot(
      'Its envelope cannot be read, so there is no event to replace. Discard it, and have its producer write a correct one.',
    );
  if (!isEventId(eventId))
    throw cannot(
      'It is a foreign event, whose identity may depend on its data. Have its publisher send a correct one, then discard this one.',
    );
  return { bus: textOf(body.source) ?? '', envelope: body.detail as Envelope };
}

/** Refuses a dead letter whose event may still run, has run, or is replaced by another event. */
function refuseSettled(
  { clock, commandLine }: Pick<Session, 'clock' | 'commandLine'>,
  { row, eventId = '' }: DeadLetter,
  newEventId: string,
  consumer: string,
): void {
  const other = replacementOf(row);
  if (other === newEventId) return; // the same resend, repeated
  if (other !== undefined)
    throw new MailroomError(
      'ALREADY_RESENT',
      `Event ${eventId} was already sent again with other data, as ${other}. Look at that one: \`${commandLine(shell`why ${other}`)}\`. ` +
        'If its data is wrong too, resend its own dead letter.',
    );
  switch (settled(row, clock.now())) {
    case 'handled':
      throw cannot(
        `${consumer} has already processed event ${eventId}, or an operator has discarded it. Discard the dead letter.`,
      );
    case 'busy':
      throw cannot(`A worker holds event ${eventId}, or it is retried soon. Repeat the command in a minute.`);
    case 'unreadable':
      throw cannot(
        `The row of event ${eventId} at ${consumer} cannot be read: \`${commandLine(shell`why ${eventId}`)}\` shows it.`,
      );
    default:
  }
}

/**
 * Refuses to replace an event whose handler has started side effects: those of the new event have other idempotency keys, so the
 * provider would repeat them. A released effect may have happened too, and only its key would tell.
 */
function refuseEffects({ row, eventId }: DeadLetter, consumer: string): void {
  if (effectsText(row) === '') return;
  throw cannot(
    `The handler of ${consumer} has started side effects of event ${eventId}: ${effectsText(row)}. A new event has new idempotency keys, so they would run again. ` +
      'If their providers confirm that nothing happened, repeat the command with --repeat-effects.',
  );
}

/** Refuses while a function may still call a provider: its answer today would not be its answer in a minute. */
function refuseRunningEffects({ row, eventId }: DeadLetter, now: number): void {
  const running = Object.values(effectsOf(row)).filter(({ status }) => status === 'IN_PROGRESS');
  const until = Math.max(...running.map(({ endsBy }) => endsBy + CLOCK_SKEW_MS));
  if (until < now) return;
  throw cannot(
    `A function may still run side effects of event ${eventId} until ${minuteAfter(until)}: ${effectsText(row)}. Ask their providers and repeat the command then.`,
  );
}

/** The side effects that were started for a message, by name. */
export function effectsOf(row: DeadLetter['row']): NonNullable<InboxRow['effects']> {
  return readable(row)?.effects ?? {};
}

/** E.g. `charge (completed)`; empty if there is none. */
export function effectsText(row: DeadLetter['row']): string {
  return Object.entries(effectsOf(row))
    .map(([name, { status }]) => `${name} (${EFFECT_WORDS[status]})`)
    .join(', ');
}

const EFFECT_WORDS: Readonly<Record<EffectStatus, string>> = {
  COMPLETED: 'completed',
  IN_PROGRESS: 'no result is stored',
  RELEASED: 'failed',
};

function refuseTooLarge(entry: Parameters<typeof entryBytes>[0]): void {
  const bytes = entryBytes(entry);
  if (bytes < PUT_EVENTS_BYTES_MAX) return;
  throw new MailroomError(
    'EVENT_TOO_LARGE',
    `With the new data the event takes ${bytes} bytes; an event must have fewer than ${PUT_EVENTS_BYTES_MAX}. Store the large part elsewhere (S3), and put its address in the event.`,
  );
}

/** The queue has no filter, so the filter of the consumer's subscription is applied here. */
function refuseFiltered(
  { directory }: Pick<Session, 'directory'>,
  { consumer }: ConsumerDeadLetters,
  { source, type }: { readonly source: string; readonly type: string },
  data: unknown,
): void {
  const declares = mailroomEventsOf(consumer).some((event) => event.source === source && event.type === type);
  const own = { ...directory, consumers: [consumer] };
  if (!declares || consumersOf(own, { source, type, data: () => data }).length > 0) return;
  throw cannot(
    `The filter of ${consumer.name} excludes ${type} with this data. Change the data, or discard the dead letter.`,
  );
}

/** The refusal of a resend. */
export function cannot(text: string): MailroomError {
  return new MailroomError('CANNOT_RESEND', text);
}
