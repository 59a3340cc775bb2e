import { errorCode, errorMessage } from '../../errors.ts';
import { type ConsumerEntry, declaredSince, type EntryVersion } from '../directory.ts';
import type { PublishedEvent } from './audit-ledger.ts';

/** The versions of a consumer's directory entry, oldest first. */
export type EntryVersions = (consumer: ConsumerEntry) => Promise<readonly EntryVersion[]>;

/** The events that a consumer was declared to receive, over time. */
export interface Declaration {
  /** Returns true if the consumer had to receive an event when it was published. */
  covers(event: PublishedEvent): boolean;
  /** The parts that could not be read. */
  readonly unread: readonly string[];
}

/** A changed rule does not match immediately (EventBridge API reference, PutRule: "allow a short period of time"). */
export const RULE_DELAY_MS = 60_000;

/**
 * Dates each subscription of a consumer, that is, each pair of source and type. Any change of its entry gives the entry a new
 * date, which would otherwise excuse the loss of every earlier event. The versions are read only if an event is older than the
 * entry's last change, which is rare.
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
        `The earlier versions of the directory entry of ${consumer.name} could not be read (${why}). Events ` +
          'published before its last change count as unproven.',
      ],
    };
  }
}
