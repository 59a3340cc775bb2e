import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { foreignEventsOf } from '../../../lambdas/runtime/operations/subscriptions.ts';
import { foreignEventId, foreignIdsOf } from '../../../lambdas/runtime/store/foreign-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { wholeEventId } from '../../deployment/event-prefix.ts';
import { many } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { findDeadLetter, type NamedDeadLetter } from './dead-letter-search.ts';
import { searchEvents } from './event-search.ts';
import { readTrace, type Trace } from './trace-reader.ts';

/** Dependencies of {@link findTrace}. */
export type FindDeps = Pick<Deployment, 'directory' | 'table' | 'queues' | 'terminal' | 'commandLine'>;

/**
 * Finds the events that an id selects, and the events that they caused.
 *
 * @throws `NO_SUCH_EVENT`
 */
export async function findTrace(deployment: FindDeps, given: string, window: TimeWindow): Promise<Trace> {
  const { directory, terminal } = deployment;
  const id = await wholeEventId(deployment, given);
  if (id !== undefined) {
    const trace = await readTrace(deployment, [id]);
    if (trace.events.length > 0) return trace;
  }
  const foreign = await readTrace(deployment, foreignIds(directory, given));
  if (foreign.events.length > 0) return foreign;
  const onProgress = (read: number, of: number, events: number) =>
    terminal.progress(`Searching: ${read} of ${of} minutes, ${many(events, 'event')} found`);
  const found = await searchEvents(
    { ...deployment, signal: terminal.signal, onProgress },
    id ?? given,
    window,
  );
  const trace = await readTrace(deployment, found);
  if (trace.events.length > 0) return trace;
  const deadLetter = await findDeadLetter(deployment, given);
  if (deadLetter !== undefined) return traceOfDeadLetter(deployment, deadLetter);
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${directory.mailroom.stack} ${window.text} matches "${given}", and no dead letter has that id. ` +
      'Search further back with --since, e.g. --since 24h, or around a time with --at 14:00. Published events are kept for 7 days by default.',
  );
}

/** The event ids that a publisher's own id may stand for: those of each subscription to a foreign event. */
function foreignIds({ consumers }: FindDeps['directory'], given: string): string[] {
  return consumers.flatMap((consumer) =>
    foreignEventsOf(consumer).flatMap((event) =>
      foreignIdsOf(given, event.foreign.id?.length ?? 1).map((id) => foreignEventId(event, id)),
    ),
  );
}

/** @throws `NO_SUCH_EVENT` if the dead letter belongs to no known event, naming the command that shows it */
async function traceOfDeadLetter(deployment: FindDeps, found: NamedDeadLetter): Promise<Trace> {
  const trace = await readTrace(deployment, [found.traceId]);
  if (trace.events.length > 0) return trace;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `${found.messageId} is a dead letter in ${found.source}, and no row of its event is stored. Look at it: ` +
      `\`${deployment.commandLine(shell`dlq show ${found.source} ${found.messageId}`)}\``,
  );
}
