import { ResourceConflictException, ResourceInUseException } from '@aws-sdk/client-lambda';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { depthOf } from '../../lambdas/runtime/operations/dead-letters.ts';
import { type ConsumerEntry, invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth } from '../../lambdas/runtime/operations/queues.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { changeText, type Place, placeOf } from '../deployment/place.ts';
import type { Mapping } from '../deployment/resources.ts';
import { pausedText, pausesOf } from '../reports/checks/pauses.ts';
import { applyWords, type ChangeOptions } from '../terminal/change.ts';
import { EXIT } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { duration, time } from '../terminal/times.ts';
import type { OperatorChange } from './change.ts';

/** Lambda needs about a minute to enable or disable an event source mapping. */
const SETTLES_MS = 180_000;
const POLL_MS = 2_000;

/** `pause` disables the event source mapping of a consumer's function, `resume` enables it. */
type Switch = 'pause' | 'resume';

/** The options of a pause or a resume. */
export interface SwitchOptions extends ChangeOptions {
  readonly consumer: string;
}

/** A consumer, and what switching it would do. */
interface SwitchPlan extends SwitchedConsumer {
  readonly place: Place;
  readonly planned: SwitchResult;
  /** It is switched already: nothing is changed. */
  readonly isDone: boolean;
}

/** `mailroom pause`. */
export const pause = switching('pause');

/** `mailroom resume`. */
export const resume = switching('resume');

function switching(
  to: Switch,
): OperatorChange<SwitchOptions, SwitchPlan, SwitchResult, ReturnType<typeof switchJson>> {
  return {
    plan: async (deployment, options) => {
      const read = await readConsumer(deployment, options.consumer);
      const done = await alreadyDone(deployment, read, to);
      const planned = done ?? switchPlan(deployment, read, to, options);
      return { ...read, place: await placeOf(deployment), planned, isDone: done !== undefined };
    },
    apply: async (deployment, plan, { reason }) =>
      plan.isDone ? plan.planned : apply(deployment, plan, to, reason),
    result: ({ terminal }, { plan, made = plan.planned }, { apply: applied = false }) => {
      const isUnsettled = made.status === 'pausing' || made.status === 'resuming';
      return {
        json: switchJson(plan, made, applied),
        exitCode: terminal.signal.aborted ? EXIT.stopped : isUnsettled ? EXIT.attention : EXIT.ok,
      };
    },
    text: (deployment, { plan, made: { text, next } = plan.planned }) =>
      changeText({ place: plan.place, text, next }, deployment),
  };
}

function switchJson(
  { place, consumer, depth: { waiting, inFlight, retentionMs } }: SwitchPlan,
  { status }: SwitchResult,
  applied: boolean,
) {
  return { ...place, consumer: consumer.name, status, applied, queued: waiting, inFlight, retentionMs };
}

/** A consumer, its queue, and the mappings from it to the function. */
interface SwitchedConsumer {
  readonly consumer: ConsumerEntry;
  readonly depth: QueueDepth;
  readonly mappings: readonly Mapping[];
}

/** @throws `NO_SUCH_CONSUMER`, `NO_MAPPING` */
async function readConsumer(deployment: Deployment, name: string): Promise<SwitchedConsumer> {
  const consumer = deployment.consumer(name);
  const depth = await depthOf(deployment.queues, consumer.queue);
  if (depth === undefined)
    throw new MailroomError(
      'NO_MAPPING',
      `The queue ${consumer.queue} of ${name} does not exist. Run ${deployment.commandLine(shell`doctor`)}.`,
    );
  const mappings = await ownMappings(deployment, consumer, depth);
  if (mappings.length > 0) return { consumer, depth, mappings };
  throw new MailroomError(
    'NO_MAPPING',
    `The function ${consumer.function} has no event source mapping for the queue of ${name}, so it receives no messages. ` +
      `Run ${deployment.commandLine(shell`doctor`)}.`,
  );
}

async function ownMappings(
  { resources }: Pick<Deployment, 'resources'>,
  { function: name, alias }: ConsumerEntry,
  { arn }: Pick<QueueDepth, 'arn'>,
): Promise<Mapping[]> {
  return (await resources.mappings(invokedFunction(name, alias))).filter(({ source }) => source === arn);
}

/** The result of a pause, a resume or their plan. */
interface SwitchResult {
  readonly status: 'running' | 'paused' | 'pausing' | 'resuming' | Switch;
  /** Sentences about the consumer; the last ends with a colon if there is a command. */
  readonly text: string;
  /** The command that comes next. */
  readonly next?: ShellText;
}

async function alreadyDone(
  deployment: Deployment,
  { consumer, mappings }: SwitchedConsumer,
  to: Switch,
): Promise<SwitchResult | undefined> {
  const { name } = consumer;
  if (to === 'resume') {
    if (!mappings.every(({ enabled }) => enabled)) return undefined;
    return {
      status: 'running',
      text: `${name} is not paused: its event source mapping is enabled. Nothing was changed.`,
    };
  }
  if (mappings.some(({ enabled }) => enabled)) return undefined;
  const pause = await pausesOf(deployment)(consumer);
  // A mapping that was disabled by other means becomes a pause: from then on, status names who keeps it, and why.
  if (pause === undefined) return undefined;
  return {
    status: 'paused',
    text: `${pausedText(name, pause)}. Nothing was changed. To resume it:`,
    next: shell`resume ${name}`,
  };
}

function switchPlan(
  { clock }: Deployment,
  { consumer: { name }, depth }: SwitchedConsumer,
  to: Switch,
  options: SwitchOptions,
): SwitchResult {
  const { waiting, inFlight, retentionMs } = depth;
  const next = shell`${[to, name, ...applyWords(options)]}`;
  if (to === 'resume') {
    const text = `Would resume ${name}: its function receives the messages that wait (${waiting} now). Nothing was changed. To resume it:`;
    return { status: to, text, next };
  }
  const text = [
    `Would pause ${name}: its function receives no more messages, and they wait in its queue (${waiting} wait now, ${inFlight} in flight).`,
    'Messages that it has already received finish.',
    `SQS deletes a message ${duration(retentionMs)} after it was sent: one that is sent now, at ${time(clock.now() + retentionMs)}.`,
    `Alarms on old messages and on late heartbeats of ${name} still fire.`,
    'A deployment that changes the event source mapping can enable it.',
    'Nothing was changed. To pause it:',
  ];
  return { status: to, text: text.join(' '), next };
}

async function apply(
  deployment: Deployment,
  { consumer, depth, mappings }: SwitchedConsumer,
  to: Switch,
  reason: string,
): Promise<SwitchResult> {
  const { name } = consumer;
  const enabled = to === 'resume';
  // Recorded first: whatever this run leaves disabled has a reason.
  const by = await deployment.operator();
  await recordOperation(deployment, { by, reason, command: to, subject: name, consumer: name });
  for (const mapping of mappings) {
    if (mapping.enabled !== enabled) await switchMapping(deployment, mapping, enabled);
  }
  const isSettled = await settles(deployment, consumer, depth, enabled);
  if (!isSettled) {
    const text = `Lambda has not finished yet. Until then, ${name} may ${enabled ? 'receive no' : 'still receive'} messages. To see whether it has:`;
    return { status: enabled ? 'resuming' : 'pausing', text, next: shell`status` };
  }
  if (enabled) {
    const text = `${name} is running. ${many(depth.waiting, 'message')} waited in its queue.`;
    return { status: 'running', text };
  }
  const text = `${name} is paused. SQS deletes the messages that it receives from now on from ${time(deployment.clock.now() + depth.retentionMs)} on. To resume it:`;
  return { status: 'paused', text, next: shell`resume ${name}` };
}

async function switchMapping(deployment: Deployment, { uuid }: Mapping, enabled: boolean): Promise<void> {
  try {
    await deployment.enableMapping(uuid, enabled);
  } catch (error) {
    if (!(error instanceof ResourceConflictException || error instanceof ResourceInUseException)) throw error;
    throw new MailroomError(
      'MAPPING_BUSY',
      `Lambda is still making another change of the event source mapping ${uuid}. Wait a minute, and repeat the command.`,
    );
  }
}

/** @returns false if Lambda takes longer than it ever should, or the run was stopped */
async function settles(
  deployment: Deployment,
  consumer: ConsumerEntry,
  depth: QueueDepth,
  enabled: boolean,
): Promise<boolean> {
  const { clock, terminal } = deployment;
  const until = clock.now() + SETTLES_MS;
  for (;;) {
    const mappings = await ownMappings(deployment, consumer, depth);
    if (mappings.every((mapping) => mapping.isSettled && mapping.enabled === enabled)) return true;
    if (terminal.signal.aborted || clock.now() >= until) return false;
    terminal.progress(
      `Lambda ${enabled ? 'enables' : 'disables'} the event source mapping of ${consumer.name}`,
    );
    await clock.sleep(POLL_MS);
  }
}
