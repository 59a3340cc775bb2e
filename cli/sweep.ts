import { Command } from 'commander';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import type { SweepRange, SweepRangeReport } from '../lambdas/runtime/relay/sweep-range.ts';
import { recordOperation } from '../lambdas/runtime/store/operation-record.ts';
import { durationArgument, reasonArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { invoke } from './frame/invoke.ts';
import { EXIT, type Io } from './frame/io.ts';
import { duration, time } from './frame/output.ts';
import type { Session } from './frame/session.ts';

interface SweepOptions {
  readonly since: number;
  readonly until?: number;
  readonly reason: string;
}

/** `mailroom sweep`. */
export function sweepCommand(io: Io): Command {
  return new Command('sweep')
    .description(
      'Reads every minute of a range now, whatever its age, and publishes the PENDING events that are due. The sweep reads ' +
        'each minute by itself; this is for when something kept it from that.',
    )
    .requiredOption('--since <duration>', 'from so long ago, e.g. 6h', durationArgument)
    .option('--until <duration>', 'to so long ago (default: now)', durationArgument)
    .option('--reason <text>', 'why; stored with the change', reasonArgument, 'not given')
    .action(
      withSession<[], SweepOptions>(io, async (session, { since, until = 0, reason }) => {
        if (until >= since) {
          throw new MailroomError(
            'BAD_ARGUMENT',
            `--until ${duration(until)} ago is not after --since ${duration(since)} ago. Nothing was swept.`,
          );
        }
        const now = session.clock.now();
        const range = { since: now - since, until: now - until };
        const by = await session.operator();
        const subject = `${time(range.since)} to ${time(range.until)}`;
        await recordOperation(session, { by, reason, command: 'sweep', subject });
        const report = await sweep(session, range);
        session.output.result({ ...range, ...report }, report, (seen) => text(range, seen));
        if (session.signal.aborted) return EXIT.stopped;
        return report.complete ? EXIT.ok : EXIT.attention;
      }),
    );
}

/** Sweeps a range through the deployed sweep function, showing how far it is. */
export function sweep(session: Session, range: SweepRange): Promise<SweepRangeReport> {
  const { lambda, directory, output, signal } = session;
  return sweepWhole(
    (part) => invoke<SweepRangeReport>(lambda, directory.mailroom.sweepFunction, part),
    range,
    ({ sweptTo, published }) => output.progress(`swept to ${time(sweptTo)}, ${published} published`),
    signal,
  );
}

function text({ since, until }: SweepRange, report: SweepRangeReport): string {
  const { published, pending, sweptTo, complete } = report;
  return [
    `Swept ${time(since)} to ${time(complete ? until : sweptTo)}: ${published} published, ${pending} still pending.`,
    ...(pending > 0
      ? ['Pending ones are being published, or wait after a failure; the sweep comes back to them.']
      : []),
    ...(complete
      ? []
      : [
          'It came no further: the bus takes nothing, or the table does not answer. mailroom status says what waits.',
        ]),
  ].join('\n');
}

/** Calls in a row that neither came further nor published anything: then the sweep is stuck. */
const IDLE_CALLS_MAX = 2;

/**
 * Sweeps a range, call after call, until it is done, or nothing goes forward any more, or it is asked to stop.
 *
 * @param call - one call of the sweep function
 * @param progress - told after each call how far it is
 * @returns the sum of all calls
 */
export async function sweepWhole(
  call: (range: SweepRange) => Promise<SweepRangeReport>,
  range: SweepRange,
  progress: (report: SweepRangeReport) => void,
  signal?: AbortSignal,
): Promise<SweepRangeReport> {
  let sum: SweepRangeReport = { published: 0, pending: 0, sweptTo: range.since, complete: false };
  for (let idle = 0; !sum.complete && idle < IDLE_CALLS_MAX && !signal?.aborted; ) {
    const { published, pending, sweptTo, complete } = await call({ ...range, since: sum.sweptTo });
    idle = published === 0 && sweptTo === sum.sweptTo ? idle + 1 : 0;
    sum = { published: sum.published + published, pending: sum.pending + pending, sweptTo, complete };
    progress(sum);
  }
  return sum;
}
