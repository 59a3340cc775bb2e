import pMap from 'p-map';
import type { Clock } from '../../clock.ts';
import { eventIdTime } from '../../store/event-id.ts';
import { shortestRetentionDays } from '../../store/inbox-history.ts';
import { isOverdue } from '../../store/inbox-state.ts';
import { asRow, type InboxHistory, inboxHistoryKey, inboxKey } from '../../store/rows.ts';
import { isUnreadable, readInboxRow } from '../../store/stored-rows.ts';
import type { Table } from '../../store/table.ts';
import { depthOf, peekDeadLetters, rejectedBy, undeliveredTo } from '../dead-letters.ts';
import type { ConsumerEntry } from '../directory.ts';
import type { Queues } from '../queues.ts';
import { declarationOf, type EntryVersions } from './audit-declaration.ts';
import type { Ledger, PublishedEvent } from './audit-ledger.ts';
import type { QueueAges } from './audit-queue-age.ts';

/** The maximum number of dead letters read from one queue, and the time for which they are hidden from other readers, seconds. */
const PEEK = { limit: 1_000, hideS: 60 };

/** The maximum number of concurrent calls. */
const AT_ONCE = 16;

/** Clocks differ: a message's time may be slightly before the time at which its event was marked published. */
const CLOCK_MARGIN_MS = 60_000;

const DAY_MS = 86_400_000;

/** Dependencies of a judgement. */
interface Judging {
  readonly table: Pick<Table, 'get'>;
  readonly queues: Pick<Queues, 'depth' | 'receive' | 'show'>;
  readonly ages?: QueueAges | undefined;
  readonly versions?: EntryVersions | undefined;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly earlier: boolean;
  readonly goesOn: () => boolean;
}

/**
 * Judges the published events of a consumer for which the walk found no inbox row, or a row that waits for its message.
 *
 * The order of the checks makes "missing" certain: the queue's depth, the dead letters, the queue's depth again, and finally the
 * row, strongly consistent. A message that is received in between has a row by then; one that is moved to the dead-letter queue
 * was in the queue at the first check; one that is redriven is in it at the second.
 *
 * @returns the parts that could not be checked
 */
export async function judgeUndecided(
  deps: Judging,
  consumer: ConsumerEntry,
  ledger: Ledger,
): Promise<string[]> {
  const { table, queues, clock, goesOn } = deps;
  const open = ledger.open(consumer.name);
  if (open.length === 0) return [];
  const lookedAt = clock.now();
  const wasEmpty = await isEmpty(queues, consumer.queue);
  const dead = await deadLettersOf(queues, consumer);
  const empty = wasEmpty && (await isEmpty(queues, consumer.queue));
  const oldestAt = empty ? Number.POSITIVE_INFINITY : await deps.ages?.oldestAt(consumer.queue);
  const history = await table.get(inboxHistoryKey(consumer.name), { consistent: true });
  const declaration = await declarationOf(consumer, open, deps.earlier ? undefined : deps.versions);
  let unjudged = 0;

  /** Returns true if TTL may have deleted the inbox row: then its absence proves nothing. */
  function isExpired({ eventId }: PublishedEvent): boolean {
    const mintedAt = eventIdTime(eventId);
    const kept = history && asRow<InboxHistory>(history);
    return mintedAt + shortestRetentionDays(kept, mintedAt, consumer.inboxRetentionDays) * DAY_MS <= lookedAt;
  }

  /** The message may still be redelivered: count it by its row. */
  function leave(event: PublishedEvent): void {
    if (event.row === undefined) ledger.judge(consumer.name, event, 'waiting');
    else ledger.row(consumer.name, event.eventId, event.row);
  }

  async function judge(event: PublishedEvent): Promise<void> {
    if (dead.eventIds.has(event.eventId)) return ledger.judge(consumer.name, event, 'deadLetters');
    const onItsWay =
      event.sentAt + deps.graceMs > lookedAt ||
      !dead.complete ||
      oldestAt === undefined ||
      event.sentAt + CLOCK_MARGIN_MS >= oldestAt ||
      // SQS's age excludes messages that were received often, so only an empty queue proves that the message is gone.
      (event.row !== undefined && !empty);
    if (onItsWay) return leave(event);
    if (!goesOn()) {
      unjudged += 1;
      return leave(event);
    }
    const row = readInboxRow(await table.get(inboxKey(consumer.name, event.eventId), { consistent: true }));
    if (row !== undefined) {
      const gone = empty && !isUnreadable(row) && isOverdue(row, lookedAt - deps.graceMs);
      return gone
        ? ledger.judge(consumer.name, event, 'missing')
        : ledger.row(consumer.name, event.eventId, row);
    }
    const proven = !isExpired(event) && (deps.earlier || declaration.covers(event));
    ledger.judge(consumer.name, event, proven ? 'missing' : 'unproven');
  }

  await pMap(open, judge, { concurrency: AT_ONCE });
  return [
    ...declaration.unread,
    ...(dead.complete
      ? []
      : [
          `Some dead letters of ${consumer.name} were received by another reader, or are beyond the first ${PEEK.limit}: an event that could ` +
            'be among them counts as waiting.',
        ]),
    ...(unjudged === 0 ? [] : [`There was not enough time to judge ${unjudged} events of ${consumer.name}.`]),
  ];
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
  for (const queue of [rejectedBy(consumer), undeliveredTo(consumer)]) {
    const { deadLetters, total } = await peekDeadLetters(queues, queue, PEEK);
    for (const { eventId } of deadLetters) if (eventId !== undefined) eventIds.add(eventId);
    complete &&= deadLetters.length >= total;
  }
  return { eventIds, complete };
}

/** Returns true if a queue is empty or does not exist. */
async function isEmpty(queues: Judging['queues'], url: string): Promise<boolean> {
  const { waiting, inFlight } = (await depthOf(queues, url)) ?? { waiting: 0, inFlight: 0 };
  return waiting + inFlight === 0;
}
