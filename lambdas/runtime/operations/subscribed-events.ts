import { matchesFilter } from '../events/data-filter.ts';
import type { EventRef } from '../events/event.ts';
import type { ExternalSubscription } from '../events/external-event.ts';
import type { ConsumerEntry, Directory, EntryEvent, EntryVersion } from './directory.ts';

/** Returns the Mailroom events that a consumer must receive. */
export function mailroomEventsOf({ events }: Pick<ConsumerEntry, 'events'>): EntryEvent[] {
  return events.filter(({ external }) => external === undefined);
}

/** Returns the external events that a consumer takes. They have no outbox row, so neither the audit nor a repair covers them. */
export function externalEventsOf({ events }: Pick<ConsumerEntry, 'events'>): ExternalSubscription[] {
  return events.flatMap(({ source, type, external }) =>
    external === undefined ? [] : [{ source, type, external }],
  );
}

/** An event, and its payload, which only a filter needs. */
export interface SubscribedEvent extends EventRef {
  /** Returns the payload as parsed JSON; `undefined` if it cannot be read: then every filter counts as matching. */
  readonly data: () => unknown;
  /** As of its outbox row. */
  readonly publishedBy?: string | undefined;
}

/** Returns the consumers of the bus that must receive a Mailroom event. Change data capture sends to Kafka, and not to the bus. */
export function consumersOf(directory: Directory, event: SubscribedEvent): ConsumerEntry[] {
  if (event.publishedBy === 'cdc') return [];
  return directory.consumers.filter((consumer) => subscribes(consumer, event));
}

/**
 * Returns the time since which a consumer has been declared to receive an event without interruption, epoch milliseconds.
 *
 * @param versions - the versions of its entry, oldest first
 * @returns `undefined` if the last version does not declare it
 */
export function declaredSince(versions: readonly EntryVersion[], event: SubscribedEvent): number | undefined {
  const firstWithout = versions.findLastIndex(({ value }) => !declares(value, event));
  return versions[firstWithout + 1]?.changedAt;
}

function declares(value: string, event: SubscribedEvent): boolean {
  try {
    return subscribes(JSON.parse(value) as ConsumerEntry, event);
  } catch {
    return false; // changed by hand
  }
}

function subscribes(consumer: ConsumerEntry, { source, type, data }: SubscribedEvent): boolean {
  return mailroomEventsOf(consumer).some(({ filter, ...event }) => {
    if (event.source !== source || event.type !== type) return false;
    const payload = filter && data();
    return filter === undefined || payload === undefined || matchesFilter(filter, payload);
  });
}
