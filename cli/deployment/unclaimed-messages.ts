import type { ConsumerEntry, Directory } from '../../lambdas/runtime/operations/directory.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import { type OutboxReaderDeps, publishedIn, type SampledEvent } from './published-events.ts';
import { eachOf, minutesOf, type PartialList, withItems } from './rows-reader.ts';

/** The minutes that are read at once. */
const MINUTES_AT_ONCE = 10;

/** The most events of a consumer whose inbox rows are looked for. */
const EVENTS_MAX = 5_000;

/** Dependencies of {@link readUnclaimed}. */
export interface UnclaimedDeps extends OutboxReaderDeps {
  readonly directory: Directory;
}

/**
 * Reads the published events of a range of time that a consumer must receive and has not claimed: they wait in its queue, or are
 * lost. Newest minute first.
 *
 * @param max - stops after this many
 */
export async function readUnclaimed(
  deps: UnclaimedDeps,
  consumer: ConsumerEntry,
  { since, until }: { readonly since: number; readonly until: number },
  max: number,
): Promise<PartialList<SampledEvent>> {
  const minutes = minutesOf(since, until);
  const found: SampledEvent[] = [];
  let looked = 0;
  let read = 0;
  for (; read < minutes.length && found.length <= max && looked < EVENTS_MAX; read += MINUTES_AT_ONCE) {
    const pages = await eachOf(minutes.slice(read, read + MINUTES_AT_ONCE), (minute) =>
      publishedIn(deps, minute, EVENTS_MAX),
    );
    const events = pages
      .flatMap(({ items }) => items)
      .filter((event) => event.consumers.includes(consumer.name));
    looked += events.length;
    const keyOf = ({ eventId }: SampledEvent) => inboxKey(consumer.name, eventId);
    const absent = await withItems(deps.table, events, keyOf, (event, item) =>
      item === undefined ? [event] : [],
    );
    found.push(...absent.flat());
  }
  const items = found.sort((a, b) => b.publishedAt - a.publishedAt).slice(0, max);
  return { items, more: read < minutes.length || found.length > max };
}
