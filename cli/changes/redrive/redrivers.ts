import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { SweepRange, SweepRangeReport } from '../../../lambdas/runtime/relay/sweep-range.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { Note } from '../../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { DeadLetter, DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { streamRange } from '../../reports/dead-letters/redrive-plan.ts';
import {
  isHandled,
  type MessageStanding,
  readStanding,
  supersededBy,
  unsentReplacement,
} from '../../reports/dead-letters/standing.ts';
import { type OutboxChangesDeps, outboxChangesOf } from '../outbox-changes.ts';
import type { RedriveProgress } from './redrive-run.ts';
import type { Redriver } from './redrive-steps.ts';

/** Dependencies of the redrivers. */
export interface RedriverDeps extends OutboxChangesDeps {
  readonly stored: StoredRows;
  readonly queues: Queues;
  readonly sweep: (range: SweepRange) => Promise<SweepRangeReport>;
}

const DONE: RedriveProgress = { state: 'done' };
const HANDLED: RedriveProgress = { state: 'handled' };
const WAITING: RedriveProgress = { state: 'waiting' };
const SUPERSEDED: RedriveProgress = { state: 'superseded' };
const NOT_SWEPT: RedriveProgress = {
  state: 'back',
  fingerprint: 'The sweep could not read all of its minutes, or the bus refused the events',
  sameCause: false,
};

/** The redriver of a dead-letter source. @param note - stored with the events that are requeued */
export function redriverOf(deps: RedriverDeps, source: DeadLetterSource, note: Note): Redriver {
  if (source.kind === 'dead') return deadRedriver(deps, note);
  if (source.kind === 'stream') return streamRedriver(deps, source);
  return queueRedriver(deps, source, note);
}

/**
 * Sends each message to the consumer's queue, then deletes its dead letter. A crash in between leaves a duplicate, which the inbox
 * absorbs; the other order would lose the message. The dead letter stays if a resend has replaced its event meanwhile: the inbox
 * absorbs the message, and the new event may not have been sent.
 *
 * The dead letter of an ordered message is deleted only once a look shows how its message has ended. The invariant: a
 * message that is absorbed without a run has a dead letter, until an operator discards it.
 *
 *     plan: runs       send       gate of the consumer       look
 *                 └ its number may be passed over here ┘      └ superseded: the dead letter stays
 */
export function queueRedriver(
  deps: Pick<RedriverDeps, 'table' | 'stored' | 'clock' | 'queues' | 'database'>,
  { url, consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
  note: Note,
): Redriver {
  const { stored, queues } = deps;
  const standingOf = (deadLetter: DeadLetter) => readStanding(stored, consumer.name, deadLetter);
  return {
    resend: async (deadLetter) => {
      const { eventId, row, received, isOrdered = false } = deadLetter;
      if (received === undefined) return;
      // Settled since the plan, under the id of its body: a function that runs already does not know.
      if ((await standingOf(deadLetter)).isSettledUnread) return queues.remove(url, received);
      // Otherwise the audit would report the event as missing while its new message waits behind others.
      if (row === undefined && isEventId(eventId)) await outboxChangesOf(deps).markResent(eventId, note);
      await queues.send(consumer.queue, received.body);
      if (isOrdered || unsentReplacement(await standingOf(deadLetter)) !== undefined) return;
      await queues.remove(url, received);
    },
    look: async (deadLetter) => {
      const { row, received, isOrdered = false } = deadLetter;
      const standing = await standingOf(deadLetter);
      const progress = progressOf(row, standing);
      const { state } = progress;
      // A message that its consumer tries again may still be absorbed without a run.
      const isRejected = state === 'back' && readable(standing.row)?.status === 'REJECTED';
      const hasEnded = state === 'done' || state === 'handled' || isRejected;
      if (isOrdered && hasEnded && received !== undefined) await queues.remove(url, received);
      return progress;
    },
  };
}

/** Compares the standing of a redriven message with the row before. */
function progressOf(before: DeadLetter['row'], standing: MessageStanding): RedriveProgress {
  const { row: now } = standing;
  if (standing.isSettledUnread) return HANDLED;
  if (now === undefined || isUnreadable(now)) return WAITING;
  if (supersededBy(standing) !== undefined) return SUPERSEDED;
  if (isHandled(standing)) return now.status === 'PROCESSED' && now.resolvedBy === undefined ? DONE : HANDLED;
  const known = readable(before);
  if (now.fence === known?.fence) return WAITING; // every claim and rejection has its own fence
  const sameCause = now.fingerprint !== undefined && now.fingerprint === known?.fingerprint;
  // An attempt that had to wait, such as for an effect of the last one, is not counted and keeps the fingerprint of the rejection.
  const hasFailed = now.status === 'FAILED' && now.attempts > 0;
  const { fingerprint = 'unknown' } = now;
  if (now.status === 'REJECTED' || (hasFailed && sameCause)) return { state: 'back', fingerprint, sameCause };
  return hasFailed ? { state: 'retrying', fingerprint } : WAITING;
}

/** Makes DEAD events PENDING again; the next sweep publishes them. */
function deadRedriver(deps: RedriverDeps, note: Note): Redriver {
  return {
    resend: async ({ id }) => {
      await outboxChangesOf(deps).requeue(id, note);
    },
    look: async (deadLetter) => {
      const row = await deps.stored.outbox.byId(deadLetter.id, true);
      if (row === undefined) return HANDLED;
      if (isUnreadable(row)) return WAITING;
      const { status, fingerprint = 'unknown' } = row;
      if (status === 'PENDING') return WAITING;
      if (status !== 'DEAD') return status === 'PUBLISHED' ? DONE : HANDLED;
      return { state: 'back', fingerprint, sameCause: fingerprint === deadLetter.fingerprint };
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
