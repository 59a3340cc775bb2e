import { ResourceConflictException, ResourceInUseException } from '@aws-sdk/client-lambda';
import { Command } from 'commander';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { depthOf } from '../../lambdas/runtime/operations/dead-letters.ts';
import { type ConsumerEntry, invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import type { QueueDepth } from '../../lambdas/runtime/operations/queues.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import type { Deployment } from '../deployment/deployment.ts';
import { changeText, placeOf } from '../deployment/place.ts';
import type { Mapping } from '../deployment/resources.ts';
import { pausedText, pausesOf } from '../reports/checks/pauses.ts';
import { applyWords, type ChangeOptions, reasonOption, reasonToApply } from '../terminal/change.ts';
import { EXIT, type Io } from '../terminal/io.ts';
import { many } from '../terminal/output.ts';
import { type ShellText, shell } from '../terminal/shell.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';
import { duration, time } from '../terminal/times.ts';
import { reporting } from './command.ts';

/** Lambda needs about a minute to enable or disable an event source mapping. */
const SETTLES_MS = 180_000;
const POLL_MS = 2_000;

/** `mailroom pause`. */
export function pauseCommand(io: Io): Command {
  return switchCommand(
    io,
    'pause',
    'Shows what a pause of a consumer would mean. With --apply, disables the event source mapping of its function: messages wait in ' +
      'its queue until you resume it.',
    'payments',
    'bank migration',
  );
}

/** `mailroom resume`. */
export function resumeCommand(io: Io): Command {
  return switchCommand(
    io,
    'resume',
    'Shows what waits for a paused consumer. With --apply, enables the event source mapping of its function.',
    'payments',
    'the bank is back',
  );
}

type Switch = 'pause' | 'resume';

function switchCommand(io: Io, to: Switch, description: string, example: string, reason: string): Command {
  return new Command(to)
    .description(description)
    .argument('<consumer>', 'the name of the consumer')
    .option('--apply', `${to} it`)
    .addOption(reasonOption())
    .addHelpText(
      'after',
      `
Examples:
  $ npx cdk-mailroom ${to} ${example}
  $ npx cdk-mailroom ${to} ${example} --apply --reason "${reason}"`,
    )
    .action(
      reporting<ChangeOptions & { readonly consumer: string }>(
        io,
        async (deployment, options) => {
          const reason = reasonToApply(options);
          const reading = await readConsumer(deployment, options.consumer);
          const result =
            (await alreadyDone(deployment, reading, to)) ??
            (reason === undefined
              ? plan(deployment, reading, to, options)
              : await apply(deployment, reading, to, reason));
          return report(deployment, reading, { ...result, applied: options.apply ?? false });
        },
        'consumer',
      ),
    );
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

function plan(
  { clock }: Deployment,
  { consumer: { name }, depth }: SwitchedConsumer,
  to: Switch,
  options: ChangeOptions,
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

async function report(
  deployment: Deployment,
  { consumer: { name }, depth: { waiting, inFlight, retentionMs } }: SwitchedConsumer,
  { text, next, ...result }: SwitchResult & { readonly applied: boolean },
): Promise<Report> {
  const place = await placeOf(deployment);
  const json = { ...place, consumer: name, ...result, queued: waiting, inFlight, retentionMs };
  const isUnsettled = result.status === 'pausing' || result.status === 'resuming';
  return reportOf(
    json,
    { place, text, next },
    (shown) => changeText(shown, deployment),
    deployment.terminal.signal.aborted ? EXIT.stopped : isUnsettled ? EXIT.attention : EXIT.ok,
  );
}
