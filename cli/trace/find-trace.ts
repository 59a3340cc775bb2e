import type { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { durationArgument } from '../frame/arguments.ts';
import { BEHIND_MAX_MS } from '../frame/aws-clock.ts';
import { duration } from '../frame/output.ts';
import type { Session } from '../frame/session.ts';
import { searchEvents } from './event-search.ts';
import { readTrace, type Trace } from './trace-reader.ts';

/** How far back an id that is no event id is looked for, unless `--since` says more. */
const SINCE_MS = 3_600_000;

/** The options of `why` and `trace`. */
export interface TraceOptions {
  /** Milliseconds. @default 1 hour */
  readonly since?: number;
  readonly payload?: boolean;
}

/** Adds what `why` and `trace` take. */
export function withTraceOptions(command: Command): Command {
  return command
    .argument(
      '<id>',
      "an event's id, or that of an order, of a chain (correlationId), of whatever the events tell of",
    )
    .option(
      '--since <duration>',
      'how far back to look for an id that is no event id, e.g. 15m, 6h, 7d (default: 1h)',
      durationArgument,
    )
    .option('--payload', "show the events' data too");
}

/**
 * Finds the events that an id means, and what they caused.
 *
 * @throws `NO_SUCH_EVENT`
 */
export async function findTrace(session: Session, given: string, options: TraceOptions): Promise<Trace> {
  const lower: string = given.toLowerCase();
  const id: string = isEventId(lower) ? lower : given;
  // A message that cannot be read has no event id; its row is named after the SQS message.
  if (id.startsWith('unreadable-') || isEventId(id)) {
    const trace = await readTrace(session, [id]);
    if (trace.events.length > 0) return trace;
  }
  const sinceMs = options.since ?? SINCE_MS;
  const found = await searchEvents(
    {
      directory: session.directory,
      table: session.table,
      signal: session.signal,
      onProgress: (read, of, events) =>
        session.output.progress(`Looking for ${id}: ${read} of ${of} minutes, ${events} events found`),
    },
    id,
    sinceMs,
    session.clock.now() + BEHIND_MAX_MS,
  );
  const trace = await readTrace(session, found);
  if (trace.events.length > 0) return trace;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${session.directory.mailroom.stack} in the last ${duration(sinceMs)} is, belongs to or holds "${id}". ` +
      'Look further back with --since, e.g. --since 24h. Published events are kept for 7 days unless the stack says otherwise.',
  );
}
