import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { atHome } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readSweptAt } from '../../deployment/rows-reader.ts';
import { sentence } from '../../terminal/output.ts';
import { type Checked, type PartProblem, runChecks } from '../checks/check.ts';
import { flowChecks } from '../checks/checks.ts';
import { pausesOf } from '../checks/pauses.ts';
import { isStop, type ProblemKind, whoChanged } from '../checks/problem-kinds.ts';
import { fixLine } from '../findings/findings.ts';
import type { Delay, StateText, WhyContext } from './event-state.ts';
import { isHeld, type MessageCase, messageCase } from './message-case.ts';
import type { Trace } from './trace.ts';

/** Dependencies of {@link checkWiring}. */
export type WiringCheckDeps = Pick<
  Deployment,
  'directory' | 'resources' | 'queues' | 'table' | 'stored' | 'clock' | 'database'
>;

/** The problems that stop an event or a message, as a sentence and in parts. */
export interface FlowStop extends Pick<StateText, 'text' | 'next'> {
  readonly delay: Omit<Delay, 'place'>;
}

/** The parts that publish a PENDING event: see `flowChecks`. */
const RELAY_PARTS = ['table', 'stream relay', 'sweep'];

/** The part that publishes one in a database. */
const DATABASE_PARTS = ['database'];

/** The problems that keep events out of a queue. They do not delay a message that is already in it. */
const ROUTE_PROBLEMS: ReadonlySet<ProblemKind> = new Set<ProblemKind>([
  'no-bus',
  'no-rule',
  'rule-disabled',
  'pattern',
  'target',
  'target-input',
]);

/** The cases of a message that its consumer has never claimed: failed invocations explain only these. */
const UNCLAIMED: ReadonlySet<MessageCase> = new Set<MessageCase>(['waiting', 'waiting-late']);

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
  deployment: WiringCheckDeps,
  { events }: Trace,
  now: number,
): Promise<Checked> {
  const pending = events.filter(({ row }) => readable(row)?.status === 'PENDING');
  const consumers = events.flatMap((event) =>
    event.messages
      .filter((message) => {
        const found = messageCase(event, message, inboxState(message.row, now), now);
        return TO_CLAIM.has(found) || isHeld(found, message);
      })
      .map(({ consumer }) => consumer),
  );
  const relays = pending.flatMap(({ row }) => (row?.store !== undefined ? DATABASE_PARTS : RELAY_PARTS));
  const parts = new Set([...relays, ...consumers.map(({ name }) => name)]);
  if (consumers.length > 0) parts.add('bus');
  for (const { name } of deployment.directory.unlisted ?? []) parts.add(name);
  const sweptAt = () => readSweptAt(deployment.directory, deployment);
  const checks = flowChecks({ ...deployment, pauses: pausesOf(deployment), sweptAt, now });
  const checked = await runChecks(checks.filter(({ part }) => parts.has(part)));
  // That the sweep is silent does not explain why an event waits.
  return { ...checked, problems: checked.problems.filter(({ problem }) => problem !== 'sweep-silent') };
}

/** A trace as another Mailroom sees it: the messages of its own consumers. @param table - absent: as the selected one sees it */
export function seenFrom(trace: Trace, table: string | undefined): Trace {
  const events = trace.events.map((event) => ({
    ...event,
    messages: event.messages
      .filter(({ consumer }) => consumer.elsewhere?.table === table)
      .map((message) => ({ ...message, consumer: atHome(message.consumer) })),
  }));
  return { ...trace, events };
}

/** Why a message cannot be claimed; `undefined` if no problem is known. @param where - whether the message is in the queue */
export function claimStopped(
  { wiring, ...lines }: WhyContext,
  consumer: string,
  found: MessageCase,
  { isQueued, isHeld }: { readonly isQueued: boolean; readonly isHeld: boolean },
): FlowStop | undefined {
  if (!TO_CLAIM.has(found) && !isHeld) return undefined;
  const own = wiring?.problems.filter(
    ({ part, problem }) =>
      (part === consumer || part === 'bus') &&
      (!isQueued || !ROUTE_PROBLEMS.has(problem)) &&
      (problem !== 'invocations-fail' || UNCLAIMED.has(found)),
  );
  return stoppedBy(own, lines);
}

/** Why an event cannot be published; `undefined` if no problem is known. @param parts - that could publish it next */
export function publishStopped(
  { wiring, ...lines }: WhyContext,
  parts: readonly string[] = RELAY_PARTS,
): FlowStop | undefined {
  return stoppedBy(
    wiring?.problems.filter(({ part }) => parts.includes(part)),
    lines,
  );
}

function stoppedBy(
  problems: readonly PartProblem[] = [],
  lines: Pick<WhyContext, 'commandLine' | 'awsLine'>,
): FlowStop | undefined {
  const [first] = problems;
  if (first === undefined) return undefined;
  const texts = problems.map(({ text }) => text).join('; ');
  const more = problems.length > 1 ? ' The command below fixes the first; `status` has the others.' : '';
  const changed = whoChanged(first);
  const before = changed.length === 0 ? null : fixLine(changed, lines);
  const who = before === null ? '' : ` To see who changed it: \`${before}\`.`;
  const asksFirst = isStop(first);
  const ask = asksFirst ? ' It may have been stopped on purpose: ask first.' : '';
  return {
    text: `Cause: ${sentence(texts)}${more}${who}${ask}`,
    next: fixLine(first.fix, lines),
    delay: { problem: sentence(texts), asksFirst, before: asksFirst ? before : null },
  };
}
