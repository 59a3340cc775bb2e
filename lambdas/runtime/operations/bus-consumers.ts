import type { DatabaseEngine } from '../base/database-engine.ts';
import type { BusDirectory } from './bus-directory.ts';
import { type ConsumerEntry, consumerEntryName, type Directory } from './directory.ts';
import type { BrokenDirectory } from './directory-reader.ts';

/** A consumer as its own Mailroom names it: its inbox rows, its dead-letter sources and commands have that name. */
export function atHome(consumer: ConsumerEntry): ConsumerEntry {
  const { elsewhere, ...entry } = consumer;
  return elsewhere === undefined ? consumer : { ...entry, name: elsewhere.name };
}

/**
 * Adds the consumers of the other Mailrooms on a bus to a Mailroom's directory, named `<stack>/<consumer>`: an event of this Mailroom
 * must reach them as well.
 *
 * @param claims - of the bus: a claimed consumer without an entry is unlisted @default none
 *
 * @example
 * ```ts
 * const { consumers } = withNeighbors(orders, [shipping]); // payments, shipping-prod/parcels
 * ```
 */
export function withNeighbors(
  own: Directory,
  neighbors: readonly Directory[],
  claims?: BusDirectory,
): Directory {
  if (neighbors.length === 0 && claims === undefined) return own;
  const consumers = [...own.consumers];
  const unlisted = [...(own.unlisted ?? [])];
  for (const { mailroom, ...directory } of neighbors) {
    const { stack, table } = mailroom;
    for (const entry of directory.consumers) {
      const label = `${stack}/${entry.name}`;
      // A stack may contain several Mailrooms.
      const name = consumers.some((other) => other.name === label) ? `${table}/${entry.name}` : label;
      consumers.push({ ...entry, name, elsewhere: { table, name: entry.name } });
    }
    for (const one of directory.unlisted ?? []) unlisted.push({ ...one, name: `${stack}/${one.name}` });
  }
  const known = new Set(
    consumers.map(
      ({ name, elsewhere }) => `${elsewhere?.table ?? own.mailroom.table} ${elsewhere?.name ?? name}`,
    ),
  );
  for (const { table, name, stack } of claims?.consumers ?? []) {
    const label = table === own.mailroom.table ? name : `${stack}/${name}`;
    if (known.has(`${table} ${name}`) || unlisted.some((one) => one.name === label)) continue;
    unlisted.push({ name: label, parameter: consumerEntryName(table, name) });
  }
  return { ...own, consumers, ...(unlisted.length > 0 && { unlisted }) };
}

/** A parameter of another owner on the bus that cannot be used. */
export interface BusFault {
  /** The name of the parameter. */
  readonly parameter: string;
  /** Why it cannot be used, as a sentence with the remedy. */
  readonly text: string;
}

/** The readings of a Mailroom's bus. */
export interface BusReadings {
  readonly directory: Directory;
  readonly neighbors?: readonly { readonly directory: Directory }[] | undefined;
  /** The Mailrooms of the region whose entry cannot be used. @default none */
  readonly broken?: readonly BrokenDirectory[] | undefined;
}

/** The Mailrooms without a usable entry that are on the bus: a consumer of theirs is claimed there, or their entry names it. */
export function brokenNeighbors({ directory, broken = [] }: BusReadings, claims?: BusDirectory) {
  const { bus, table } = directory.mailroom;
  const claimed = new Set(claims?.consumers.map((claim) => claim.table));
  return broken.filter((one) => one.table !== table && (one.hints.bus === bus || claimed.has(one.table)));
}

/**
 * Finds the parameters of other owners on the bus that cannot be used. They are findings: what they describe was not checked, and
 * everything else was.
 */
export function busFaults(readings: BusReadings, claims?: BusDirectory): BusFault[] {
  const unlisted = (readings.neighbors ?? []).flatMap(({ directory }) => directory.unlisted ?? []);
  const all = [...brokenNeighbors(readings, claims), ...unlisted, ...(claims?.faults ?? [])];
  return all.flatMap(({ parameter, fault }) => (fault === undefined ? [] : [{ parameter, text: fault }]));
}

/** A consumer whose inbox is in a database. */
export type InDatabase = ConsumerEntry & { readonly inbox: DatabaseEngine };

/**
 * Divides the consumers of a directory by their inboxes: those that can be read, and those in a database that cannot, where a
 * missing row proves nothing.
 *
 * @param readsDatabase - the rows of the Mailroom's own consumers are also read from its database of this kind
 */
export function byInbox(
  directory: Directory,
  readsDatabase: DatabaseEngine | undefined,
): { readonly read: Directory; readonly unread: readonly InDatabase[] } {
  const isUnread = (consumer: ConsumerEntry): consumer is InDatabase =>
    consumer.inbox !== undefined && (consumer.inbox !== readsDatabase || consumer.elsewhere !== undefined);
  return {
    read: { ...directory, consumers: directory.consumers.filter((consumer) => !isUnread(consumer)) },
    unread: directory.consumers.filter(isUnread),
  };
}

/** Returns the other Mailrooms on a Mailroom's bus. A Mailroom that does not share its bus has none. */
export function neighborsOf(own: Directory, directories: readonly Directory[]): Directory[] {
  const { bus, table } = own.mailroom;
  return directories.filter(({ mailroom }) => mailroom.bus === bus && mailroom.table !== table);
}
