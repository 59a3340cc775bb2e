import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { deployWords, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedFunction, Resources } from '../../deployment/resources.ts';
import { type AddProblem, type CheckedFunction, check, NEEDS, type PartCheck } from './check.ts';

/** Checks that a function exists and may run. */
export function concurrencyCheck(resources: Resources, checked: CheckedFunction): PartCheck {
  const { part, name } = checked;
  return check(part, 'flow', NEEDS.concurrency, async (add) => {
    const reserved = await resources.reservedConcurrency(name);
    if (reserved === undefined)
      add('no-function', `the function ${name} of ${part} does not exist`, deployWords(checked));
    if (reserved !== 0) return;
    const text = `the function ${name} of ${part} never runs: its reserved concurrency is 0`;
    const fix = ['aws', 'lambda', 'delete-function-concurrency', '--function-name', name];
    add('concurrency-zero', text, fix);
  });
}

/** Checks that Lambda can run a function, and its settings. A missing function is reported as `no-function`. */
export function functionCheck<Settings>(
  resources: Resources,
  checked: CheckedFunction,
  read: (environment: DeployedFunction['environment']) => Settings,
  find: (add: AddProblem, settings: Settings, found: DeployedFunction) => void | Promise<void>,
): PartCheck {
  const { part, name, alias } = checked;
  return check(part, 'settings', [...NEEDS.function, ...NEEDS.queue], async (add) => {
    const found = await resources.function(invokedFunction(name, alias));
    if (found === undefined) return;
    if (found.failure !== undefined) {
      const text = `Lambda cannot run the function ${name} of ${part}: ${found.failure}`;
      add('function-failed', text, deployWords(checked));
    }
    const settings = settingsOf(read, found);
    if (typeof settings === 'string') {
      add('settings', `the function of ${part} cannot start: ${settings}`, deployWords(checked));
    } else await find(add, settings, found);
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
