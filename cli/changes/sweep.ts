import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { SweepRange, SweepRangeReport } from '../../lambdas/runtime/relay/sweep-range.ts';
import { eventIdTime, isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { invoke } from '../deployment/invoke.ts';
import { placeOf, placeText } from '../deployment/place.ts';
import { readUnpublished, readWaits } from '../reports/events/list-events.ts';
import { groupText, type WaitGroup, waitCommand, waitGroups } from '../reports/events/waits.ts';
import { EXIT } from '../terminal/io.ts';
import { clipped, many } from '../terminal/output.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { hours, type ShellText, shell } from '../terminal/shell.ts';
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
  const left = isStopped ? [] : await readLeft(deployment, range);
  return reportOf(
    { ...place, ...range, ...report, left },
    { place, report, left },
    (seen) =>
      [
        prose(placeText(seen.place)),
        ...sweptText(range, seen.report),
        ...leftText(deployment, seen, since),
      ].join('\n'),
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

/** The events of a sweep's range that are not published after it, by reason. `dead`: they are not retried. */
interface LeftGroup extends Omit<WaitGroup, 'because'> {
  readonly because: WaitGroup['because'] | 'dead';
  /** The words of the command that helps; never those of the sweep that was made. `null`: none is needed. */
  readonly next: ShellText | null;
}

/** Reads what a sweep has left, as `status`, `why` and `events list` judge it. */
async function readLeft(deployment: Deployment, { since, until }: SweepRange): Promise<LeftGroup[]> {
  const now = deployment.clock.now();
  const [{ waits }, { items }] = await Promise.all([
    readWaits(deployment),
    readUnpublished(deployment, { pending: false, dead: true }),
  ]);
  const dead = items.flatMap(({ eventId, at, lastError }) =>
    isEventId(eventId) ? [{ eventId, lastError, committedAt: eventIdTime(eventId), deadAt: at ?? now }] : [],
  );
  const inRange = ({ committedAt }: { readonly committedAt: number }) =>
    committedAt >= since - MINUTE_MS && committedAt < until;
  const groups = waitGroups(waits.filter(inRange)).map(
    (group): LeftGroup => ({
      ...group,
      next: waitCommand(group, now, true) ?? null,
    }),
  );
  const [first] = dead.filter(inRange);
  if (first === undefined) return groups;
  const gone: LeftGroup = {
    ...{ because: 'dead', store: null, events: dead.filter(inRange).length, example: first.eventId },
    ...{ since: first.deadAt, committedAt: first.committedAt, until: null, lastError: first.lastError },
    next: shell`dlq list dead --by cause`,
  };
  return [...groups, gone];
}

function sweptText(
  { since, until }: SweepRange,
  { published, pending, sweptTo, complete }: SweepRangeReport,
): string[] {
  return [
    `Swept ${time(since)} to ${time(complete ? until : sweptTo)}: ${published} published, ${pending} still pending.`,
    ...(complete ? [] : ['The sweep stopped here: the bus accepts nothing, or the table does not respond.']),
  ].map((line) => prose(line));
}

/** Why each event of the range is not published, and the command that helps; if nothing was there, the command that looks elsewhere. */
function leftText(
  { commandLine, clock }: Deployment,
  { report, left }: { readonly report: SweepRangeReport; readonly left: readonly LeftGroup[] },
  sinceMs: number,
): string[] {
  const command = (words: ShellText) => `    ${paint.dim(commandLine(words))}`;
  if (left.length > 0) {
    const now = clock.now();
    return left.flatMap((group) => {
      const text =
        group.because === 'dead'
          ? `${many(group.events, 'event')} DEAD, which no sweep retries: ${clipped(group.lastError ?? 'unknown cause')}; e.g. ${clipped(group.example)}`
          : groupText({ ...group, because: group.because }, now);
      return [prose(`  • ${text}`, 4), ...(group.next === null ? [] : [command(group.next)])];
    });
  }
  if (!report.complete) return [command(shell`doctor`)];
  if (report.published > 0) return [];
  const none =
    'No event of this range waits in the shards that the sweep reads. To find events in other shards, and published ones that a consumer missed:';
  return [prose(`  ${none}`, 2), command(shell`audit --since ${hours(sinceMs)}`)];
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
