import {
  type ConsumerConfig,
  readConsumerConfig,
  readRelayConfig,
} from '../../../lambdas/runtime/base/config.ts';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
} from '../../../lambdas/runtime/operations/directory.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/rows.ts';
import { duration } from '../../terminal/times.ts';
import type { PartProblem } from '../status/part-checks.ts';
import { STUCK_MS } from '../status/status-report.ts';
import type { CheckedFunction } from '../status/wiring-problems.ts';
import type { DeployedFunction, DeployedQueue } from './deployed-resources.ts';

/** A problem of a function. */
export type FunctionProblem = PartProblem<
  'function-failed' | 'settings' | 'timeout' | 'sweep-silent' | 'older-version' | 'newer-version'
>;

/** A function that Lambda cannot run. */
export function failedProblems(checked: CheckedFunction, found: DeployedFunction): FunctionProblem[] {
  const { part, name } = checked;
  if (found.failure === undefined) return [];
  const text = `Lambda cannot run the function ${name} of ${part}: ${found.failure}`;
  return [{ part, problem: 'function-failed', text, fix: deployWords(checked) }];
}

/** The settings that a function was deployed with, or why it cannot start. */
export function settingsOf<C>(
  read: (env: DeployedFunction['environment']) => C,
  found: DeployedFunction,
): C | string {
  try {
    return read(found.environment);
  } catch (error) {
    return errorMessage(error);
  }
}

/** A relay whose environment belongs to another Mailroom, or is incomplete. */
export function relaySettingsProblems(
  checked: CheckedFunction,
  found: DeployedFunction,
  { table, bus }: Directory['mailroom'],
): FunctionProblem[] {
  const { part } = checked;
  const settings = settingsOf(readRelayConfig, found);
  const problem = (text: string): FunctionProblem[] => [
    { part, problem: 'settings', text, fix: deployWords(checked) },
  ];
  if (typeof settings === 'string') return problem(`the function of ${part} cannot start: ${settings}`);
  if (settings.tableName !== table)
    return problem(
      `${part} reads the table ${settings.tableName} instead of ${table}: it publishes no event of this Mailroom`,
    );
  if (settings.busName !== bus)
    return problem(
      `${part} publishes to the bus ${settings.busName} instead of ${bus}: no consumer receives its events`,
    );
  return [];
}

/** A consumer whose environment or timeout does not fit its table, its queue or the relay. */
export function consumerSettingsProblems(
  consumer: ConsumerEntry,
  found: DeployedFunction,
  queue: DeployedQueue | undefined,
  { table, shards }: Directory['mailroom'],
): FunctionProblem[] {
  const { name: part } = consumer;
  const settings = settingsOf<ConsumerConfig>(readConsumerConfig, found);
  const problem = (kind: FunctionProblem['problem'], text: string): FunctionProblem => ({
    part,
    problem: kind,
    text,
    fix: deployWords(consumer),
  });
  if (typeof settings === 'string')
    return [problem('settings', `the function of ${part} cannot start: ${settings}`)];
  return [
    ...(settings.tableName === table
      ? []
      : [
          problem(
            'settings',
            `${part} uses the table ${settings.tableName} instead of ${table}: its inbox is not in this Mailroom`,
          ),
        ]),
    ...(settings.consumer === part && settings.queueUrl === consumer.queue
      ? []
      : [
          problem(
            'settings',
            `the function of ${part} has the settings of ${settings.consumer} and the queue ${settings.queueUrl}: it keeps another inbox`,
          ),
        ]),
    ...(settings.shards <= shards
      ? []
      : [
          problem(
            'settings',
            `${part} writes events to ${settings.shards} shards, but the relay reads ${shards}: it may not publish some of them`,
          ),
        ]),
    ...(queue === undefined || found.timeoutS <= queue.visibilityS
      ? []
      : [
          problem(
            'timeout',
            `the function of ${part} may run for ${found.timeoutS} s, but SQS hides its messages for ${queue.visibilityS} s only: they are ` +
              'redelivered while it processes them',
          ),
        ]),
  ];
}

/** A sweep whose schedule runs, but that has not completed a pass for longer than its interval allows. */
export function silentSweepProblems(
  sweepFunction: DeployedFunction | undefined,
  now: number,
  sweptAt: number,
): FunctionProblem[] {
  const settings = sweepFunction && settingsOf(readRelayConfig, sweepFunction);
  const everyMs = typeof settings === 'object' ? settings.sweepEveryMs : 0;
  const silentMs = now - sweptAt;
  if (silentMs <= Math.max(STUCK_MS, 3 * everyMs)) return [];
  const text = `the sweep has not completed a pass for ${duration(silentMs)}: events that the stream relay misses wait. The command shows its error`;
  return [
    { part: 'sweep', problem: 'sweep-silent', text, fix: ['npx', 'cdk-mailroom', 'sweep', '--since', '1h'] },
  ];
}

/**
 * Stacks deployed with another version than the rows, or than this command. Rows have the version of the function that wrote them,
 * and each entry has the version with which its stack was deployed; an entry of version 0.1 or older has none, and is not checked.
 *
 * @param rowSchema - of the sweep's state row
 */
export function versionProblems(
  { mailroom, consumers }: Directory,
  rowSchema: number | undefined,
): FunctionProblem[] {
  const entries = [{ ...mailroom, name: 'sweep' }, ...consumers];
  const newest = Math.max(rowSchema ?? 1, ...entries.map(({ schema = 1 }) => schema));
  const older = entries.filter(({ schema }) => schema !== undefined && schema < newest);
  return [
    ...older.map(
      ({ name: part, schema, ...entry }): FunctionProblem => ({
        part,
        problem: 'older-version',
        text: `the stack ${entry.stack} was deployed with a version that reads rows up to schema ${schema}, but rows of schema ${newest} exist: ${part} cannot read them`,
        fix: deployWords(entry),
      }),
    ),
    ...(newest <= SCHEMA
      ? []
      : [
          {
            part: 'this machine',
            problem: 'newer-version' as const,
            text: `rows of schema ${newest} exist, but this version of the command reads up to ${SCHEMA}: it reports them as unreadable`,
            fix: ['npm', 'install', 'cdk-mailroom@latest'],
          },
        ]),
  ];
}
