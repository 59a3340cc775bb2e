import { errorCode, errorMessage } from '../../errors.ts';
import { type ConsumerEntry, declaredSince, type EntryVersion } from '../directory.ts';
import type { PublishedEvent } from './audit-ledger.ts';

/** The versions of a consumer's directory entry, oldest first. */
export type EntryVersions = (consumer: ConsumerEntry) => Promise<readonly EntryVersion[]>;

/** What a consumer was declared to see, and when. */
export interface Declaration {
  /** Whether the consumer had to see an event at the time it was published. */
  covers(event: PublishedEvent): boolean;
  /** What could not be read. */
  readonly unread: readonly string[];
}

/** A rule that was changed does not match at once (EventBridge API reference, PutRule: "allow a short period of time"). */
const RULE_DELAY_MS = 60_000;

/**
 * Dates each subscription of a consumer, a pair of source and type: any change of its entry dates the entry anew, and would
 * otherwise excuse the loss of every event before it. The versions are read only where an event is older than the entry's last
 * change, which in most runs is none.
 */
export async function declarationOf(
  consumer: ConsumerEntry,
  events: readonly PublishedEvent[],
  readVersions: EntryVersions | undefined,
): Promise<Declaration> {
  const { changedAt = 0 } = consumer;
  const after = (since: number, event: PublishedEvent) => event.publishedAt >= since + RULE_DELAY_MS;
  const covers = (event: PublishedEvent) => changedAt === 0 || after(changedAt, event);
  if (readVersions === undefined || events.every(covers)) return { covers, unread: [] };
  try {
    const versions = await readVersions(consumer);
    return { covers: (event) => after(declaredSince(versions, event) ?? changedAt, event), unread: [] };
  } catch (error) {
    const why = `${errorCode(error)}: ${errorMessage(error)}`;
    return {
      covers,
      unread: [
        `The earlier versions of the directory entry of ${consumer.name} could not be read (${why}). Events that were ` +
          'published before its last change count as unproven.',
      ],
    };
  }
}
