import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { parseJson } from '../../lambdas/runtime/json-depth.ts';
import { deliveredEventId } from '../../lambdas/runtime/operations/delivered-event.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { Letter, Queues } from '../../lambdas/runtime/operations/queues.ts';
import { type DeadPointer, type InboxRow, inboxKey } from '../../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  type UnreadableRow,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { readDeadPointers } from '../reading/dead-reader.ts';
import { type QueuePlace, queuePlaces } from '../reading/place.ts';
import { unreadableText } from '../reading/row-text.ts';
import { eachOf, readSweepState } from '../reading/rows-reader.ts';

/** One of the four kinds of places in which a message is dead; `dead` is no queue but the DEAD rows of the outbox. */
export type DeathPlace = QueuePlace | { readonly place: 'dead'; readonly kind: 'dead' };

/** What is dead in a place. */
export interface DeadItem {
  /** Its id there: SQS's message id; of a DEAD event the event's id. */
  readonly id: string;
  readonly eventId: string | undefined;
  readonly type: string | undefined;
  /** When SQS took it for the first time, or the event went DEAD, epoch milliseconds; absent where its pointer cannot be read. */
  readonly sentAt: number | undefined;
  /** When it is deleted for ever, epoch milliseconds; DEAD events never are. */
  readonly expiresAt: number | undefined;
  /** The fingerprint of what brought it there: its row's; of a rule's letter EventBridge's own error, of the stream's the mapping's. */
  readonly fingerprint: string | undefined;
  /** As SQS handed it out. */
  readonly received?: Letter | undefined;
  /** What its consumer's inbox said of it then. */
  readonly row?: InboxRow | UnreadableRow | undefined;
}

/** What was found in a place. */
export interface Letters {
  /** Oldest first. */
  readonly letters: readonly DeadItem[];
  /** How many there are in all; approximate, as SQS says. */
  readonly total: number;
}

/** What letters are read with. */
export interface LettersDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly queues: Queues;
}

/** Every place of a Mailroom in which a message is dead. */
export function deathPlaces(directory: Directory): DeathPlace[] {
  return [{ place: 'dead', kind: 'dead' }, ...queuePlaces(directory)];
}

/**
 * Finds a place by its name.
 *
 * @throws `NO_SUCH_PLACE`, naming those that there are
 */
export function deathPlace(directory: Directory, name: string): DeathPlace {
  const places = deathPlaces(directory);
  const found = places.find(({ place }) => place === name);
  if (found !== undefined) return found;
  throw new MailroomError(
    'NO_SUCH_PLACE',
    `There is no place "${name}" in ${directory.mailroom.stack}; there are: ${places.map(({ place }) => place).join(', ')}.`,
  );
}

/**
 * Reads the letters of a place, and hides those of a queue from others until they are put back.
 *
 * @param options.limit - at most this many
 * @param options.hideS - how long they stay hidden if they are not put back, seconds
 */
export async function takeLetters(
  deps: LettersDeps,
  place: DeathPlace,
  options: { readonly limit: number; readonly hideS: number },
): Promise<Letters> {
  if (place.kind === 'dead') return deadEvents(deps, options.limit);
  const { retentionMs, waiting, inFlight } = await deps.queues.depth(place.url);
  const received = await deps.queues.receive(place.url, options);
  const letters = await eachOf(received, async (letter) => {
    const known =
      place.kind === 'stream' ? streamLetter(letter) : await eventLetter(deps.table, place, letter);
    return {
      ...known,
      id: letter.messageId,
      sentAt: letter.sentAt,
      expiresAt: letter.sentAt + retentionMs,
      received: letter,
    };
  });
  return { letters, total: Math.max(letters.length, waiting + inFlight) };
}

/** Shows letters again that were taken. One that is gone is none the worse, and what fails shows itself when its time is up. */
export async function putBack(
  queues: Queues,
  place: DeathPlace,
  letters: readonly DeadItem[],
): Promise<void> {
  if (place.kind === 'dead') return;
  await eachOf(letters, async ({ received }) => {
    if (received !== undefined) await queues.show(place.url, received).catch(() => {});
  });
}

/** Under which id the inbox knows a message: its event's, or one made of SQS's where none can be read. */
export function inboxId({ eventId, id }: Pick<DeadItem, 'eventId' | 'id'>): string {
  return eventId ?? `unreadable-${id}`;
}

type Known = Pick<DeadItem, 'eventId' | 'type' | 'fingerprint' | 'row'>;

/** Where EventBridge writes down why it could not hand over an event: message attributes of the letter (EventBridge user guide). */
async function eventLetter(table: Table, { kind, consumer }: QueuePlace, letter: Letter): Promise<Known> {
  const eventId = deliveredEventId(letter.body);
  const id = inboxId({ eventId, id: letter.messageId });
  const row = readInboxRow(await table.get(inboxKey(consumer?.name ?? '', id), { consistent: true }));
  const cause = readable(row)?.fingerprint;
  const { ERROR_CODE, ERROR_MESSAGE } = letter.attributes;
  const refusal = [ERROR_CODE, ERROR_MESSAGE].filter(Boolean).join(': ') || undefined;
  return {
    eventId,
    type: typeOf(letter.body),
    fingerprint: kind === 'rule' ? (refusal ?? cause) : cause,
    row,
  };
}

/** What a mapping writes of a batch that it gave up on (Lambda developer guide, "Discarding records"). */
function streamLetter(letter: Letter): Known {
  const { requestContext } = parse(letter.body) as { requestContext?: { condition?: unknown } };
  const condition = requestContext?.condition;
  return {
    eventId: undefined,
    type: undefined,
    fingerprint: typeof condition === 'string' ? condition : undefined,
  };
}

function typeOf(body: string): string | undefined {
  const type = (parse(body) as { 'detail-type'?: unknown })['detail-type'];
  return typeof type === 'string' ? type : undefined;
}

/** An object out of a body, whatever it is. */
export function parse(body: string): object {
  try {
    const value = parseJson(body);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

async function deadEvents({ directory, table }: LettersDeps, limit: number): Promise<Letters> {
  const { shards } = await readSweepState(directory, table);
  const { items } = await readDeadPointers(table, shards, Number.POSITIVE_INFINITY);
  const letters = items.map(deadItem).sort((a, b) => (a.sentAt ?? 0) - (b.sentAt ?? 0));
  return { letters: letters.slice(0, limit), total: letters.length };
}

function deadItem(pointer: DeadPointer | UnreadableRow): DeadItem {
  const known = { id: pointer.SK, eventId: pointer.SK, expiresAt: undefined };
  if (isUnreadable(pointer))
    return { ...known, type: undefined, sentAt: undefined, fingerprint: unreadableText(pointer.unreadable) };
  const { type, deadAt, fingerprint } = pointer;
  return { ...known, type, sentAt: deadAt, fingerprint };
}
