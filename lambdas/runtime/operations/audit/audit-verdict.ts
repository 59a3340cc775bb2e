import pMap from 'p-map';
import type { Clock } from '../../clock.ts';
import { errorCode } from '../../errors.ts';
import { eventIdTime } from '../../store/event-id.ts';
import { shortestRetentionDays } from '../../store/inbox-history.ts';
import { isOverdue } from '../../store/inbox-state.ts';
import { asRow, type InboxHistory, inboxHistoryKey, inboxKey } from '../../store/rows.ts';
import { isUnreadable, readInboxRow } from '../../store/stored-rows.ts';
import type { Table } from '../../store/table.ts';
import { deliveredEventId } from '../delivered-event.ts';
import type { ConsumerEntry } from '../directory.ts';
import type { QueueDepth, Queues } from '../queues.ts';
import { declarationOf, type EntryVersions } from './audit-declaration.ts';
import type { Ledger, PublishedEvent } from './audit-ledger.ts';
import type { QueueAges } from './audit-queue-age.ts';

/** How many letters of one queue are looked at, and for how long they are hidden from others meanwhile at most. */
const LETTERS_MAX = 1_000;
const LETTERS_HIDE_S = 60;

/** How many calls are made at once. */
const AT_ONCE = 16;

/** Clocks differ: a message may bear a time a little before its event was marked published. */
const CLOCK_MARGIN_MS = 60_000;

const DAY_MS = 86_400_000;

/** What it takes to judge. */
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
 * Judges the published events of a consumer for which the walk found no inbox row, or one that waits for its message.
 *
 * The order of the looks is what makes "missing" certain: how full the queue is, the letters, how full the queue is once
 * more, and the row at last, strongly consistent. A message that is received in between has a row by then; one that is moved
 * to the dead-letter queue was in the queue at the first look; one that is redriven is in it at the second.
 *
 * @returns what could not be looked at
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
  const before = await held(queues, consumer.queue);
  const letters = await lettersOf(queues, consumer);
  const empty = before === 0 && (await held(queues, consumer.queue)) === 0;
  const oldestAt = empty ? Number.POSITIVE_INFINITY : await deps.ages?.oldestAt(consumer.queue);
  const history = await table.get(inboxHistoryKey(consumer.name), { consistent: true });
  const declaration = await declarationOf(consumer, open, deps.earlier ? undefined : deps.versions);
  let unjudged = 0;

  /** Whether an inbox row may have been deleted by TTL: then its absence says nothing. */
  function isExpired({ eventId }: PublishedEvent): boolean {
    const mintedAt = eventIdTime(eventId);
    const kept = history && asRow<InboxHistory>(history);
    return mintedAt + shortestRetentionDays(kept, mintedAt, consumer.inboxRetentionDays) * DAY_MS <= lookedAt;
  }

  /** It may be handed out still: then it stands as its row says. */
  function leave(event: PublishedEvent): void {
    if (event.row === undefined) ledger.judge(consumer.name, event, 'waiting');
    else ledger.row(consumer.name, event.eventId, event.row);
  }

  async function judge(event: PublishedEvent): Promise<void> {
    if (letters.eventIds.has(event.eventId)) return ledger.judge(consumer.name, event, 'letters');
    const onItsWay =
      event.sentAt + deps.graceMs > lookedAt ||
      !letters.complete ||
      oldestAt === undefined ||
      event.sentAt + CLOCK_MARGIN_MS >= oldestAt ||
      // A message that was received often is left out of SQS's age: only an empty queue proves that it is gone.
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
    ...(letters.complete
      ? []
      : [
          `Some letters of ${consumer.name} were held by somebody else, or are beyond the first ${LETTERS_MAX}: an event that could ` +
            'be among them counts as waiting.',
        ]),
    ...(unjudged === 0 ? [] : [`There was no time to judge ${unjudged} events of ${consumer.name}.`]),
  ];
}

interface Letters {
  readonly eventIds: ReadonlySet<string>;
  /** Whether these are all. */
  readonly complete: boolean;
}

/** The events whose letters lie in a consumer's two dead queues. Each is hidden for a moment, and shown again. */
async function lettersOf(queues: Judging['queues'], consumer: ConsumerEntry): Promise<Letters> {
  const eventIds = new Set<string>();
  let complete = true;
  for (const url of [consumer.deadLetterQueue, consumer.undeliveredQueue]) {
    const count = await held(queues, url);
    if (count === 0) continue;
    const letters = await queues.receive(url, { limit: LETTERS_MAX, hideS: LETTERS_HIDE_S });
    await pMap(letters, (letter) => queues.show(url, letter), { concurrency: AT_ONCE });
    for (const { body } of letters) {
      const eventId = deliveredEventId(body);
      if (eventId !== undefined) eventIds.add(eventId);
    }
    if (letters.length < count) complete = false;
  }
  return { eventIds, complete };
}

/** How many messages a queue holds; none, when it does not exist. */
async function held(queues: Judging['queues'], url: string): Promise<number> {
  const depth = await depthOf(queues, url);
  return depth === undefined ? 0 : depth.waiting + depth.inFlight;
}

/** What a queue holds; `undefined` when it does not exist. */
export async function depthOf(queues: Pick<Queues, 'depth'>, url: string): Promise<QueueDepth | undefined> {
  try {
    return await queues.depth(url);
  } catch (error) {
    if (/QueueDoesNotExist|NonExistentQueue/.test(errorCode(error))) return undefined;
    throw error;
  }
}
