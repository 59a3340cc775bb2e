import { errorCode, errorMessage } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import type { Envelope } from '../../events/event.ts';
import { readable } from '../../store/stored-rows.ts';
import type { ConsumerEntry, EntryVersion } from '../directory.ts';
import type { OutboxRows } from '../outbox-rows.ts';
import { declaredSince } from '../subscribed-events.ts';
import type { PublishedEvent } from './audit-ledger.ts';

/** The versions of a consumer's directory entry, oldest first. */
export type EntryVersions = (consumer: ConsumerEntry) => Promise<readonly EntryVersion[]>;

/** The events that a consumer was declared to receive, over time. */
export interface Declaration {
  /** Returns true if the consumer had to receive an event when it was published. */
  covers(event: PublishedEvent): Promise<boolean>;
  /** The parts that could not be read. */
  readonly unread: readonly string[];
}

/** Dependencies of {@link declarationOf}. */
interface DeclarationDeps {
  readonly outbox: Pick<OutboxRows, 'byId'>;
  /** @default the date of the entry's last change is that of each subscription */
  readonly versions?: EntryVersions | undefined;
}

/** A changed rule does not match immediately (EventBridge API reference, PutRule: "allow a short period of time"). */
export const RULE_DELAY_MS = 60_000;

/**
 * Dates each subscription of a consumer, that is, each pair of source and type, or, with filters, each event. Any change of its
 * entry gives the entry a new date, which would otherwise excuse the loss of every earlier event. The versions, and the payloads
 * for their filters, are read only if an event is older than the entry's last change, which is rare.
 */
export async function declarationOf(
  consumer: ConsumerEntry,
  events: readonly PublishedEvent[],
  { outbox, versions: readVersions }: DeclarationDeps,
): Promise<Declaration> {
  const { changedAt = 0 } = consumer;
  const after = (since: number, event: PublishedEvent) => event.publishedAt >= since + RULE_DELAY_MS;
  const isLater = (event: PublishedEvent) => changedAt === 0 || after(changedAt, event);
  const covers = async (event: PublishedEvent) => isLater(event);
  if (readVersions === undefined || events.every(isLater)) return { covers, unread: [] };
  try {
    const versions = await readVersions(consumer);
    const isFiltered = versions.some(({ value }) => /"filter"\s*:/.test(value));
    return {
      covers: async (event) => {
        if (isLater(event)) return true;
        const payload = isFiltered ? await payloadOf(outbox, event) : undefined;
        if (isFiltered && payload === undefined) return false;
        return after(declaredSince(versions, { ...event, data: () => payload }) ?? changedAt, event);
      },
      unread: [],
    };
  } catch (error) {
    const why = `${errorCode(error)}: ${errorMessage(error)}`;
    return {
      covers,
      unread: [
        `The earlier versions of the directory entry of ${consumer.name} could not be read (${why}). Events ` +
          'published before its last change count as unproven.',
      ],
    };
  }
}

/** Reads an event's payload again: the walk keeps none, because they can be large. @returns `undefined` if it cannot be read */
async function payloadOf(outbox: DeclarationDeps['outbox'], { eventId }: PublishedEvent): Promise<unknown> {
  const row = readable(await outbox.byId(eventId));
  try {
    return row && (parseJson(row.envelope) as Envelope).data;
  } catch {
    return undefined;
  }
}
