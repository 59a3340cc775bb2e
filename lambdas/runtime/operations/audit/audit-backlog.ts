import { eventIdTime } from '../../store/event-id.ts';
import type { InboxRow } from '../../store/inbox-row.ts';
import type { Directory } from '../directory.ts';
import type { Standing } from './audit-ledger.ts';

/** The published events of the range that a consumer has yet to process. Rejected and dead-lettered ones wait for an operator. */
export interface ConsumerBacklog {
  readonly consumer: string;
  readonly events: number;
  /** The longest time since the commit of one, milliseconds; 0 without any. */
  readonly oldestMs: number;
  /** The number of these that have had more than three attempts. */
  readonly overThreeAttempts: number;
}

const UNPROCESSED: ReadonlySet<Standing> = new Set([
  'inFlight',
  'failed',
  'waiting',
  'inconclusive',
  'missing',
]);

/** Starts to count the backlogs. @param now - epoch milliseconds */
export function createBacklogs({ consumers }: Directory, now: number) {
  const backlogs = new Map(
    consumers.map(({ name }) => [name, { consumer: name, events: 0, oldestMs: 0, overThreeAttempts: 0 }]),
  );
  return {
    /** Counts an event at a consumer. @param row - its inbox row, if it was read */
    add: (consumer: string, eventId: string, standing: Standing, row?: InboxRow): void => {
      const backlog = backlogs.get(consumer);
      if (backlog === undefined || !UNPROCESSED.has(standing)) return;
      backlog.events += 1;
      backlog.oldestMs = Math.max(backlog.oldestMs, now - eventIdTime(eventId));
      if ((row?.attempts ?? 0) > 3) backlog.overThreeAttempts += 1;
    },
    found: (): readonly ConsumerBacklog[] => [...backlogs.values()],
  };
}
