import { HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { atHome, byInbox } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { eachOf, readSweepState } from '../../deployment/rows-reader.ts';
import { sentence } from '../../terminal/output.ts';
import type { Checked } from '../checks/check.ts';
import { createWarnings, type Warning } from '../status/consumer-warnings.ts';
import { keepNothing } from '../status/kept-readings.ts';
import { readRecent } from '../status/recent-messages.ts';
import { warningWords } from '../status/warning-words.ts';
import type { WhyContext } from './event-state.ts';
import { type MessageCase, messageCase, publishedAtOf } from './message-case.ts';
import type { Trace } from './trace.ts';
import type { FlowStop } from './wiring-check.ts';

/** The warnings of `status` that tell why a message is not claimed. */
const EXPLAIN: ReadonlySet<Warning['look']> = new Set<Warning['look']>(['stalled', 'crashing']);

/** The cases of a message that they explain: a failed one shows that its function runs. */
const EXPLAINED: ReadonlySet<MessageCase | undefined> = new Set<MessageCase>([
  'waiting',
  'waiting-late',
  'abandoned',
  'abandoned-late',
]);

/** A younger message shows no trouble: `status` waits for as long. */
const WAITS_MS = 2 * MINUTE_MS;

/** The events before a message that `status` judges with it. */
const BEFORE_MS = 5 * MINUTE_MS;

/**
 * Reads the warnings of the consumers for which the events of a trace wait, as `status` finds them. It reads nothing if none has waited for
 * two minutes, or a problem of the wiring explains it.
 */
export async function readClaimWarnings(
  deployment: Pick<Deployment, 'directory' | 'table' | 'stored' | 'queues' | 'database'>,
  { events }: Trace,
  { problems }: Checked,
  now: number,
): Promise<readonly Warning[]> {
  const { directory, table, stored, queues, database } = deployment;
  const waiting = new Map<string, { readonly consumer: ConsumerEntry; readonly since: number }>();
  for (const event of events) {
    const since = publishedAtOf(event);
    if (now - since < WAITS_MS) continue;
    for (const message of event.messages) {
      if (!EXPLAINED.has(messageCase(event, message, inboxState(message.row, now), now))) continue;
      const consumer = atHome(message.consumer);
      const earlier = waiting.get(consumer.name)?.since ?? since;
      waiting.set(consumer.name, { consumer, since: Math.min(earlier, since) });
    }
  }
  const { read } = byInbox(directory, database?.engine);
  const consumers = [...waiting.values()].filter(
    ({ consumer: { name } }) =>
      read.consumers.some((one) => one.name === name) && !problems.some(({ part }) => part === name),
  );
  if (consumers.length === 0) return [];
  const { shards } = await readSweepState(directory, table);
  const from = Math.min(...consumers.map(({ since }) => since)) - BEFORE_MS;
  const reading = { stored, directory: read, shards, keep: keepNothing, now };
  const { messages } = await readRecent(reading, Math.min(HOUR_MS, now - from));
  const look = createWarnings(reading);
  const found = await eachOf(consumers, async ({ consumer }) =>
    look({
      consumer,
      depth: await depthOf(queues, consumer.queue),
      failed: [],
      recent: messages.filter((message) => message.consumer === consumer.name),
      isCut: false,
      hasDeadLetters: true, // a missing event is judged by its own queue
    }),
  );
  return found.flatMap((warning) => (warning !== undefined && EXPLAIN.has(warning.look) ? [warning] : []));
}

/** Why a message is not claimed, as `status` words it; `undefined` if no such warning is known. */
export function claimWarned(
  { looks = [], commandLine }: WhyContext,
  consumer: string,
  found: MessageCase,
): FlowStop | undefined {
  const warning = looks.find((look) => look.consumer === consumer);
  if (warning === undefined || !EXPLAINED.has(found)) return undefined;
  const { what, commands } = warningWords(warning);
  const problem = sentence(what);
  const delay = { problem, asksFirst: false, before: null };
  return { text: `Cause: ${problem}`, next: commandLine(commands[0]), delay };
}
