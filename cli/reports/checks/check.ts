import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { RuleFault } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry, Directory, EntryStack } from '../../../lambdas/runtime/operations/directory.ts';
import { isDenied, isUnsupported } from '../../deployment/aws-resources.ts';
import type { Resources } from '../../deployment/resources.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { Pauses } from './pauses.ts';

/**
 * The level of a check. `flow`: events pass the part; made by `why`, `status` and `doctor`. `settings`: the part is as declared; made by
 * `status` and `doctor`. `surroundings`: policies, alarms, limits, roles and versions; made by `doctor`.
 */
export const LEVELS = ['flow', 'settings', 'surroundings'] as const;
export type Level = (typeof LEVELS)[number];

/** The problems that keep events out of a queue. They do not delay a message that is already in it. */
export type RouteFault = RuleFault | 'no-bus';

/** The kinds of problems of a part. */
type ProblemKind =
  | RouteFault
  // Other problems that stop events.
  | 'mapping-disabled'
  | 'mapping-filter'
  | 'paused'
  | 'no-mapping'
  | 'concurrency-zero'
  | 'no-function'
  | 'stream-off'
  | 'no-queue'
  | 'no-entry'
  // Settings.
  | 'ttl-off'
  | 'stream-view'
  | 'no-item-failures'
  | 'batch-size'
  | 'no-bisect'
  | 'no-failure-destination'
  | 'endless-retries'
  | 'no-max-concurrency'
  | 'visibility'
  | 'redrive'
  | 'retention'
  | 'message-size'
  | 'delay'
  | 'queue-policy'
  | 'no-dead-letter-queue'
  | 'function-failed'
  | 'settings'
  | 'timeout'
  // Surroundings.
  | 'table-policy'
  | 'deletion-protection'
  | 'recovery-off'
  | 'sweep-silent'
  | 'older-version'
  | 'newer-version'
  | 'no-alarms'
  | 'alarm-actions-disabled'
  | 'alarm-without-action'
  | 'alarm-firing'
  | 'concurrency-low'
  | 'concurrency-full'
  | 'clock'
  | 'role';

/** A part of the Mailroom that is not as declared, and what repairs it. */
export interface PartProblem {
  /** `stream relay`, `sweep`, `bus`, `table`, `alarms`, `account`, `this machine`, or the name of a consumer. */
  readonly part: string;
  readonly problem: ProblemKind;
  readonly level: Level;
  /** The problem and its effect as sentences, for people. */
  readonly text: string;
  /** The words of the command that repairs it, without region, profile and endpoint. Empty if only a person can. */
  readonly fix: readonly string[];
  /** The words of the command to run once it is repaired, without the options that select the Mailroom. */
  readonly followUp?: readonly string[] | undefined;
}

/** Adds a problem of the checked part. */
export type AddProblem = (
  problem: ProblemKind,
  text: string,
  fix: readonly string[],
  followUp?: readonly string[],
) => void;

/** One check: the part that it is about, the actions that it needs, and how it finds problems. */
export interface PartCheck {
  readonly part: string;
  readonly level: Level;
  readonly needs: readonly string[];
  readonly find: (add: AddProblem) => Promise<void>;
}

/** Creates a check. */
export function check(
  part: string,
  level: Level,
  needs: readonly string[],
  find: PartCheck['find'],
): PartCheck {
  return { part, level, needs, find };
}

/** Dependencies of the checks of the levels `flow` and `settings`. */
export interface CheckDeps {
  readonly directory: Directory;
  readonly resources: Resources;
  readonly pauses: Pauses;
}

/** The result of {@link runChecks}. */
export interface Checked {
  readonly problems: readonly PartProblem[];
  /** The checks that were not made because the caller may not read what they need. */
  readonly notChecked: readonly {
    /** The actions that the caller's policies lack. */
    readonly needs: readonly string[];
    /** The parts, as in {@link PartProblem}. */
    readonly parts: readonly string[];
  }[];
  /** The checks that do not apply here, as sentences. */
  readonly skipped: readonly string[];
}

/**
 * Runs checks concurrently.
 *
 * @param done - called after each check with the number of checks made
 * @returns the problems in the order of the checks
 */
export async function runChecks(
  checks: readonly PartCheck[],
  done: (made: number) => void = () => {},
): Promise<Checked> {
  let made = 0;
  const found = await eachOf(checks, async ({ part, level, needs, find }) => {
    const problems: PartProblem[] = [];
    const lacks: string[] = [];
    const skipped: string[] = [];
    try {
      await find((problem, text, fix, followUp) => {
        problems.push({ part, problem, level, text, fix, ...(followUp && { followUp }) });
      });
    } catch (error) {
      const missing = lacking(needs, errorMessage(error));
      if (isDenied(error)) lacks.push(...missing);
      else if (isUnsupported(error))
        skipped.push(`${part}: this endpoint does not support ${missing.join(' or ')}`);
      else throw error;
    }
    made += 1;
    done(made);
    return { part, problems, lacks, skipped };
  });
  const denied = found.filter(({ lacks }) => lacks.length > 0);
  const needed = new Map(denied.map(({ lacks }) => [lacks.join(), lacks]));
  return {
    problems: found.flatMap(({ problems }) => problems),
    notChecked: [...needed].map(([key, needs]) => ({
      needs,
      parts: [...new Set(denied.filter(({ lacks }) => lacks.join() === key).map(({ part }) => part))],
    })),
    skipped: [...new Set(found.flatMap(({ skipped }) => skipped))],
  };
}

/** The actions that AWS names in its message; all, if it names none. */
function lacking(needs: readonly string[], message: string): readonly string[] {
  const named = needs.filter((action) => message.includes(action));
  return named.length > 0 ? named : needs;
}

/** The actions that checks need. */
export const NEEDS = {
  bus: ['events:DescribeEventBus'],
  concurrency: ['lambda:GetFunctionConcurrency'],
  function: ['lambda:GetFunctionConfiguration'],
  mappings: ['lambda:ListEventSourceMappings'],
  queue: ['sqs:GetQueueAttributes'],
  rule: ['events:DescribeRule', 'events:ListTargetsByRule'],
  table: ['dynamodb:DescribeTable'],
} as const;

/** The command that finds the events that were missed while a part was broken. */
export const FIND_MISSED = ['npx', 'cdk-mailroom', 'audit', '--since', '24h'];

/** An event that is PENDING, or a sweep that is silent, for longer than this is stuck: the alarm's own threshold. */
export const STUCK_MS = 5 * 60_000;

/** A function, the part that it belongs to, and its stack. */
export interface CheckedFunction extends EntryStack {
  readonly part: string;
  readonly name: string;
  /** The alias that is invoked; absent: the function itself. */
  readonly alias?: string | undefined;
}

/** The function of a consumer. */
export function functionOf({ name: part, function: name, ...entry }: ConsumerEntry): CheckedFunction {
  const { alias, stack, stackPath } = entry;
  return { part, name, alias, stack, stackPath };
}

/** The functions of the relay. */
export function relayFunctions({ streamFunction, sweepFunction, stack, stackPath }: Directory['mailroom']) {
  return {
    relay: { part: 'stream relay', name: streamFunction, stack, stackPath },
    sweep: { part: 'sweep', name: sweepFunction, stack, stackPath },
  };
}

/** True for a consumer that an operator has paused: events wait for it on purpose. */
export function isPause({ problem }: Pick<PartProblem, 'problem'>): boolean {
  return problem === 'paused';
}
