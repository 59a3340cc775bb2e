import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { isEventId } from '../lambdas/runtime/store/event-id.ts';
import { durationArgument } from './frame/arguments.ts';
import { BEHIND_MAX_MS } from './frame/aws-clock.ts';
import { withSession } from './frame/command.ts';
import { EXIT, type Io } from './frame/io.ts';
import { duration } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { searchEvents } from './why/event-search.ts';
import { readTrace, type Trace } from './why/trace-reader.ts';
import { eventReports, payloadsOf, traceText, verdictText } from './why/trace-text.ts';
import { isActionRequired } from './why/verdict.ts';
import { verdictOf } from './why/why-verdict.ts';

interface WhyOptions {
  /** Milliseconds. */
  readonly since: number;
  readonly story?: boolean;
  readonly payload?: boolean;
}

/** `mailroom why`. */
export function whyCommand(io: Io): Command {
  return new Command('why')
    .description('Shows where an event is, what is wrong and what to do.')
    .argument(
      '<id>',
      "an event's id, or that of an order, of a chain (correlationId), or of any value in its data",
    )
    .option(
      '--since <duration>',
      'how far back to look for an id that is not an event id, e.g. 15m, 6h, 7d (default: 1h)',
      durationArgument,
      3_600_000,
    )
    .option('--story', 'show everything that happened to the event, and to the events that it caused')
    .option('--payload', "show the story with the events' data")
    .addHelpText(
      'after',
      `
Examples:
  $ mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
  $ mailroom why 3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f --since 6h    an order's id

It ends with 1 when action is required, with 3 when there is no such event.`,
    )
    .action(
      withSession<[string], WhyOptions>(io, async (session, { since, story, payload = false }, id) => {
        const trace = await findTrace(session, id, since);
        const { clock, commandLine, awsLine, table, directory } = session;
        const verdict = verdictOf(trace, {
          now: clock.now(),
          commandLine,
          awsLine,
          tableName: table.name,
          sources: directory.mailroom.sources,
        });
        const json = {
          verdict: { ...verdict, consumer: verdict.consumer ?? null },
          events: eventReports(trace, payload),
          more: trace.more,
        };
        const payloads = payload ? payloadsOf(trace) : [];
        session.output.result(json, { verdict, trace, payloads }, (seen) =>
          [
            verdictText(seen.verdict),
            ...(story || payload ? [traceText(seen.trace, seen.payloads)] : []),
          ].join('\n\n'),
        );
        return isActionRequired(verdict) ? EXIT.attention : EXIT.ok;
      }),
    );
}

/**
 * Finds the events that an id means, and what they caused.
 *
 * @throws `NO_SUCH_EVENT`
 */
async function findTrace(session: Session, given: string, sinceMs: number): Promise<Trace> {
  const { directory, output, clock } = session;
  const lower: string = given.toLowerCase();
  const id: string = isEventId(lower) ? lower : given;
  // A message that cannot be read has no event id; its row is named after the SQS message.
  if (id.startsWith('unreadable-') || isEventId(id)) {
    const trace = await readTrace(session, [id]);
    if (trace.events.length > 0) return trace;
  }
  const onProgress = (read: number, of: number, events: number) =>
    output.progress(`Looking for ${id}: ${read} of ${of} minutes, ${events} events found`);
  const found = await searchEvents({ ...session, onProgress }, id, sinceMs, clock.now() + BEHIND_MAX_MS);
  const trace = await readTrace(session, found);
  if (trace.events.length > 0) return trace;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${directory.mailroom.stack} in the last ${duration(sinceMs)} is, belongs to or holds "${id}". ` +
      'Look further back with --since, e.g. --since 24h. Published events are kept for 7 days unless the stack says otherwise.',
  );
}
