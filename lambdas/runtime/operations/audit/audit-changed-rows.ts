import pMap from 'p-map';
import type { DatabaseEngine } from '../../base/database-engine.ts';
import { inboxState } from '../../inbox/inbox-state.ts';
import { eventIdInSortKey } from '../../store/event-id.ts';
import type { InboxRow, RejectedRow } from '../../store/inbox-row.ts';
import type { Directory } from '../directory.ts';
import type { InboxRows } from '../inbox-rows.ts';
import type { OutboxRows, StoredEventRow } from '../outbox-rows.ts';
import { type CHANGED_BECAUSE, isChanged, publishWait } from '../publish-wait.ts';

/**
 * A row that Mailroom does not write. Of an event: `held` until a time that no relay sets, dated `ahead` of every clock, or due `too-late` to be
 * scheduled. Of a message: `unlisted`, REJECTED without the pointer that lists it.
 */
export interface ChangedRow {
  readonly kind: (typeof CHANGED_BECAUSE)[number] | 'unlisted';
  readonly eventId: string;
  /** The consumer whose inbox row it is; `null` for the outbox row. */
  readonly consumer: string | null;
  readonly type: string | null;
  /** When it would be published without a repair, epoch milliseconds; `null` for a message. */
  readonly until: number | null;
  readonly store: DatabaseEngine | null;
}

/** Reads the pointers that list rejected messages. */
export interface ListedRejections {
  /** True if a message is listed as rejected. The read sees every earlier write. */
  isRejected(consumer: string, eventId: string): Promise<boolean>;
}

/** The rows that one audit has found changed. */
export interface ChangedRows {
  /** Looks at an outbox row. */
  event(row: StoredEventRow): void;
  /** Looks at a message with its row. */
  message(consumer: string, eventId: string, row: InboxRow): void;
  /** Reads the pointers of the rejected messages. @returns all changed rows, oldest event first */
  found(inbox: Pick<InboxRows, 'byEvent'>, listed?: ListedRejections): Promise<readonly ChangedRow[]>;
}

/** The maximum number of pointers read at a time. */
const AT_ONCE = 16;

/** Starts to look for changed rows. @param now - epoch milliseconds */
export function createChangedRows({ mailroom, consumers }: Directory, now: number): ChangedRows {
  const changed = new Map<string, ChangedRow>();
  const rejected: { readonly consumer: string; readonly eventId: string; readonly row: RejectedRow }[] = [];
  const own = new Set(consumers.flatMap(({ name, elsewhere }) => (elsewhere === undefined ? [name] : [])));

  return {
    event: (row) => {
      const { sources } = mailroom;
      const eventId = eventIdInSortKey(row.SK);
      if (eventId === undefined || 'unreadable' in row || row.status !== 'PENDING') return;
      const { because, until } = publishWait(row, { now, sources });
      if (!isChanged(because)) return;
      const { type, store = null } = row;
      changed.set(eventId, { kind: because, eventId, consumer: null, type, until, store });
    },
    message: (consumer, eventId, row) => {
      if (row.status === 'REJECTED' && own.has(consumer)) rejected.push({ consumer, eventId, row });
    },
    found: async (inbox, listed) => {
      const unlisted = await pMap(
        listed === undefined ? [] : rejected,
        async ({ consumer, eventId, row }): Promise<readonly ChangedRow[]> => {
          if (await listed?.isRejected(consumer, eventId)) return [];
          // A redrive removes the pointer, and a later rejection puts it again: between these two reads, neither happened.
          const state = inboxState(await inbox.byEvent(consumer, eventId, true), now);
          if (state.is !== 'rejected' || state.row.fence !== row.fence) return [];
          const { type = null } = row;
          return [{ kind: 'unlisted', eventId, consumer, type, until: null, store: null }];
        },
        { concurrency: AT_ONCE },
      );
      return [...changed.values(), ...unlisted.flat()].toSorted((a, b) => a.eventId.localeCompare(b.eventId));
    },
  };
}

/** Looks for changed rows in the minutes after an audit's range. They are not accounted for: an audit of their time does. */
export async function lookAhead({
  outbox,
  changed,
  minutes = [],
  shards,
  partitionsAtOnce = AT_ONCE,
  hasTimeLeft,
}: {
  readonly outbox: Pick<OutboxRows, 'inMinute'>;
  readonly changed: Pick<ChangedRows, 'event'>;
  /** In the format of the keys. @default none */
  readonly minutes?: readonly string[] | undefined;
  readonly shards: number;
  readonly partitionsAtOnce?: number | undefined;
  readonly hasTimeLeft: () => boolean;
}): Promise<void> {
  const partitions = minutes.flatMap((minute) =>
    Array.from({ length: shards }, (_, shard) => ({ minute, shard })),
  );
  await pMap(
    partitions,
    async ({ minute, shard }) => {
      if (!hasTimeLeft()) return;
      for await (const _page of outbox.inMinute(minute, shard, { status: 'PENDING' }, changed.event));
    },
    { concurrency: partitionsAtOnce },
  );
}
