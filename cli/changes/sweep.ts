import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { SweepRange, SweepRangeReport } from '../../lambdas/runtime/relay/sweep-range.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { invoke } from '../deployment/invoke.ts';
import { placeOf, placeText } from '../deployment/place.ts';
import { EXIT } from '../terminal/io.ts';
import { prose } from '../terminal/prose.ts';
import { reportOf } from '../terminal/terminal.ts';
import { duration, time } from '../terminal/times.ts';

interface SweepOptions {
  readonly since: number;
  readonly until?: number;
  readonly shards?: number;
  readonly reason: string;
}

/** `mailroom sweep`. It has no plan: it publishes earlier what the scheduled sweep publishes anyway. */
export async function sweepNow(deployment: Deployment, { since, until = 0, shards, reason }: SweepOptions) {
  if (until >= since) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--until (${duration(until)} ago) must be later than --since (${duration(since)} ago). Nothing was swept.`,
    );
  }
  const now = deployment.clock.now();
  const range = { since: now - since, until: now - until, ...(shards !== undefined && { shards }) };
  const [place, by] = [await placeOf(deployment), await deployment.operator()];
  const subject = `${time(range.since)} to ${time(range.until)}`;
  await recordOperation(deployment, { by, reason, command: 'sweep', subject });
  const report = await sweep(deployment, range);
  const isStopped = deployment.terminal.signal.aborted;
  return reportOf(
    { ...place, ...range, ...report },
    { place, report },
    (seen) => [prose(placeText(seen.place)), text(range, seen.report)].join('\n'),
    isStopped ? EXIT.stopped : report.complete ? EXIT.ok : EXIT.attention,
  );
}

/** Sweeps a range with the deployed sweep function and shows the progress. */
export function sweep(deployment: Deployment, range: SweepRange): Promise<SweepRangeReport> {
  const { clients, directory, terminal } = deployment;
  return sweepWhole(
    (part) => invoke<SweepRangeReport>(clients.lambda, directory.mailroom.sweepFunction, part),
    range,
    ({ sweptTo, published }) => terminal.progress(`Swept to ${time(sweptTo)}: ${published} published`),
    terminal.signal,
  );
}

function text({ since, until }: SweepRange, report: SweepRangeReport): string {
  const { published, pending, sweptTo, complete } = report;
  return [
    `Swept ${time(since)} to ${time(complete ? until : sweptTo)}: ${published} published, ${pending} still pending.`,
    ...(pending > 0
      ? [
          'Those still pending are leased by a relay, wait for their next attempt, or are not due: mailroom events list shows them.',
        ]
      : []),
    ...(complete
      ? []
      : [
          'The sweep stopped here: the bus accepts nothing, or the table does not respond. mailroom status shows what waits.',
        ]),
  ]
    .map((line) => prose(line))
    .join('\n');
}

/** After this many calls in a row without progress, the sweep is stuck. */
const IDLE_CALLS_MAX = 2;

/**
 * Sweeps a range, call after call, until it is complete, makes no progress or is stopped.
 *
 * @param call - one call of the sweep function
 * @param progress - called after each call with the sum so far
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
