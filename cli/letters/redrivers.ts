import type { Queues } from '../../lambdas/runtime/operations/queues.ts';
import type { SweepRange, SweepRangeReport } from '../../lambdas/runtime/relay/sweep-range.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import type { Note, OperationDeps } from '../../lambdas/runtime/store/operation-record.ts';
import { markResent, requeueDead } from '../../lambdas/runtime/store/outbox-decisions.ts';
import { inboxKey } from '../../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  readOutboxRow,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { QueuePlace } from '../reading/place.ts';
import { type DeadItem, inboxId } from './letters.ts';
import type { Fate, Redriver } from './redrive-steps.ts';
import { rangeOf } from './stream-letter.ts';

const DONE: Fate = { state: 'done' };
const WAITING: Fate = { state: 'waiting' };

/**
 * Letters of a rule or of a consumer: sent to the consumer's queue, then deleted where they were. A crash in between leaves
 * the message twice, which the inbox absorbs; the other order would lose it.
 */
export function queueRedriver(
  deps: OperationDeps & { readonly queues: Queues },
  { url, consumer }: QueuePlace,
  moveRest?: Redriver['moveRest'],
): Redriver {
  const { table, queues } = deps;
  return {
    moveRest,
    resend: async (letter) => {
      const { received } = letter;
      if (received === undefined || consumer === undefined) return;
      await tellAudit(deps, letter);
      await queues.send(consumer.queue, received.body);
      await queues.remove(url, received);
    },
    look: async (letter) => {
      const item = await table.get(inboxKey(consumer?.name ?? '', inboxId(letter)), { consistent: true });
      return fateOfMessage(letter.row, readInboxRow(item));
    },
  };
}

/** Else the audit would take an event that was never received for missing as long as its new message waits behind others. */
export async function tellAudit(deps: OperationDeps, { row, eventId }: DeadItem): Promise<void> {
  if (row === undefined && eventId !== undefined) await markResent(deps, eventId);
}

/** What the inbox says of a message that was redriven, compared with what it said before. */
function fateOfMessage(before: DeadItem['row'], now: DeadItem['row']): Fate {
  if (now === undefined || isUnreadable(now)) return WAITING;
  if (now.status === 'PROCESSED' || now.status === 'DISCARDED') return DONE;
  const known = readable(before);
  if (now.fence === known?.fence) return WAITING; // not touched since: every claim and rejection has a fence
  const sameCause = isSameCause(known?.fingerprint, now.fingerprint);
  const failedAgain = now.status === 'REJECTED' || (now.status === 'FAILED' && sameCause);
  return failedAgain ? { state: 'back', fingerprint: now.fingerprint ?? 'unknown', sameCause } : WAITING;
}

/** What stands in front of the last error where a message was rejected because its attempts were spent. */
const SPENT = /ATTEMPTS_SPENT: Given up after # attempts\. /;

/** Fingerprints are cut at 240 characters; without what stands in front of it, one that was cut still has so many. */
const CUT_MIN = 190;

/** Whether two fingerprints of one consumer name the same cause: that of a single attempt, and that of all of them. */
export function isSameCause(before: string | undefined, now: string | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  const [shorter = '', longer = ''] = [before, now]
    .map((fingerprint) => fingerprint.replace(SPENT, ''))
    .sort((a, b) => a.length - b.length);
  return shorter === longer || (shorter.length >= CUT_MIN && longer.startsWith(shorter));
}

/** DEAD events: PENDING again, and published by the next sweep. */
export function deadRedriver(deps: OperationDeps, note: Note): Redriver {
  return {
    resend: async ({ id }) => {
      await requeueDead(deps, id, note);
    },
    look: async (letter) => {
      const row = readOutboxRow(await deps.table.get(outboxKeyOf(letter.id), { consistent: true }));
      if (row === undefined) return DONE;
      if (isUnreadable(row)) return WAITING;
      const { status, fingerprint = 'unknown' } = row;
      if (status === 'PENDING') return WAITING;
      if (status !== 'DEAD') return DONE;
      return { state: 'back', fingerprint, sameCause: isSameCause(letter.fingerprint, fingerprint) };
    },
  };
}

/** Batches that the stream mapping gave up on: their minutes are swept, and the letter is deleted when all of that was done. */
export function streamRedriver(
  deps: { readonly queues: Queues; readonly sweep: (range: SweepRange) => Promise<SweepRangeReport> },
  { url }: QueuePlace,
): Redriver {
  const fates = new Map<DeadItem, Fate>();
  return {
    resend: async (letter) => {
      const range = rangeOf(letter);
      if (range === undefined || letter.received === undefined) return;
      const { complete } = await deps.sweep(range);
      if (complete) await deps.queues.remove(url, letter.received);
      fates.set(letter, complete ? DONE : NOT_SWEPT);
    },
    look: async (letter) => fates.get(letter) ?? WAITING,
  };
}

const NOT_SWEPT: Fate = {
  state: 'back',
  fingerprint: 'The sweep could not read all of its minutes, or the bus takes nothing',
  sameCause: false,
};
