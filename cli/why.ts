import { Command, Option } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { isEventId } from '../lambdas/runtime/store/event-id.ts';
import type { JudgeDeps } from './dead-letters/redrive-plan.ts';
import { durationArgument } from './frame/arguments.ts';
import { BEHIND_MAX_MS } from './frame/aws-clock.ts';
import { withSession } from './frame/command.ts';
import { checkBodies } from './frame/invoke.ts';
import { EXIT, type Io } from './frame/io.ts';
import { duration, many } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { searchEvents } from './why/event-search.ts';
import { checkRedrive } from './why/redrive-check.ts';
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
    .description('Shows where an event is, what is wrong and what to do. Exits with 1 if action is required.')
    .argument(
      '<id>',
      'an event id, an aggregate id (such as an order), a correlation id, or any value in the data of an event',
    )
    .addOption(
      new Option('--since <duration>', 'how far back to search for an id other than an event id')
        .argParser(durationArgument)
        .default(3_600_000, '1h'),
    )
    .option('--story', 'add the history of the event and of the events that it caused')
    .option('--payload', 'add the story and the data of each event')
    .addHelpText(
      'after',
      `
Examples:
  $ mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
  $ mailroom why 3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f --since 6h`,
    )
    .action(
      withSession<[string], WhyOptions>(io, async (session, { since, story, payload = false }, id) => {
        const trace = await findTrace(session, id, since);
        const { clock, commandLine, awsLine, table, directory } = session;
        const context = {
          now: clock.now(),
          commandLine,
          awsLine,
          tableName: table.name,
          sources: directory.mailroom.sources,
        };
        const check: JudgeDeps['check'] = (consumer, bodies) => checkBodies(session.lambda, consumer, bodies);
        const deps = { directory, table, check, now: context.now };
        const redrive = await checkRedrive(deps, trace, verdictOf(trace, context));
        const verdict = verdictOf(trace, { ...context, redrive });
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
 * Finds the events that an id selects, and the events that they caused.
 *
 * @throws `NO_SUCH_EVENT`
 */
async function findTrace(session: Session, given: string, sinceMs: number): Promise<Trace> {
  const { directory, output, clock } = session;
  const lower: string = given.toLowerCase();
  const id: string = isEventId(lower) ? lower : given;
  // An unreadable message has no event id: its row is named after the SQS message.
  if (id.startsWith('unreadable-') || isEventId(id)) {
    const trace = await readTrace(session, [id]);
    if (trace.events.length > 0) return trace;
  }
  const onProgress = (read: number, of: number, events: number) =>
    output.progress(`Searching: ${read} of ${of} minutes, ${many(events, 'event')} found`);
  const found = await searchEvents({ ...session, onProgress }, id, sinceMs, clock.now() + BEHIND_MAX_MS);
  const trace = await readTrace(session, found);
  if (trace.events.length > 0) return trace;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `No event of ${directory.mailroom.stack} in the last ${duration(sinceMs)} matches "${id}". ` +
      'Search further back with --since, e.g. --since 24h. Published events are kept for 7 days by default.',
  );
}
