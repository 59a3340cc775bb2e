import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { deadLetterQueues, peekDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { externalEventsOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { externalEventId, externalIdsOf } from '../../../lambdas/runtime/store/external-id.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type PrefixDeps, wholeEventId } from '../../deployment/event-prefix.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { isOf, searchEvents, withCauses } from '../events/search-events.ts';
import type { Trace, UnfoundNumbers } from './trace.ts';
import { PEEK, readTrace } from './trace-reader.ts';

/** Dependencies of {@link findTrace}. */
export type FindDeps = Pick<
  Deployment,
  'directory' | 'table' | 'stored' | 'queues' | 'terminal' | 'commandLine' | 'neighbors' | 'broken' | 'claims'
>;

/**
 * Finds the events that an id selects, and the events that they caused.
 *
 * @throws `NO_SUCH_EVENT`
 */
export async function findTrace(deployment: FindDeps, given: string, window: TimeWindow): Promise<Trace> {
  const { terminal, neighbors = [] } = deployment;
  const rooms = [deployment, ...neighbors];
  const id = await wholeIdIn(rooms, given);
  if (id !== undefined) {
    const trace = await readTrace(deployment, [id]);
    if (trace.events.length > 0) return trace;
  }
  const external = await readTrace(deployment, externalIds(rooms, given));
  if (external.events.length > 0) return external;
  const onProgress = (read: number, of: number, events: number) =>
    terminal.progress(`Searching: ${read} of ${of} minutes, ${many(events, 'event')} found`);
  const found: string[] = [];
  for (const room of rooms)
    found.push(
      ...(await searchEvents({ ...room, signal: terminal.signal, onProgress }, id ?? given, window)),
    );
  const eventIds = await withCauses(rooms, found, id ?? given);
  const trace = await readTrace(deployment, eventIds);
  if (trace.events.length > 0)
    return { ...trace, searchedTo: window.until, unfound: unfoundNumbers(trace, given) };
  for (const room of rooms) {
    const ofDeadLetter = await traceOfDeadLetter(deployment, room, given);
    if (ofDeadLetter !== undefined) return ofDeadLetter;
  }
  const stacks = rooms.map(({ directory }) => directory.mailroom.stack).join(' or ');
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${stacks} ${window.text} matches "${given}", and no dead letter has that id. ` +
      'Search further back, and further ahead for scheduled events, with --since, e.g. --since 24h, or around a time with --at 14:00. Published events are kept for 7 days by default.',
  );
}

/** The event ids that a publisher's own id may stand for: those of each subscription to an external event. */
function externalIds(rooms: readonly Pick<FindDeps, 'directory'>[], given: string): string[] {
  const consumers = rooms.flatMap(({ directory }) => directory.consumers);
  return consumers.flatMap((consumer) =>
    externalEventsOf(consumer).flatMap((event) =>
      externalIdsOf(given, event.external.id?.length ?? 1).map((id) => externalEventId(event, id)),
    ),
  );
}

/** Completes an id in the first Mailroom that has it. */
async function wholeIdIn(rooms: readonly PrefixDeps[], given: string): Promise<string | undefined> {
  for (const room of rooms) {
    const id = await wholeEventId(room, given);
    if (id !== undefined) return id;
  }
  return undefined;
}

/**
 * Returns the numbers of an aggregate's events, from 1 up to the highest one that was found, that were not found: they are older than
 * the search, have expired, or are in a shard that was not read.
 */
function unfoundNumbers({ events }: Pick<Trace, 'events'>, aggregateId: string): UnfoundNumbers[] {
  const found = new Map<string, UnfoundNumbers & { readonly numbers: Set<number> }>();
  for (const { row, envelope } of events) {
    const { source } = readable(row) ?? {};
    const { aggregateType, sequence } = envelope ?? {};
    if (envelope?.aggregateId !== aggregateId || aggregateType === undefined || sequence === undefined)
      continue;
    const key = JSON.stringify([source, aggregateType]);
    const known = found.get(key) ?? { aggregateType, aggregateId, first: 0, last: 0, numbers: new Set() };
    known.numbers.add(sequence);
    found.set(key, known);
  }
  return [...found.values()].flatMap(({ numbers, ...of }) => {
    const last = Math.max(...numbers);
    let first = 1;
    while (numbers.has(first)) first += 1;
    let end = first;
    while (end < last && !numbers.has(end + 1)) end += 1;
    return first > last ? [] : [{ ...of, first, last: end }];
  });
}

/** The form of SQS's message ids. */
const MESSAGE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Finds a dead letter by SQS's message id, or by the aggregate or correlation id of its event, whose outbox row may have expired.
 * Texts of another form than a message id are not searched for.
 *
 * @throws `NO_SUCH_EVENT` if the dead letter belongs to no known event, naming the command that shows it
 */
async function traceOfDeadLetter(
  deployment: FindDeps,
  { directory, commandLine }: Pick<FindDeps, 'directory' | 'commandLine'>,
  given: string,
): Promise<Trace | undefined> {
  if (!MESSAGE_ID.test(given)) return undefined;
  const found = await eachOf(deadLetterQueues(directory), async (source) => {
    const { deadLetters } = await peekDeadLetters(deployment.queues, source, PEEK);
    return deadLetters.flatMap(({ eventId, received: { messageId, body } }) => {
      const isNamed =
        messageId.toLowerCase() === given.toLowerCase() || isOf(jsonObject(body)?.detail, given);
      return isNamed ? [{ source: source.name, eventId: eventId ?? unreadableId(body), messageId }] : [];
    });
  });
  const [named] = found.flat();
  if (named === undefined) return undefined;
  const { source, eventId, messageId } = named;
  // A message without a readable event id has an inbox row under the id of its body.
  const trace = await readTrace(deployment, [eventId]);
  if (trace.events.length > 0) return trace;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `${messageId} is a dead letter in ${source}, and no row of its event is stored. Look at it: ` +
      `\`${commandLine(shell`dlq show ${source} ${messageId}`)}\`.`,
  );
}
