import { errorMessage } from '../lambdas/runtime/base/errors.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import { estimatedUsd, type VerifyPlan } from './plan.ts';
import { receiptOf, type VerifyReceipt, type VerifyResult } from './receipt.ts';
import type { Stacks } from './stacks.ts';

/** Dependencies of {@link verify}. */
export interface VerifyDeps {
  readonly stacks: Stacks;
  readonly steps: Pick<StepPrinter, 'step'>;
  /** Stops the tests when it is aborted; destroying is not stopped. */
  readonly signal: AbortSignal;
  /** Runs the tests against what was deployed. */
  readonly test: (outputs: Outputs, onResult: (result: VerifyResult) => void) => Promise<void>;
  /** Finds what is left of it. */
  readonly leftBehind: (outputs: Outputs) => Promise<readonly string[]>;
}

/** The line of the receipt for destroying. */
const DESTROYED = 'everything that was deployed is destroyed';

/**
 * Deploys, tests and destroys. It destroys whatever happens: a failed deployment, a failed test, an aborted signal.
 *
 * @returns the receipt; it never throws
 *
 * @example
 * ```ts
 * const receipt = await verify({ target, name, orders: 20, rate: 5, destroyOnly: false }, deps);
 * ```
 */
export async function verify(plan: VerifyPlan, deps: VerifyDeps): Promise<VerifyReceipt> {
  const { signal, steps, stacks } = deps;
  const startedAt = Date.now();
  const checks: VerifyResult[] = [];
  let outputs: Outputs = {};

  function add(result: VerifyResult): void {
    // A failure of a stopped run is not a failure of the deployment.
    const stopped = result.outcome === 'failed' && signal.aborted && result.check !== DESTROYED;
    if (!stopped) checks.push(result);
  }

  /** @param run - returns the detail. @returns true unless it failed */
  async function record(check: string, run: () => Promise<string>): Promise<boolean> {
    const from = Date.now();
    steps.step(check);
    const found = await run().then(
      (detail) => ({ outcome: 'passed' as const, detail }),
      (error) => ({ outcome: 'failed' as const, detail: errorMessage(error) }),
    );
    add({ check, ...found, seconds: Math.round((Date.now() - from) / 1_000) });
    return found.outcome === 'passed';
  }

  if (!plan.destroyOnly) {
    const deployed = await record('the order system and its probes are deployed', async () => {
      outputs = await stacks.deploy(signal);
      return `${Object.keys(outputs).length} outputs`;
    });
    if (deployed && !signal.aborted) {
      await record('the tests run to their end', async () => {
        await deps.test(outputs, add);
        return '';
      });
    }
  }
  const destroyed = await record(DESTROYED, async () => {
    await stacks.destroy();
    const left = await deps.leftBehind(outputs);
    if (left.length > 0) throw new Error(`These still exist: ${left.join(', ')}`);
    const named = Object.keys(outputs).length > 0;
    return named ? 'its tables, buses, queues and functions are gone' : 'its stacks are gone';
  });
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const usd = plan.target.endpoint === undefined ? estimatedUsd(plan.orders, seconds) : 0;
  return receiptOf({ ...plan, seconds, estimatedUsd: usd, checks, destroyed, stopped: signal.aborted });
}
