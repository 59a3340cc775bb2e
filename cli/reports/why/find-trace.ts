import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { deadLetterQueues, peekDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { externalEventsOf } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { externalEventId, externalIdsOf } from '../../../lambdas/runtime/store/external-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type PrefixDeps, wholeEventId } from '../../deployment/event-prefix.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { isOf, searchEvents, withCauses } from '../events/search-events.ts';
import type { Trace } from './trace.ts';
import { PEEK, readTrace } from './trace-reader.ts';

/** Dependencies of {@link findTrace}. */
export type FindDeps = Pick<
  Deployment,
  | 'directory'
  | 'table'
  | 'stored'
  | 'queues'
  | 'execution'
  | 'terminal'
  | 'commandLine'
  | 'neighbors'
  | 'broken'
  | 'claims'
>;

/** Events that a text may select. */
interface Selection {
  readonly eventIds: readonly string[];
  /** The search that found them. @default they were not searched for */
  readonly searched?: Trace['searched'];
  /** The message of the error if no row of them is stored. @default the next selection is tried */
  readonly unstored?: string;
}

/**
 * Finds the events that an id selects, and the events that they caused.
 *
 * @throws `NO_SUCH_EVENT`; for a dead letter that belongs to no known event, naming the command that shows it
 */
export async function findTrace(deployment: FindDeps, given: string, window: TimeWindow): Promise<Trace> {
  const rooms = [deployment, ...(deployment.neighbors ?? [])];
  for await (const { eventIds, searched, unstored } of selectionsOf(deployment, rooms, given, window)) {
    const trace = await readTrace(deployment, eventIds);
    if (trace.events.length > 0) return { ...trace, searched };
    if (unstored !== undefined) throw new MailroomError('NO_SUCH_EVENT', unstored);
  }
  const stacks = rooms.map(({ directory }) => directory.mailroom.stack).join(' or ');
  const wider = window.until - window.since < DAY_MS ? '24h' : '7d';
  const scheduled = shell`events list --scheduled --within 30d --aggregate ${given}`;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${stacks} ${window.text} matches "${given}", and no dead letter has that id. ` +
      `Search further back, and as far ahead for scheduled events, with --since, e.g. --since ${wider}, or around a time with --at 14:00. Published events are kept for 7 days by default. ` +
      `A scheduled event is found by its due time, which may be later than intended: \`${scheduled}\`.`,
  );
}

/** The events that a text may select: the cheapest to find first. */
async function* selectionsOf(
  { terminal, queues }: FindDeps,
  rooms: readonly Omit<FindDeps, 'neighbors'>[],
  given: string,
  window: TimeWindow,
): AsyncGenerator<Selection> {
  const external = externalIds(rooms, given);
  const id = await wholeIdIn(rooms, given);
  if (id !== undefined) yield { eventIds: [id] };
  if (external.length > 0) yield { eventIds: external };
  const onProgress = (read: number, of: number, events: number) =>
    terminal.progress(`Searching: ${read} of ${of} minutes, ${many(events, 'event')} found`);
  const found: string[] = [];
  for (const room of rooms)
    found.push(
      ...(await searchEvents({ ...room, signal: terminal.signal, onProgress }, id ?? given, window)),
    );
  const eventIds = await withCauses(rooms, found, id ?? given);
  yield { eventIds, searched: { given, until: window.until } };
  for (const room of rooms) yield* ofDeadLetter(queues, room, given);
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

/** The form of SQS's message ids. */
const MESSAGE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Finds a dead letter by SQS's message id, or by the aggregate or correlation id of its event, whose outbox row may have expired.
 * Texts of another form than a message id are not searched for.
 */
async function* ofDeadLetter(
  queues: FindDeps['queues'],
  { directory, commandLine }: Pick<FindDeps, 'directory' | 'commandLine'>,
  given: string,
): AsyncGenerator<Selection> {
  if (!MESSAGE_ID.test(given)) return;
  const found = await eachOf(deadLetterQueues(directory), async (source) => {
    const { deadLetters } = await peekDeadLetters(queues, source, PEEK);
    return deadLetters.flatMap(({ eventId, received: { messageId, body } }) => {
      const isNamed =
        messageId.toLowerCase() === given.toLowerCase() || isOf(jsonObject(body)?.detail, given);
      return isNamed ? [{ source: source.name, eventId: eventId ?? unreadableId(body), messageId }] : [];
    });
  });
  const [named] = found.flat();
  if (named === undefined) return;
  const { source, eventId, messageId } = named;
  // A message without a readable event id has an inbox row under the id of its body.
  yield {
    eventIds: [eventId],
    unstored:
      `${messageId} is a dead letter in ${source}, and no row of its event is stored. Look at it: ` +
      `\`${commandLine(shell`dlq show ${source} ${messageId}`)}\`.`,
  };
}
