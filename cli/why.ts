import { Command } from 'commander';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { findTrace, type TraceOptions, withTraceOptions } from './trace/find-trace.ts';
import { eventReports, payloadsOf, traceText, verdictText } from './trace/trace-text.ts';
import { needsSomebody } from './trace/verdict.ts';
import { verdictOf } from './trace/why-verdict.ts';

/** `mailroom why`. */
export function whyCommand(io: Io): Command {
  const command = new Command('why')
    .description('Says where an event is, what is wrong and what to do; then its whole story.')
    .addHelpText(
      'after',
      `
Examples:
  $ mailroom why 01a1fba6-4458-7a41-9c37-3f5d2b8e1103
  $ mailroom why 3f0c6a52-0b59-4b6e-9d1e-0a3f4c5d6e7f --since 6h    an order's id

It ends with 1 when somebody is needed, with 3 when there is no such event.`,
    );
  return withTraceOptions(command).action(
    withSession(io, async (session, options: TraceOptions, id: string) => {
      const trace = await findTrace(session, id, options);
      const verdict = verdictOf(trace, {
        now: session.clock.now(),
        commandLine: session.commandLine,
        awsLine: session.awsLine,
        tableName: session.table.name,
        sources: session.directory.mailroom.sources,
      });
      const payload = options.payload === true;
      const { state, eventId, consumer = null, text, next } = verdict;
      const json = {
        verdict: { state, eventId, consumer, text, next },
        events: eventReports(trace, payload),
        more: trace.more,
      };
      session.output.result(
        json,
        { verdict, trace, payloads: payload ? payloadsOf(trace) : [] },
        (seen) => `${verdictText(seen.verdict)}\n\n${traceText(seen.trace, seen.payloads)}`,
      );
      return needsSomebody(verdict) ? EXIT.attention : EXIT.ok;
    }),
  );
}
