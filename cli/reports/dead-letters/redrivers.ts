import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { markResent, requeueDead } from '../../../lambdas/runtime/outbox/outbox-operator.ts';
import type { SweepRange, SweepRangeReport } from '../../../lambdas/runtime/relay/sweep-range.ts';
import { isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { Note, OperationDeps } from '../../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { type DeadLetter, inboxId } from './dead-letters.ts';
import { streamRange } from './redrive-plan.ts';
import type { RedriveProgress, Redriver } from './redrive-steps.ts';
import type { DeadLetterSource } from './sources.ts';
import { isHandled, type MessageStanding, readStanding, unsentReplacement } from './standing.ts';

/** Dependencies of the redrivers. */
export interface RedriverDeps extends OperationDeps {
  readonly queues: Queues;
  readonly sweep: (range: SweepRange) => Promise<SweepRangeReport>;
}

const DONE: RedriveProgress = { state: 'done' };
const WAITING: RedriveProgress = { state: 'waiting' };
const NOT_SWEPT: RedriveProgress = {
  state: 'back',
  fingerprint: 'The sweep could not read all of its minutes, or the bus accepts nothing',
  sameCause: false,
};

/** The redriver of a dead-letter source. @param note - stored with the events that are requeued */
export function redriverOf(deps: RedriverDeps, source: DeadLetterSource, note: Note): Redriver {
  if (source.kind === 'dead') return deadRedriver(deps, note);
  if (source.kind === 'stream') return streamRedriver(deps, source);
  return queueRedriver(deps, source);
}

/**
 * Sends each message to the consumer's queue, then deletes its dead letter. A crash in between leaves a duplicate, which the inbox
 * absorbs; the other order would lose the message. The dead letter stays if a resend has replaced its event meanwhile: the inbox
 * absorbs the message, and the new event may not have been sent.
 */
export function queueRedriver(
  deps: Pick<RedriverDeps, 'table' | 'clock' | 'queues'>,
  { url, consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
): Redriver {
  const { table, queues } = deps;
  const standingOf = (deadLetter: DeadLetter) => readStanding(table, consumer.name, inboxId(deadLetter));
  return {
    resend: async (deadLetter) => {
      const { eventId, row, received } = deadLetter;
      if (received === undefined) return;
      // Otherwise the audit would report the event as missing while its new message waits behind others.
      if (row === undefined && isEventId(eventId)) await markResent(deps, eventId);
      await queues.send(consumer.queue, received.body);
      if (unsentReplacement(await standingOf(deadLetter)) !== undefined) return;
      await queues.remove(url, received);
    },
    look: async (deadLetter) => progressOf(deadLetter.row, await standingOf(deadLetter)),
  };
}

/** Compares the standing of a redriven message with the row before. */
function progressOf(before: DeadLetter['row'], standing: MessageStanding): RedriveProgress {
  const { row: now } = standing;
  if (now === undefined || isUnreadable(now)) return WAITING;
  if (isHandled(standing)) return DONE;
  const known = readable(before);
  if (now.fence === known?.fence) return WAITING; // every claim and rejection has its own fence
  const sameCause = isSameCause(known?.fingerprint, now.fingerprint);
  // An attempt that had to wait, such as for an effect of the last one, is not counted and keeps the fingerprint of the rejection.
  const failedAgain = now.status === 'REJECTED' || (now.status === 'FAILED' && sameCause && now.attempts > 0);
  return failedAgain ? { state: 'back', fingerprint: now.fingerprint ?? 'unknown', sameCause } : WAITING;
}

/** The words before the last error of a message that was rejected with its attempts exhausted. */
const EXHAUSTED = /ATTEMPTS_EXHAUSTED: [^.]*\. /;

/** Fingerprints are cut at 240 characters. Without the words of {@link EXHAUSTED}, a cut one still has this many. */
const CUT_MIN = 190;

/** Compares two fingerprints of one consumer, one of which may be that of a rejection after all attempts. */
export function isSameCause(before: string | undefined, now: string | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  const [shorter = '', longer = ''] = [before, now]
    .map((fingerprint) => fingerprint.replace(EXHAUSTED, ''))
    .sort((a, b) => a.length - b.length);
  return shorter === longer || (shorter.length >= CUT_MIN && longer.startsWith(shorter));
}

/** Makes DEAD events PENDING again; the next sweep publishes them. */
function deadRedriver(deps: OperationDeps, note: Note): Redriver {
  return {
    resend: async ({ id }) => {
      await requeueDead(deps, id, note);
    },
    look: async (deadLetter) => {
      const row = readOutboxRow(await deps.table.get(outboxKeyOf(deadLetter.id), { consistent: true }));
      if (row === undefined) return DONE;
      if (isUnreadable(row)) return WAITING;
      const { status, fingerprint = 'unknown' } = row;
      if (status === 'PENDING') return WAITING;
      if (status !== 'DEAD') return DONE;
      return { state: 'back', fingerprint, sameCause: isSameCause(deadLetter.fingerprint, fingerprint) };
    },
  };
}

/** Sweeps the minutes of a batch that the stream mapping discarded, then deletes the dead letter. */
function streamRedriver(
  { queues, sweep }: RedriverDeps,
  { url }: Extract<DeadLetterSource, { kind: 'stream' }>,
): Redriver {
  const swept = new Map<DeadLetter, RedriveProgress>();
  return {
    resend: async (deadLetter) => {
      const range = streamRange(deadLetter);
      if (range === undefined || deadLetter.received === undefined) return;
      const { complete } = await sweep(range);
      if (complete) await queues.remove(url, deadLetter.received);
      swept.set(deadLetter, complete ? DONE : NOT_SWEPT);
    },
    look: async (deadLetter) => swept.get(deadLetter) ?? WAITING,
  };
}
