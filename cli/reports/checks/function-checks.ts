import { isDeepStrictEqual } from 'node:util';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import { INVOCATIONS_MS } from '../../deployment/aws-metrics.ts';
import type { DeployedFunction, Mapping, Resources } from '../../deployment/resources.ts';
import { duration, time } from '../../terminal/times.ts';
import {
  type AsyncProblems,
  type CheckedFunction,
  type CommandWords,
  FIND_MISSED,
  type FoundProblem,
} from './check.ts';
import { type Pause, pausedText } from './pauses.ts';

/** A part at the beginning of a sentence: a consumer by its name, a relay with its article. */
function subjectOf(part: string): string {
  return part === 'stream relay' || part === 'sweep' ? `the ${part}` : part;
}

/** Checks that a function exists and may run. */
export async function* concurrencyFaults(
  resources: Resources,
  { part, name }: CheckedFunction,
): AsyncProblems {
  const reserved = await resources.reservedConcurrency(name);
  if (reserved === undefined) {
    yield {
      problem: 'no-function',
      physicalId: name,
      text: `${subjectOf(part)} never runs: its function ${name} does not exist`,
    };
  } else if (reserved === 0) {
    const text = `${subjectOf(part)} never runs: the reserved concurrency of its function is 0`;
    const fix: CommandWords = ['aws', 'lambda', 'delete-function-concurrency', '--function-name', name];
    yield { problem: 'concurrency-zero', physicalId: name, text, fix };
  }
}

/** The failed invocations that are a finding if none was successful: a single one may be a message on which the function ran out of time. */
const FAILURES_MIN = 2;

/** The failed invocations of minutes without a successful one that are a problem: more than SQS makes for one message in 15 minutes. */
const FAILING_MIN = 6;

/** The period after the last success in which every invocation must fail, milliseconds: a shorter one may be one bad batch. */
const FAILING_MS = 2 * MINUTE_MS;

/**
 * Finds that the function of a queue fails as a whole whenever Lambda invokes it: the messages are received and never claimed. A handler
 * that throws does not fail the invocation, because the function reports which messages failed.
 */
export async function* invocationFaults(
  resources: Resources,
  { part, name }: CheckedFunction,
  queueUrl: string,
): AsyncProblems {
  const queue = await resources.queue(queueUrl);
  if (queue === undefined || queue.messages === 0) return;
  const { invocations, errors, newest } = await resources.invocations(name);
  const isFailing = newest.errors >= FAILING_MIN && newest.forMs >= FAILING_MS;
  if (!isFailing && (errors < FAILURES_MIN || errors < invocations)) return;
  const [failed, forMs] = errors < invocations ? [newest.errors, newest.forMs] : [errors, INVOCATIONS_MS];
  // Its messages invoked it, or a command that asked it about dead letters.
  const text = `${part} processes nothing: its function ${name} failed at each of its ${failed} invocations in the last ${duration(forMs)}. Messages wait. Does it start?`;
  const state = failed >= FAILING_MIN ? undefined : 'look';
  yield { problem: 'invocations-fail', state, text, fix: ['npx', 'cdk-mailroom', 'logs', part] };
}

/**
 * Checks that a function can start.
 *
 * @returns the function with its settings; `undefined` if it cannot start or does not exist, which is reported as `no-function`
 */
export async function* startFaults<Settings>(
  resources: Resources,
  { part, name, alias }: CheckedFunction,
  read: (environment: DeployedFunction['environment']) => Settings,
): AsyncGenerator<FoundProblem, (DeployedFunction & { readonly settings: Settings }) | undefined> {
  const found = await resources.function(invokedFunction(name, alias));
  if (found === undefined) return undefined;
  if (found.failure !== undefined) {
    const text = `${subjectOf(part)} cannot start: Lambda cannot run its function ${name}: ${found.failure}`;
    yield { problem: 'function-failed', text };
  }
  const settings = settingsOf(read, found);
  if (typeof settings !== 'string') return { ...found, settings };
  yield { problem: 'settings', text: `the function of ${part} cannot start: ${settings}` };
  return undefined;
}

/** The settings that a function was deployed with, or why it cannot start. */
export function settingsOf<Settings>(
  read: (environment: DeployedFunction['environment']) => Settings,
  found: DeployedFunction,
): Settings | string {
  try {
    return read(found.environment);
  } catch (error) {
    return errorMessage(error);
  }
}

/** The event source mappings of a function from its own queue or stream. */
async function mappingsOf(
  resources: Resources,
  { name, alias }: CheckedFunction,
  isOwn: (source: string) => boolean,
): Promise<Mapping[]> {
  return (await resources.mappings(invokedFunction(name, alias))).filter(({ source }) => isOwn(source));
}

/** The effects of a mapping that does not pass everything on, and its declared filter. @default it has no filter */
interface MappingEffects {
  readonly stopped: string;
  readonly filtered: string;
  readonly filter?: object;
  /** Reads the pause that explains a disabled mapping. @default it cannot be paused */
  readonly paused?: () => Promise<Pause | undefined>;
}

/** Finds why a function does not receive everything from its queue or stream. */
export async function* mappingFaults(
  resources: Resources,
  checked: CheckedFunction,
  isOwn: (source: string) => boolean,
  { stopped, filtered, filter, paused = async () => undefined }: MappingEffects,
): AsyncProblems {
  const invoked = invokedFunction(checked.name, checked.alias);
  const own = await mappingsOf(resources, checked, isOwn);
  const enabled = own.filter((mapping) => mapping.enabled);
  const [first] = own;
  if (first === undefined) {
    yield {
      problem: 'no-mapping',
      text: `${stopped}: the function ${invoked} has no event source mapping for it`,
    };
  } else if (enabled.length === 0) {
    const pause = await paused();
    if (pause === undefined) {
      const text = `${stopped}: the event source mapping of ${invoked} is disabled`;
      yield {
        problem: 'mapping-disabled',
        physicalId: first.uuid,
        text,
        fix: updateMapping(first, '--enabled'),
      };
    } else {
      const { isExpiring } = pause;
      const changed = changedSince(first, pause);
      yield {
        problem: isExpiring ? 'pause-expires' : 'paused',
        physicalId: first.uuid,
        text: `${pausedText(checked.part, pause)}${changed}`,
        fix: ['npx', 'cdk-mailroom', 'resume', checked.part],
      };
    }
  }
  const declared = filter === undefined ? {} : { Filters: [{ Pattern: JSON.stringify(filter) }] };
  for (const mapping of enabled) {
    if (mapping.filters.every((found) => isDeepStrictEqual(jsonObject(found), filter))) continue;
    const text = `${filtered}. The event source mapping of ${invoked} has a filter that Mailroom does not declare`;
    const fix = updateMapping(mapping, '--filter-criteria', JSON.stringify(declared));
    yield { problem: 'mapping-filter', physicalId: mapping.uuid, text, fix, followUp: FIND_MISSED };
  }
}

/** A sentence about a mapping that was changed after its pause: the pause may have ended, and the mapping may have been disabled again. */
function changedSince({ changedAt = 0 }: Mapping, { at }: Pause): string {
  if (changedAt <= at + SWITCHES_MS) return '';
  return `. Its event source mapping was changed after that, at ${time(changedAt)}: it may have been enabled, and disabled again for another reason`;
}

/** Lambda disables a mapping within minutes of the record of a pause. */
const SWITCHES_MS = 15 * MINUTE_MS;

/** The words of a command that changes a mapping. */
export function updateMapping({ uuid }: Pick<Mapping, 'uuid'>, ...options: readonly string[]): CommandWords {
  return ['aws', 'lambda', 'update-event-source-mapping', '--uuid', uuid, ...options];
}
