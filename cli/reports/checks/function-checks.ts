import { isDeepStrictEqual } from 'node:util';
import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { deployWords, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedFunction, Mapping, Resources } from '../../deployment/resources.ts';
import { type CheckedFunction, check, FIND_MISSED, type FoundProblem, type PartCheck } from './check.ts';
import { type Pause, pausedText } from './pauses.ts';

/** Checks that a function exists and may run. */
export function concurrencyCheck(resources: Resources, checked: CheckedFunction): PartCheck {
  const { part, name } = checked;
  return check(part, 'flow', async function* () {
    const reserved = await resources.reservedConcurrency(name);
    if (reserved === undefined) {
      const text = `the function ${name} of ${part} does not exist`;
      yield { problem: 'no-function', text, fix: deployWords(checked) };
    } else if (reserved === 0) {
      const text = `the function ${name} of ${part} never runs: its reserved concurrency is 0`;
      const fix = ['aws', 'lambda', 'delete-function-concurrency', '--function-name', name];
      yield { problem: 'concurrency-zero', text, fix };
    }
  });
}

/** Checks that Lambda can run a function, and its settings. A missing function is reported as `no-function`. */
export function functionCheck<Settings>(
  resources: Resources,
  checked: CheckedFunction,
  read: (environment: DeployedFunction['environment']) => Settings,
  find: (settings: Settings, found: DeployedFunction) => AsyncIterable<FoundProblem>,
): PartCheck {
  const { part, name, alias } = checked;
  return check(part, 'settings', async function* () {
    const found = await resources.function(invokedFunction(name, alias));
    if (found === undefined) return;
    if (found.failure !== undefined) {
      const text = `Lambda cannot run the function ${name} of ${part}: ${found.failure}`;
      yield { problem: 'function-failed', text, fix: deployWords(checked) };
    }
    const settings = settingsOf(read, found);
    if (typeof settings === 'string') {
      const text = `the function of ${part} cannot start: ${settings}`;
      yield { problem: 'settings', text, fix: deployWords(checked) };
    } else yield* find(settings, found);
  });
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
): AsyncGenerator<FoundProblem> {
  const invoked = invokedFunction(checked.name, checked.alias);
  const own = (await resources.mappings(invoked)).filter(({ source }) => isOwn(source));
  const [first] = own;
  if (first === undefined) {
    const text = `${stopped}: the function ${invoked} has no event source mapping for it`;
    yield { problem: 'no-mapping', text, fix: deployWords(checked) };
    return;
  }
  const enabled = own.filter((mapping) => mapping.enabled);
  if (enabled.length === 0) {
    const pause = await paused();
    if (pause !== undefined) {
      const fix = ['npx', 'cdk-mailroom', 'resume', checked.part];
      yield { problem: 'paused', text: pausedText(checked.part, pause), fix };
    } else {
      const text = `${stopped}: the event source mapping of ${invoked} is disabled`;
      yield { problem: 'mapping-disabled', text, fix: updateMapping(first, '--enabled') };
    }
    return;
  }
  const declared = filter === undefined ? {} : { Filters: [{ Pattern: JSON.stringify(filter) }] };
  for (const mapping of enabled) {
    if (mapping.filters.every((found) => isDeepStrictEqual(jsonObject(found), filter))) continue;
    const text = `${filtered}. The event source mapping of ${invoked} has a filter that Mailroom does not declare`;
    const fix = updateMapping(mapping, '--filter-criteria', JSON.stringify(declared));
    yield { problem: 'mapping-filter', text, fix, followUp: FIND_MISSED };
  }
}

/** The mapping of a function whose settings are checked: an enabled one, if there is any. */
export async function mappingOf(
  resources: Resources,
  { name, alias }: CheckedFunction,
  isOwn: (source: string) => boolean,
): Promise<Mapping | undefined> {
  const own = (await resources.mappings(invokedFunction(name, alias))).filter(({ source }) => isOwn(source));
  return own.find(({ enabled }) => enabled) ?? own[0];
}

/** Finds that a mapping ignores which items failed. */
export function* itemFailures(
  { name }: CheckedFunction,
  mapping: Mapping,
  effect: string,
): Generator<FoundProblem> {
  if (mapping.reportsItemFailures) return;
  const text = `the event source mapping of ${name} ignores which items failed (ReportBatchItemFailures is off): ${effect}`;
  const fix = updateMapping(mapping, '--function-response-types', 'ReportBatchItemFailures');
  yield { problem: 'no-item-failures', text, fix };
}

/** The words of a command that changes a mapping. */
export function updateMapping({ uuid }: Mapping, ...options: readonly string[]): string[] {
  return ['aws', 'lambda', 'update-event-source-mapping', '--uuid', uuid, ...options];
}
