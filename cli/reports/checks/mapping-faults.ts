import { isDeepStrictEqual } from 'node:util';
import { jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { deployWords, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { Mapping, Resources } from '../../deployment/resources.ts';
import { type AddProblem, type CheckedFunction, FIND_MISSED } from './check.ts';
import { type Pause, pausedText } from './pauses.ts';

/** The effects of a mapping that does not pass everything on, and its declared filter. @default it has no filter */
interface MappingEffects {
  readonly stopped: string;
  readonly filtered: string;
  readonly filter?: object;
  /** Reads the pause that explains a disabled mapping. @default it cannot be paused */
  readonly paused?: () => Promise<Pause | undefined>;
}

/** Adds why a function does not receive everything from its queue or stream. */
export async function addMappingFaults(
  add: AddProblem,
  resources: Resources,
  checked: CheckedFunction,
  isOwn: (source: string) => boolean,
  { stopped, filtered, filter, paused = async () => undefined }: MappingEffects,
): Promise<void> {
  const invoked = invokedFunction(checked.name, checked.alias);
  const own = (await resources.mappings(invoked)).filter(({ source }) => isOwn(source));
  const [first] = own;
  if (first === undefined) {
    const text = `${stopped}: the function ${invoked} has no event source mapping for it`;
    return add('no-mapping', text, deployWords(checked));
  }
  const enabled = own.filter((mapping) => mapping.enabled);
  if (enabled.length === 0) {
    const pause = await paused();
    if (pause !== undefined) {
      const fix = ['npx', 'cdk-mailroom', 'resume', checked.part];
      return add('paused', pausedText(checked.part, pause), fix);
    }
    const text = `${stopped}: the event source mapping of ${invoked} is disabled`;
    return add('mapping-disabled', text, updateMapping(first, '--enabled'));
  }
  const declared = filter === undefined ? {} : { Filters: [{ Pattern: JSON.stringify(filter) }] };
  for (const mapping of enabled) {
    if (mapping.filters.every((found) => isDeepStrictEqual(jsonObject(found), filter))) continue;
    const text = `${filtered}. The event source mapping of ${invoked} has a filter that Mailroom does not declare`;
    const fix = updateMapping(mapping, '--filter-criteria', JSON.stringify(declared));
    add('mapping-filter', text, fix, FIND_MISSED);
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

/** Adds that a mapping ignores which items failed. */
export function addItemFailures(
  add: AddProblem,
  { name }: CheckedFunction,
  mapping: Mapping,
  effect: string,
): void {
  if (mapping.reportsItemFailures) return;
  const text = `the event source mapping of ${name} ignores which items failed (ReportBatchItemFailures is off): ${effect}`;
  add(
    'no-item-failures',
    text,
    updateMapping(mapping, '--function-response-types', 'ReportBatchItemFailures'),
  );
}

/** The words of a command that changes a mapping. */
export function updateMapping({ uuid }: Mapping, ...options: readonly string[]): string[] {
  return ['aws', 'lambda', 'update-event-source-mapping', '--uuid', uuid, ...options];
}
