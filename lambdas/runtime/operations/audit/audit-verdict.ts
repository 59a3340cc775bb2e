import pMap from 'p-map';
import type { Clock } from '../../base/clock.ts';
import { errorCode, errorMessage } from '../../base/errors.ts';
import { DAY_MS } from '../../base/units.ts';
import { rowsOf } from '../../inbox/inbox-history.ts';
import { isOverdue } from '../../inbox/inbox-state.ts';
import { eventIdTime } from '../../store/event-id.ts';
import { isUnreadable } from '../../store/stored-rows.ts';
import { atHome } from '../bus-consumers.ts';
import { deadLettersTo, depthOf, peekDeadLetters } from '../dead-letters.ts';
import type { ConsumerEntry } from '../directory.ts';
import type { InboxRows } from '../inbox-rows.ts';
import type { OutboxRows } from '../outbox-rows.ts';
import type { Queues } from '../queues.ts';
import { declarationOf, type EntryVersions } from './audit-declaration.ts';
import type { InconclusiveEvents, Ledger, PublishedEvent } from './audit-ledger.ts';
import type { QueueAges } from './audit-queue-age.ts';

/** The maximum number of dead letters read from one queue, and the time for which they are hidden from other readers, seconds. */
const PEEK = { limit: 1_000, hideS: 60 };

/** The maximum number of concurrent calls. */
const AT_ONCE = 16;

/** Clocks differ: a message's time may be slightly before the time at which its event was marked published. */
const CLOCK_MARGIN_MS = 60_000;

/** Dependencies of a judgment. */
interface Judging {
  readonly outbox: Pick<OutboxRows, 'byId'>;
  readonly inbox: Pick<InboxRows, 'byEvent' | 'history'>;
  readonly queues: Pick<Queues, 'depth' | 'receive' | 'show'>;
  readonly ages?: QueueAges | undefined;
  readonly versions?: EntryVersions | undefined;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly earlier: boolean;
  readonly hasTimeLeft: () => boolean;
}

/** The result of judging a consumer's events, beside the ledger's counts. */
export interface Judgment {
  /** Empty if each event was judged, otherwise one entry. */
  readonly inconclusive: readonly InconclusiveEvents[];
  /** The parts that could not be checked, as sentences. */
  readonly incomplete: readonly string[];
}

/**
 * Judges the published events of a consumer for which the walk found no inbox row, or a row that waits for its message.
 *
 * The order of the checks makes "missing" certain: the queue's depth, the dead letters, the queue's depth again, and finally the
 * row, strongly consistent. A message that is received in between has a row by then; one that is moved to the dead-letter queue
 * was in the queue at the first check; one that is redriven is in it at the second.
 *
 * Of the inconclusive events, the queue holds at most as many as the larger of its two depths, except at a moment when messages are
 * both moved and redriven.
 *
 * What cannot be read of a consumer of another Mailroom, whose policies may not allow it, proves nothing: its events are unproven.
 */
export async function judgeUndecided(
  deps: Judging,
  consumer: ConsumerEntry,
  ledger: Ledger,
): Promise<Judgment> {
  if (consumer.elsewhere === undefined) return judgeAll(deps, consumer, ledger);
  let refusal: string | undefined;
  let unread = 0;
  const refused = (error: unknown, event: PublishedEvent) => {
    refusal ??= `${errorCode(error)}: ${errorMessage(error)}`;
    if (event.row !== undefined) return ledger.row(consumer.name, event.eventId, event.row);
    const isRecent = event.sentAt + deps.graceMs > deps.clock.now();
    if (!isRecent) unread += 1;
    return ledger.judge(consumer.name, event, isRecent ? 'waiting' : 'unproven');
  };
  let judgment: Judgment = { inconclusive: [], incomplete: [] };
  try {
    judgment = await judgeAll(deps, consumer, ledger, refused);
  } catch (error) {
    // Refused before any event was judged.
    for (const event of ledger.open(consumer.name)) refused(error, event);
  }
  if (unread === 0) return judgment;
  const text =
    `Unproven at ${consumer.name}: ${unread}. Its inbox, in the table ${consumer.elsewhere.table}, or its queues could not be read ` +
    `(${refusal}).`;
  return { ...judgment, incomplete: [...judgment.incomplete, text] };
}

/** @param onUnread - called for an event that could not be judged @default the error is thrown */
async function judgeAll(
  deps: Judging,
  consumer: ConsumerEntry,
  ledger: Ledger,
  onUnread?: (error: unknown, event: PublishedEvent) => void,
): Promise<Judgment> {
  const { outbox, inbox, queues, clock, hasTimeLeft } = deps;
  const open = ledger.open(consumer.name);
  if (open.length === 0) return { inconclusive: [], incomplete: [] };
  const { name } = atHome(consumer);
  const lookedAt = clock.now();
  const before = await heldBy(queues, consumer.queue);
  const dead = await deadLettersOf(queues, consumer);
  const queued = Math.max(before, await heldBy(queues, consumer.queue));
  const oldestAt = queued === 0 ? Number.POSITIVE_INFINITY : await deps.ages?.oldestAt(consumer.queue);
  const history = await inbox.history(name);
  const versions = deps.earlier ? undefined : deps.versions;
  const declaration = await declarationOf(consumer, open, { outbox, versions });
  const doubtful: PublishedEvent[] = [];
  let unjudged = 0;

  /** Returns true if TTL may have deleted the inbox row: then its absence proves nothing. */
  function isExpired({ eventId }: PublishedEvent): boolean {
    const rows = rowsOf(history, eventIdTime(eventId), consumer.inboxRetentionDays, lookedAt);
    return rows.handledFrom + rows.days * DAY_MS <= lookedAt;
  }

  function mayBeQueued({ sentAt, row }: PublishedEvent): boolean {
    if (queued === 0) return false;
    // SQS's age excludes messages that were received often, so only an empty queue proves that the message is gone.
    return row !== undefined || oldestAt === undefined || sentAt + CLOCK_MARGIN_MS >= oldestAt;
  }

  /** The message may still be on its way: count it by its row. */
  function leave(event: PublishedEvent): void {
    if (event.row === undefined) ledger.judge(consumer.name, event, 'waiting');
    else ledger.row(consumer.name, event.eventId, event.row);
  }

  async function judge(event: PublishedEvent): Promise<void> {
    if (dead.eventIds.has(event.eventId)) return ledger.judge(consumer.name, event, 'deadLetters');
    if (event.sentAt + deps.graceMs > lookedAt || !dead.complete) return leave(event);
    if (!hasTimeLeft()) {
      unjudged += 1;
      return leave(event);
    }
    const row = await inbox.byEvent(name, event.eventId, true);
    if (row !== undefined && (isUnreadable(row) || !isOverdue(row, lookedAt - deps.graceMs)))
      return ledger.row(consumer.name, event.eventId, row);
    const isExpected =
      row !== undefined || (!isExpired(event) && (deps.earlier || (await declaration.covers(event))));
    if (!isExpected) return ledger.judge(consumer.name, event, 'unproven');
    const received = { ...event, row: row ?? event.row };
    if (!mayBeQueued(received)) return ledger.judge(consumer.name, received, 'missing');
    ledger.judge(consumer.name, event, 'inconclusive');
    doubtful.push(received);
  }

  const judgeOrLeave = async (event: PublishedEvent) => {
    try {
      await judge(event);
    } catch (error) {
      if (onUnread === undefined) throw error;
      onUnread(error, event);
    }
  };

  await pMap(open, judgeOrLeave, { concurrency: AT_ONCE });
  const incomplete = [...declaration.unread, ...unchecked(consumer.name, dead, unjudged)];
  if (doubtful.length === 0) return { inconclusive: [], incomplete };
  // Nothing may fail after the judgments: their events would be counted twice.
  const byAge =
    onUnread === undefined && oldestAt !== undefined && doubtful.every(({ row }) => row === undefined);
  const blindMs = byAge ? await deps.ages?.atLeastMs(consumer.queue) : undefined;
  return { inconclusive: [summaryOf(consumer.name, doubtful, queued, blindMs)], incomplete };
}

function unchecked(consumer: string, dead: ConsumersDead, unjudged: number): string[] {
  return [
    ...(dead.complete
      ? []
      : [
          `Some dead letters of ${consumer} were received by another reader, or are beyond the first ${PEEK.limit}: an event that could ` +
            'be among them counts as waiting.',
        ]),
    ...(unjudged === 0 ? [] : [`There was not enough time to judge ${unjudged} events of ${consumer}.`]),
  ];
}

function summaryOf(
  consumer: string,
  doubtful: readonly PublishedEvent[],
  queued: number,
  blindMs = Number.POSITIVE_INFINITY,
): InconclusiveEvents {
  const events = doubtful.length;
  const lastSentAt = doubtful.reduce((latest, { sentAt }) => Math.max(latest, sentAt), 0);
  const conclusiveAt = lastSentAt + CLOCK_MARGIN_MS + blindMs;
  return {
    consumer,
    events,
    queued,
    missingAtLeast: Math.max(0, events - queued),
    conclusiveAt: Number.isFinite(conclusiveAt) ? conclusiveAt : null,
  };
}

/** The events with dead letters in a consumer's two dead-letter queues. */
interface ConsumersDead {
  readonly eventIds: ReadonlySet<string>;
  /** True if these are all. */
  readonly complete: boolean;
}

async function deadLettersOf(queues: Judging['queues'], consumer: ConsumerEntry): Promise<ConsumersDead> {
  const eventIds = new Set<string>();
  let complete = true;
  for (const queue of deadLettersTo(consumer)) {
    const { deadLetters, total } = await peekDeadLetters(queues, queue, PEEK);
    for (const { eventId } of deadLetters) if (eventId !== undefined) eventIds.add(eventId);
    complete &&= deadLetters.length >= total;
  }
  return { eventIds, complete };
}

/** Returns the number of messages in a queue, including hidden ones; 0 if it does not exist. */
async function heldBy(queues: Judging['queues'], url: string): Promise<number> {
  const { waiting, inFlight } = (await depthOf(queues, url)) ?? { waiting: 0, inFlight: 0 };
  return waiting + inFlight;
}
