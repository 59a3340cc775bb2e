import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { StartedEffect } from '../../../lambdas/runtime/inbox/started-effects.ts';
import {
  type DeadLetterQueue,
  deadLetterQueues,
  readDeadLetter,
} from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { DeadPointer } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { readDeployed } from '../../deployment/deployed-reading.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { openEffects } from '../../deployment/effects.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import { eachOf, readSweepState } from '../../deployment/rows-reader.ts';
import { withoutQueue } from '../../deployment/source-consumer.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { inboxId, type MessageStanding, readStanding } from './standing.ts';

/** A message in a dead-letter queue, or a DEAD event; of a message, with its standing at its consumer when it was received. */
export interface DeadLetter extends MessageStanding {
  /** SQS's message id; for a DEAD event its event id. */
  readonly id: string;
  readonly eventId: string | undefined;
  readonly type: string | undefined;
  /** First send, or when the event became DEAD, epoch milliseconds; absent if its pointer cannot be read. */
  readonly sentAt: number | undefined;
  /** When it is permanently deleted, epoch milliseconds; absent for DEAD events, which are kept. */
  readonly expiresAt: number | undefined;
  /** The fingerprint of its row; for a rule EventBridge's error, for the stream the mapping's condition; without a row, what that means. */
  readonly fingerprint: string | undefined;
  /** The last error of its row. */
  readonly lastError: string | undefined;
  /** Its consumer has no row of it: no worker has claimed it. @default false */
  readonly isNeverClaimed?: boolean | undefined;
  /** The side effects that have happened, or may have, while its work is not done. @default none */
  readonly effects?: readonly StartedEffect[] | undefined;
  /** Its message has a number in the order of its consumer, as the plan of a redrive has found. @default false */
  readonly isOrdered?: boolean | undefined;
  /** Its event could not be read, and its consumer's deployed function could not be asked whether it can. @default false */
  readonly isReadingUnknown?: boolean | undefined;
  /** No queue has it any more: it is made from the outbox row of its event. @default false */
  readonly isGone?: boolean | undefined;
  /** As received from SQS. */
  readonly received?: QueueMessage | undefined;
}

/** The dead letters of a source that could be received. */
export interface ReceivedDeadLetters {
  /** Oldest first. */
  readonly deadLetters: readonly DeadLetter[];
  /** All dead letters of the source; approximate for queues. */
  readonly total: number;
}

/** Dependencies of {@link receiveDeadLetters}. */
export interface DeadLetterDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly stored: StoredRows;
  readonly queues: Queues;
  readonly clock: Clock;
}

/**
 * Receives the dead letters of a source. Those of a queue stay hidden until they are put back.
 *
 * @param options.limit - at most this many
 * @param options.hideS - seconds until they reappear if they are not put back
 */
export async function receiveDeadLetters(
  deps: DeadLetterDeps,
  source: DeadLetterSource,
  options: { readonly limit: number; readonly hideS: number },
): Promise<ReceivedDeadLetters> {
  if (source.kind === 'dead') return deadEvents(deps, options.limit);
  const { retentionMs, waiting, inFlight } = await deps.queues.depth(source.url);
  const received = await deps.queues.receive(source.url, options);
  const deadLetters: DeadLetter[] = await eachOf(received, (message) =>
    explained(deps, source, message, retentionMs),
  );
  return { deadLetters, total: Math.max(deadLetters.length, waiting + inFlight) };
}

/** Makes received dead letters visible again. Deleted ones are ignored; those that fail reappear when `hideS` is over. */
export async function putBack(
  queues: Queues,
  source: DeadLetterSource,
  deadLetters: readonly DeadLetter[],
): Promise<void> {
  if (source.kind === 'dead') return;
  await eachOf(deadLetters, async ({ received }) => {
    if (received !== undefined) await queues.show(source.url, received).catch(() => {});
  });
}

/** The code for which a message is rejected, e.g. `INVALID_PAYLOAD`; `undefined` if it is not. */
export function rejectionCode(row: DeadLetter['row']): string | undefined {
  const known = readable(row);
  return known?.status === 'REJECTED' ? known.reason : undefined;
}

/** Combines a dead letter with its standing at its consumer. */
async function explained(
  deps: DeadLetterDeps,
  source: DeadLetterQueue,
  message: QueueMessage,
  retentionMs: number,
): Promise<DeadLetter> {
  const { eventId, type, cause, expiresAt } = readDeadLetter(source, message, retentionMs);
  const { messageId: id, sentAt } = message;
  const letter = { id, eventId, type, sentAt, expiresAt, received: message };
  if (source.kind === 'stream') return { ...letter, fingerprint: cause, lastError: undefined };
  const standing = await standingOf(deps, source.consumer, letter);
  // A message that could not be read at first has its row under the id of its body.
  const row = standing.row ?? standing.unreadRow;
  if (source.kind === 'consumer' && eventId !== undefined && row === undefined && !standing.isRowDeleted)
    return {
      ...letter,
      fingerprint: NEVER_CLAIMED,
      lastError: undefined,
      isNeverClaimed: true,
      ...standing,
    };
  const { fingerprint, lastError } = standing.isRowDeleted ? ROW_DELETED : (readable(row) ?? {});
  return { ...letter, fingerprint: cause ?? fingerprint, lastError: cause ?? lastError, ...standing };
}

/** The standing of a dead letter under the id that it has, and its open effects. */
async function standingOf(
  { stored, clock }: Pick<DeadLetterDeps, 'stored' | 'clock'>,
  { name }: Pick<ConsumerEntry, 'name'>,
  letter: Pick<DeadLetter, 'eventId' | 'received'>,
): Promise<MessageStanding & Pick<DeadLetter, 'effects'>> {
  const standing = await readStanding(stored, name, letter);
  return { ...standing, effects: openEffects(inboxId(letter), name, standing.row, clock.now()) };
}

/**
 * Reads dead letters without an event as the deployed function of their consumer reads them: the directory may have an older definition
 * of the event. One that the function can read has the id of its event, and the standing of that.
 */
export async function asDeployed(
  deps: Pick<Deployment, 'stored' | 'clock' | 'clients'>,
  source: DeadLetterSource,
  deadLetters: readonly DeadLetter[],
): Promise<readonly DeadLetter[]> {
  if (source.kind !== 'consumer' && source.kind !== 'rule') return deadLetters;
  const { consumer } = source;
  const unread = deadLetters.filter(({ eventId }) => eventId === undefined);
  const bodies = unread.map(({ received }) => received?.body ?? '');
  const readings = await readDeployed(deps.clients.lambda, consumer, bodies);
  return eachOf(deadLetters, async (deadLetter) => {
    const reading = readings[unread.indexOf(deadLetter)] ?? 'unread';
    if (reading === 'unread') return deadLetter;
    if (reading === 'unknown') return { ...deadLetter, isReadingUnknown: true };
    const read = { ...deadLetter, ...reading };
    return { ...read, ...(await standingOf(deps, consumer, read)) };
  });
}

const ROW_DELETED = {
  fingerprint: 'its inbox row was deleted by hand',
  lastError: 'its inbox row was deleted by hand',
};

/** The cause of a dead letter of which its consumer has no row. */
const NEVER_CLAIMED = 'never claimed: does the function start, and reach its table?';

async function deadEvents(
  { directory, table, stored }: DeadLetterDeps,
  limit: number,
): Promise<ReceivedDeadLetters> {
  const { shards } = await readSweepState(directory, table);
  const { items } = await stored.deadLetters.dead(shards, Number.POSITIVE_INFINITY);
  const deadLetters = items.map(deadEvent).sort((a, b) => (a.sentAt ?? 0) - (b.sentAt ?? 0));
  return { deadLetters: deadLetters.slice(0, limit), total: deadLetters.length };
}

function deadEvent(pointer: DeadPointer | UnreadableRow): DeadLetter {
  const { SK: id } = pointer;
  const { type, deadAt, fingerprint, lastError } = isUnreadable(pointer)
    ? { ...NOTHING, fingerprint: unreadableText(pointer.unreadable) }
    : pointer;
  return { id, eventId: id, type, sentAt: deadAt, expiresAt: undefined, fingerprint, lastError };
}

const NOTHING = { type: undefined, deadAt: undefined, lastError: undefined };

/** A dead-letter source: a queue, or the DEAD rows of the outbox. */
export type DeadLetterSource = DeadLetterQueue | { readonly name: 'dead'; readonly kind: 'dead' };

/** Every dead-letter source of a Mailroom. */
export function deadLetterSources(directory: Directory): DeadLetterSource[] {
  return [{ name: 'dead', kind: 'dead' }, ...deadLetterQueues(directory)];
}

/**
 * Finds a dead-letter source by its name.
 *
 * @throws `NO_SUCH_SOURCE`, listing the sources, or if it is a consumer of another source
 */
export function deadLetterSource(directory: Directory, name: string): DeadLetterSource {
  const sources = deadLetterSources(directory);
  const found = sources.find((source) => source.name === name);
  if (found !== undefined) return found;
  const other = directory.sourceConsumers?.find((entry) => entry.name === name.split(':').at(-1));
  if (other !== undefined) throw withoutQueue(other, 'NO_SUCH_SOURCE');
  const names = sources.map((source) => source.name);
  const meant = names.filter((known) => known.split(':').at(-1) === name.split(':').at(-1)).sort();
  const hint = meant.length === 0 ? '' : `Did you mean ${meant.join(' or ')}? `;
  throw new MailroomError(
    'NO_SUCH_SOURCE',
    `"${name}" is not a dead-letter source in ${directory.mailroom.stack}. ${hint}Sources: ${names.join(', ')}.`,
  );
}
