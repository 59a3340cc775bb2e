import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { runChecks } from '../status/part-checks.ts';
import { pausesOf } from '../status/pauses.ts';
import { fixLine } from '../status/status-findings.ts';
import type { WiringProblem, WiringReport } from '../status/wiring.ts';
import { wiringChecks } from '../status/wiring-report.ts';
import { type MessageCase, messageCase } from './message-case.ts';
import type { Trace } from './trace-reader.ts';
import type { StateText, WhyContext } from './verdict.ts';

/** Dependencies of {@link checkWiring}. */
export type WiringCheckDeps = Pick<Deployment, 'directory' | 'wiring' | 'queues' | 'table' | 'clock'>;

/** The parts that publish a PENDING event: see `wiringChecks`. */
const RELAY_PARTS = ['table', 'stream relay', 'sweep'];

/** The problems that keep events out of a queue. They do not delay a message that is already in it. */
const ROUTE_PROBLEMS: ReadonlySet<WiringProblem['problem']> = new Set([
  'no-bus',
  'no-rule',
  'rule-disabled',
  'pattern',
  'target',
]);

/** The cases of a message that its consumer has yet to claim, for the first time or again. */
const TO_CLAIM: ReadonlySet<MessageCase | undefined> = new Set<MessageCase>([
  'waiting',
  'waiting-late',
  'not-in-queue',
  'failed',
  'failed-late',
  'abandoned',
  'abandoned-late',
]);

/** Reads the wiring of the parts for which the events of a trace wait. It reads nothing if none waits. */
export async function checkWiring(
  { directory, wiring, ...deployment }: WiringCheckDeps,
  { events }: Trace,
  now: number,
): Promise<WiringReport> {
  const isPending = events.some(({ row }) => readable(row)?.status === 'PENDING');
  const consumers = events.flatMap((event) =>
    event.messages
      .filter((message) => TO_CLAIM.has(messageCase(event, message, now)))
      .map(({ consumer }) => consumer),
  );
  const parts = new Set([...(isPending ? RELAY_PARTS : []), ...consumers.map(({ name }) => name)]);
  if (consumers.length > 0) parts.add('bus');
  const urls = [...new Set(consumers.map(({ queue }) => queue))];
  const depths = new Map(
    await eachOf(urls, async (url) => [url, await depthOf(deployment.queues, url)] as const),
  );
  const pauses = pausesOf(deployment);
  const checks = wiringChecks({ directory, wiring, pauses, queueArn: (url) => depths.get(url)?.arn });
  return runChecks(checks.filter(({ part }) => parts.has(part)));
}

/** Why a message cannot be claimed; `undefined` if no problem is known. @param isQueued - the message is in the queue */
export function claimStopped(
  { wiring, ...lines }: WhyContext,
  consumer: string,
  found: MessageCase,
  isQueued: boolean,
): Pick<StateText, 'text' | 'next'> | undefined {
  if (!TO_CLAIM.has(found)) return undefined;
  const own = wiring?.problems.filter(
    ({ part, problem }) =>
      (part === consumer || part === 'bus') && (!isQueued || !ROUTE_PROBLEMS.has(problem)),
  );
  return stoppedBy(own, lines);
}

/** Why an event cannot be published; `undefined` if no problem is known. @param parts - that could publish it next */
export function publishStopped(
  { wiring, ...lines }: WhyContext,
  parts: readonly string[] = RELAY_PARTS,
): Pick<StateText, 'text' | 'next'> | undefined {
  return stoppedBy(
    wiring?.problems.filter(({ part }) => parts.includes(part)),
    lines,
  );
}

function stoppedBy(
  problems: readonly WiringProblem[] = [],
  lines: Pick<WhyContext, 'commandLine' | 'awsLine'>,
): Pick<StateText, 'text' | 'next'> | undefined {
  const [first] = problems;
  if (first === undefined) return undefined;
  const texts = problems.map(({ text }) => text).join('; ');
  const more = problems.length > 1 ? ' The command below fixes the first; `status` has the others.' : '';
  return { text: `Cause: ${texts}.${more}`, next: fixLine(first.fix, lines) };
}
