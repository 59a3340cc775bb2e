import type { Clock } from '../clock.ts';
import { isConditionFailed } from '../errors.ts';
import { eventIdTime, isEventId } from './event-id.ts';
import { asRow, type InboxHistory, inboxHistoryKey, SCHEMA } from './rows.ts';
import type { Table } from './table.ts';

/** Which events an inbox may have forgotten. */
export interface InboxMemory {
  /** Reads the inbox's history, once, and records this function's retention there before any row is written under it. */
  open(): Promise<void>;
  /** Why an event without a row must not run; `undefined` when its row could not have expired. */
  forgotten(eventId: string): string | undefined;
}

/** What the memory of one consumer's inbox needs. */
export interface InboxMemoryDeps {
  readonly table: Pick<Table, 'get' | 'write'>;
  readonly clock: Clock;
  readonly consumer: string;
  readonly inboxRetentionDays: number;
  readonly inboxSince?: number | undefined;
}

const DAY_MS = 86_400_000;

/**
 * How long a function of the version before may still write rows under its own retention, counted from the first start of
 * the next version: a deploy takes minutes, an invocation 15 minutes at most, and clocks differ by seconds.
 */
const OVERLAP_MS = DAY_MS;

/** How often a start writes the history while others write it, too. */
const WRITES_MAX = 5;

/**
 * Makes the memory of one consumer's inbox.
 *
 *     minted           handled                row expires                    replayed
 *       |-----------------|------ 35 days ---------|----------------------------|
 *                              raised to 400 days: |---- too old, by 35 days ----
 *
 * A row expires by the retention that was in force when its message was handled: at the event's minting or later. So an event
 * that is younger than every retention since its minting would still have its row, had it been handled.
 */
export function createInboxMemory(deps: InboxMemoryDeps): InboxMemory {
  const { table, clock, consumer, inboxRetentionDays, inboxSince = 0 } = deps;
  let history: InboxHistory | undefined;
  let opened: Promise<void> | undefined;

  async function read(): Promise<void> {
    let item = await table.get(inboxHistoryKey(consumer), { consistent: true });
    for (let writes = 1; ; writes += 1) {
      const found = item === undefined ? undefined : asRow<InboxHistory>(item);
      try {
        history = found?.retentions.at(-1)?.days === inboxRetentionDays ? found : await record(found);
        return;
      } catch (error) {
        if (!isConditionFailed(error) || writes === WRITES_MAX) throw error;
        item = error.item; // another function was quicker, or the answer to our own write was lost
      }
    }
  }

  /** Adds this function's retention to the history as it was found. */
  async function record(found: InboxHistory | undefined): Promise<InboxHistory> {
    const changedAt = Math.max(clock.now(), (found?.changedAt ?? 0) + 1);
    const retentions = [...(found?.retentions ?? []), { days: inboxRetentionDays, since: changedAt }];
    const key = inboxHistoryKey(consumer);
    await table.write({
      Update: {
        Key: { ...key },
        UpdateExpression: 'SET retentions = :retentions, changedAt = :changedAt, #schema = :schema',
        ConditionExpression: found === undefined ? 'attribute_not_exists(PK)' : 'changedAt = :found',
        ExpressionAttributeNames: { '#schema': 'schema' },
        ExpressionAttributeValues: {
          ':retentions': retentions,
          ':changedAt': changedAt,
          ':schema': SCHEMA,
          ...(found === undefined ? {} : { ':found': found.changedAt }),
        },
        ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      },
    });
    return { ...key, schema: SCHEMA, retentions, changedAt };
  }

  return {
    open: () => {
      opened ??= read().catch((error: unknown) => {
        opened = undefined; // the next message tries again
        throw error;
      });
      return opened;
    },
    forgotten: (eventId) => {
      if (!isEventId(eventId)) return undefined;
      const mintedAt = eventIdTime(eventId);
      if (mintedAt < inboxSince) {
        return (
          `The event was written before ${new Date(inboxSince).toISOString()}, when the consumer had another name, and has no row ` +
          'under this one: it may have been processed before. Only an operator can let it run.'
        );
      }
      const days = shortestRetentionDays(history, mintedAt, inboxRetentionDays);
      if (clock.now() - mintedAt <= days * DAY_MS) return undefined;
      const which = days < inboxRetentionDays ? ', the shortest since it was written,' : '';
      return (
        `The event is older than the inbox retention of ${days} days${which} and has no row: it may have been processed ` +
        'before. Only an operator can let it run.'
      );
    },
  };
}

/**
 * The shortest retention, in days, that was in force at any time since an event was minted.
 *
 * @param history - absent where the consumer has not started yet
 * @param mintedAt - epoch milliseconds
 * @param currentDays - the retention of today
 */
export function shortestRetentionDays(
  history: InboxHistory | undefined,
  mintedAt: number,
  currentDays: number,
): number {
  const { retentions = [] } = history ?? {};
  const since = retentions.filter((_, index) => {
    const next = retentions[index + 1];
    return next === undefined || next.since + OVERLAP_MS > mintedAt;
  });
  return Math.min(currentDays, ...since.map(({ days }) => days));
}
