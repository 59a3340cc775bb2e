import { Command } from 'commander';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { findTrace, type TraceOptions, withTraceOptions } from './trace/find-trace.ts';
import { eventReports, payloadsOf, traceText } from './trace/trace-text.ts';

/** `mailroom trace`: what `why` shows after its verdict. */
export function traceCommand(io: Io): Command {
  const command = new Command('trace').description('Shows the whole story of an event, without a verdict.');
  return withTraceOptions(command).action(
    withSession(io, async (session, options: TraceOptions, id: string) => {
      const trace = await findTrace(session, id, options);
      const payload = options.payload === true;
      const json = { events: eventReports(trace, payload), more: trace.more };
      session.output.result(json, { trace, payloads: payload ? payloadsOf(trace) : [] }, (seen) =>
        traceText(seen.trace, seen.payloads),
      );
      return EXIT.ok;
    }),
  );
}
