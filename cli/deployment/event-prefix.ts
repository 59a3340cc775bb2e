import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { eventIdInSortKey, eventIdTime, isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { isExternalEventId } from '../../lambdas/runtime/store/external-id.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, minutesOf, readMinutes, readSweepState } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/** The fewest characters of a prefix: of an event id, they name a range of 66 seconds, so at most three minutes are read. */
export const PREFIX_MIN = 8;

/** The first and the last event id of each prefix. */
const FIRST = '00000000-0000-7000-8000-000000000000';
const LAST = 'ffffffff-ffff-7fff-bfff-ffffffffffff';

/** Completes the beginning of the id of an external event. */
const EXTERNAL = '00000000-0000-8000-8000-000000000000';

/** The candidates that an error lists. */
const LISTED_MAX = 10;

/** The ids that are read of one partition: enough to see that a prefix is ambiguous. */
const READ_MAX = 25;

/** Dependencies of {@link wholeEventId}. */
export interface PrefixDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly stored: StoredRows;
}

/** An id, or the beginning of one, as it was typed or copied: in any case, and cut with `…` or `...`. */
export function typedId(given: string): string {
  return given.toLowerCase().replace(/(?:…|\.{3})$/, '');
}

/**
 * Completes the beginning of an event id, of at least 8 characters. An event id begins with its time, so only those minutes of
 * the outbox are read, and the pointers to rejected and failed messages, whose outbox rows may have expired.
 *
 * @param given - in any case; a trailing `…` or `...` is ignored
 * @returns the whole id; an `unreadable-<digest>`, the id of a message without an event id, as it is; `undefined` if the text is not a prefix of a stored event id
 * @throws `AMBIGUOUS_ID` if several events match, listing them
 * @example
 * ```ts
 * await wholeEventId(deployment, '01a1fe32-7358'); // '01a1fe32-7358-7e75-8b69-4ee374467501'
 * ```
 */
export async function wholeEventId(deps: PrefixDeps, given: string): Promise<string | undefined> {
  if (/^unreadable-[\w-]+$/.test(given)) return given;
  const prefix: string = typedId(given);
  if (isEventId(prefix) || isExternalEventId(prefix)) return prefix;
  if (!isPrefix(prefix)) return undefined;
  const found = await idsOf(deps, prefix);
  if (found.length <= 1) return found[0];
  const more = found.length > LISTED_MAX ? ', …' : '';
  throw new MailroomError(
    'AMBIGUOUS_ID',
    `At least ${found.length} events begin with "${prefix}". Give more of the id: ${found.slice(0, LISTED_MAX).join(', ')}${more}`,
  );
}

function isPrefix(text: string): boolean {
  return (
    text.length >= PREFIX_MIN && (hasTime(text) || isExternalEventId(text + EXTERNAL.slice(text.length)))
  );
}

/** True for the beginning of the id of a Mailroom event; the first 12 digits of an id do not tell whether the event is external. */
function hasTime(prefix: string): boolean {
  return isEventId(prefix + FIRST.slice(prefix.length));
}

async function idsOf({ directory, table, stored }: PrefixDeps, prefix: string): Promise<string[]> {
  const { shards } = await readSweepState(directory, table);
  const rest = prefix.length;
  const minutes = hasTime(prefix)
    ? minutesOf(eventIdTime(prefix + FIRST.slice(rest)), eventIdTime(prefix + LAST.slice(rest)))
    : [];
  const choice = { idPrefix: prefix, max: READ_MAX };
  const outbox = await readMinutes(stored.outbox, { minutes, shards }, choice, ({ SK }) =>
    eventIdInSortKey(SK),
  );
  const inboxes = await eachOf([...directory.consumers, ...(directory.sourceConsumers ?? [])], ({ name }) =>
    stored.inbox.idsFrom(name, prefix, READ_MAX),
  );
  const ids = [...outbox.flatMap(({ items }) => items.flatMap((id) => id ?? [])), ...inboxes.flat()];
  return [...new Set(ids.filter((id) => isEventId(id) || isExternalEventId(id)))].sort();
}
