import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { type ConsumerEntry, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type Operation, readOperations } from '../../deployment/operations.ts';
import { isDenied, isUnsupported } from '../../deployment/refusals.ts';
import { clipped } from '../../terminal/output.ts';
import { shell } from '../../terminal/shell.ts';
import { time } from '../../terminal/times.ts';

/** The pause of a consumer: its latest record in the operations log. */
export interface Pause extends Pick<Operation, 'at' | 'by' | 'reason'> {
  /** When SQS begins to delete messages that were sent after the pause, epoch milliseconds; absent without the queue. */
  readonly expiresFrom?: number;
  /** Messages wait in the queue, and SQS deletes the first of them within a day, or has begun to. @default false */
  readonly isExpiring?: boolean;
  /** SQS has begun to delete messages that were sent after the pause. @default false */
  readonly hasExpired?: boolean;
}

/** Reads the pause of a consumer whose mapping is disabled; `undefined` if the log has none, or a later resume. */
export type Pauses = (consumer: Pick<ConsumerEntry, 'name' | 'queue'>) => Promise<Pause | undefined>;

/** A longer pause counts as a disabled mapping. */
const PAUSE_MAX_MS = 90 * DAY_MS;

/** Someone must act that long before SQS deletes the first message. */
const ACT_MS = DAY_MS;

/** Creates the reader of pauses. */
export function pausesOf({ stored, queues, clock }: Pick<Deployment, 'stored' | 'queues' | 'clock'>): Pauses {
  return async ({ name, queue }) => {
    const now = clock.now();
    const { operations } = await readOperations(stored, now - PAUSE_MAX_MS, now);
    const last = operations.find(
      ({ command, consumer }) => consumer === name && (command === 'pause' || command === 'resume'),
    );
    if (last?.command !== 'pause') return undefined;
    const { at, by, reason } = last;
    const depth = await depthOf(queues, queue);
    if (depth === undefined) return { at, by, reason };
    const expiresFrom = at + depth.retentionMs;
    const isExpiring = depth.waiting > 0 && expiresFrom - now <= ACT_MS;
    return { at, by, reason, expiresFrom, isExpiring, hasExpired: expiresFrom <= now };
  };
}

/** A pause as a sentence without its full stop. */
export function pausedText(consumer: string, { at, by, reason, expiresFrom, hasExpired }: Pause): string {
  const since = expiresFrom === undefined ? '' : time(expiresFrom);
  const expiry =
    expiresFrom === undefined
      ? ''
      : hasExpired
        ? `. SQS has been deleting the messages that it received since then, from ${since} on: \`audit\` names those that are lost`
        : `. SQS deletes the messages that it received since then from ${since} on`;
  return `${consumer} has been paused since ${time(at)} by ${clipped(by)}: ${clipped(reason)}${expiry}`;
}

/**
 * Refuses to send messages to a consumer that is paused: they would leave their dead-letter queue, and wait in a queue that deletes
 * them.
 *
 * @throws `CONSUMER_PAUSED`
 */
export async function requireNotPaused(
  deployment: Pick<Deployment, 'stored' | 'queues' | 'clock' | 'resources' | 'commandLine'>,
  consumer: ConsumerEntry,
): Promise<void> {
  const { name, function: functionName, alias, queue } = consumer;
  const arn = (await depthOf(deployment.queues, queue))?.arn;
  const mappings = await deployment.resources
    .mappings(invokedFunction(functionName, alias))
    .catch((error: unknown) => {
      if (isDenied(error) || isUnsupported(error)) return []; // without an answer, the operator has to know
      throw error;
    });
  const own = mappings.filter(({ source }) => source === arn);
  if (own.length === 0 || own.some(({ enabled }) => enabled)) return;
  const pause = await pausesOf(deployment)(consumer);
  if (pause === undefined) return;
  throw new MailroomError(
    'CONSUMER_PAUSED',
    `${pausedText(name, pause)}. Messages that are sent to it now would only wait there. Nothing was changed. Resume it first: ` +
      `\`${deployment.commandLine(shell`resume ${name}`)}\`.`,
  );
}
