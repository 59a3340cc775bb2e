import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import {
  type ConsumerEntry,
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { OpenDatabase } from '../../deployment/open-database.ts';
import { isDenied, isUnsupported } from '../../deployment/refusals.ts';
import type { Resources } from '../../deployment/resources.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { Pauses } from './pauses.ts';
import type { ProblemKind } from './problem-kinds.ts';

/**
 * The level of a check or a difference. `flow`: events pass the part; checked by `why`, `status` and `doctor`. `settings`: events pass, but the
 * part is not as declared. `surroundings`: alarms, limits, roles and versions. Only `doctor` checks the last two.
 */
export const LEVELS = ['flow', 'settings', 'surroundings'] as const;
export type Level = (typeof LEVELS)[number];

/** The words of a command: never none, so that every problem has a line to paste. */
export type CommandWords = readonly [program: string, ...words: string[]];

/** A part of the Mailroom that is not as declared, and what repairs it. */
export interface PartProblem {
  /** `stream relay`, `sweep`, `bus`, `table`, `alarms`, `account`, `this machine`, or the name of a consumer. */
  readonly part: string;
  readonly problem: ProblemKind;
  /** The one of several resources or settings of the part that may have this kind of problem. @default the part has only one */
  readonly resource?: string | undefined;
  readonly level: Level;
  /** `look`: it may be one. @default by its kind, see `problemState` */
  readonly state?: 'look' | undefined;
  /** The problem and its effect as sentences, for people. */
  readonly text: string;
  /** The words of the command that repairs it, or that shows its cause if only a person can, without region, profile and endpoint. */
  readonly fix: CommandWords;
  /** The words of the command to run once it is repaired, without the options that select the Mailroom. */
  readonly followUp?: readonly string[] | undefined;
  /** The resource's id in AWS, as CloudFormation has it: a queue's URL, a function's name, `bus|rule`. @default the part has only one */
  readonly physicalId?: string | undefined;
  /** Of a `differs` or `producer`: the resource's type in CloudFormation. */
  readonly type?: string | undefined;
  /** Of a `differs` or `producer`: the path of the member; absent: the whole resource is gone. */
  readonly member?: string | undefined;
  /** Of a `differs`: the values of the template and of AWS; `null`: none. Of a `producer`: the value that fits its Mailroom, and its own. */
  readonly declared?: unknown;
  readonly deployed?: unknown;
  /** Of a `differs`: the API call that usually causes it, by its name in CloudTrail. */
  readonly call?: string | undefined;
}

/** A problem of the part that a check is about. */
export interface FoundProblem extends Omit<PartProblem, 'part' | 'level' | 'fix'> {
  /** @default the deployment of the part's stack */
  readonly fix?: CommandWords;
}

/** A problem that no deployment of the part's stack repairs. */
export interface RemediedProblem extends FoundProblem {
  readonly fix: CommandWords;
}

/** The problems that a check finds. */
export type Problems = Generator<FoundProblem>;
export type AsyncProblems = AsyncGenerator<FoundProblem>;
export type RemediedProblems = AsyncGenerator<RemediedProblem>;

/** One check: the part that it is about, and how it finds problems. */
export interface PartCheck {
  readonly part: string;
  readonly level: Level;
  readonly find: () => RemediedProblems;
}

/** Creates a check. @param stack - the one that declares the part: its deployment repairs the problems without a `fix` */
export function check(part: string, level: Level, find: () => RemediedProblems): PartCheck;
export function check(part: string, level: Level, find: () => AsyncProblems, stack: EntryStack): PartCheck;
export function check(
  part: string,
  level: Level,
  find: () => AsyncProblems,
  stack: EntryStack = { stack: '--all' },
): PartCheck {
  async function* remedied(): RemediedProblems {
    for await (const problem of find()) yield { ...problem, fix: problem.fix ?? deployWords(stack) };
  }
  return { part, level, find: remedied };
}

/** Dependencies of all checks. */
export interface CheckDeps {
  readonly directory: Directory;
  readonly resources: Resources;
  readonly pauses: Pauses;
  /** The database that also has rows, which its own relay publishes. */
  readonly database?: OpenDatabase | undefined;
  /** AWS's time, epoch milliseconds. */
  readonly now: number;
  /** When the sweep's last complete pass began; before the first, when the table was created. Epoch milliseconds. */
  readonly sweptAt: () => Promise<number>;
}

/** The result of {@link runChecks}. */
export interface Checked {
  readonly problems: readonly PartProblem[];
  /** The checks that were not made because the caller may not read what they need, or because it cannot be read. */
  readonly notChecked: readonly {
    /** The actions that the caller's policies lack. */
    readonly needs: readonly string[];
    /** The parts, as in {@link PartProblem}. */
    readonly parts: readonly string[];
    /** Why no permission helps, as a sentence without its full stop. */
    readonly why?: string;
  }[];
  /** The checks that do not apply here, as sentences. */
  readonly skipped: readonly string[];
}

/** A read that AWS denies to the caller, or that the endpoint does not have. */
export class ReadRefused extends Error {
  override readonly name = 'ReadRefused';
  readonly isDenial: boolean;
  readonly needs: readonly string[];

  constructor(cause: unknown, actions: readonly string[]) {
    const message = errorMessage(cause);
    super(message, { cause });
    this.isDenial = isDenied(cause);
    // AWS names the action in most of its messages.
    const named = actions.filter((action) => message.includes(action));
    this.needs = named.length > 0 ? named : actions;
  }
}

/** Makes a read of a check. If it is refused, the check is not made, and the actions that it lacks are reported. */
export async function readWith<T>(actions: readonly string[], read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw isDenied(error) || isUnsupported(error) ? new ReadRefused(error, actions) : error;
  }
}

/** The problems of a part because of which its function does not run, or fails at the start. */
const STOPS: ReadonlySet<ProblemKind> = new Set<ProblemKind>([
  'no-function',
  'concurrency-zero',
  'no-mapping',
  'mapping-disabled',
  'paused',
  'pause-expires',
  'function-failed',
  'settings',
  'role',
]);

/** The problems without those that another explains: a sweep that cannot run is silent, too, and a function that cannot run fails. */
export function unexplained(problems: readonly PartProblem[]): PartProblem[] {
  return problems.filter(({ part, problem }) => {
    const others = problems.filter((other) => other.part === part && other.problem !== problem);
    if (problem === 'sweep-silent') return others.length === 0;
    if (problem !== 'invocations-fail') return true;
    return !others.some((other) => STOPS.has(other.problem) || (other.member && other.level === 'flow'));
  });
}

/** A check, or the reading of a resource, that was not made. */
export interface Unmade {
  readonly part: string;
  readonly refusal?: ReadRefused | undefined;
  /** Why it cannot be made. */
  readonly why?: string;
}

/** The checks that were not made, by the actions that they need. */
export function unmadeChecks(unmade: readonly Unmade[]): Pick<Checked, 'notChecked' | 'skipped'> {
  const notChecked = new Map<string, { needs: readonly string[]; parts: string[]; why?: string }>();
  const skipped = new Set<string>();
  for (const { part, refusal, why } of unmade) {
    const { isDenial = true, needs = [] } = refusal ?? {};
    const key = why ?? needs.join();
    if (isDenial) {
      const { parts } = notChecked.get(key) ?? { parts: [] };
      notChecked.set(key, { needs, parts: [...new Set([...parts, part])], ...(why && { why }) });
    } else skipped.add(`${part}: this endpoint does not support ${needs.join(' or ')}`);
  }
  return { notChecked: [...notChecked.values()], skipped: [...skipped] };
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
): Promise<Checked & { readonly unmade: readonly Unmade[] }> {
  let made = 0;
  const found = await eachOf(checks, async (one) => {
    const result = await resultOf(one);
    made += 1;
    done(made);
    return result;
  });
  const unmade = found.filter(({ refusal }) => refusal !== undefined);
  return {
    problems: unexplained(found.flatMap(({ problems }) => problems)),
    unmade,
    ...unmadeChecks(unmade),
  };
}

async function resultOf({ part, level, find }: PartCheck) {
  const problems: PartProblem[] = [];
  try {
    for await (const { problem, text, fix, ...rest } of find())
      problems.push({ part, problem, level, text, fix, ...rest });
    return { part, problems };
  } catch (error) {
    if (!(error instanceof ReadRefused)) throw error;
    return { part, problems, refusal: error };
  }
}

/** The command that finds the events that were missed while a part was broken. */
export const FIND_MISSED = ['npx', 'cdk-mailroom', 'audit', '--since', '24h'];

/** The command that names the stack of a resource. */
export function stackNameOf(physicalId: string): CommandWords {
  const named = ['--physical-resource-id', physicalId, '--query', 'StackResources[0].StackName'];
  return ['aws', 'cloudformation', 'describe-stack-resources', ...named, '--output', 'text'];
}

/** A function, and the part that it belongs to. */
export interface CheckedFunction {
  readonly part: string;
  readonly name: string;
  /** The alias that is invoked; absent: the function itself. */
  readonly alias?: string | undefined;
}

/** The function of a consumer. */
export function functionOf({ name: part, function: name, alias }: ConsumerEntry): CheckedFunction {
  return { part, name, alias };
}

/** The functions of the relay. */
export function relayFunctions({ streamFunction, sweepFunction }: Directory['mailroom']) {
  return {
    relay: { part: 'stream relay', name: streamFunction },
    sweep: { part: 'sweep', name: sweepFunction },
  };
}
