import { errorMessage } from '../lambdas/runtime/base/errors.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import type { VerifyCheck, VerifyFinding } from './checks/check.ts';
import { passed } from './checks/check.ts';
import type { DeployedSystem } from './deployed-system.ts';
import type { VerifyPlan } from './plan.ts';
import { estimatedUsd } from './price.ts';
import { receiptOf, type VerifyReceipt, type VerifyResult } from './receipt.ts';
import type { Stacks } from './stacks.ts';

/** Dependencies of {@link verify}. */
export interface VerifyDeps {
  readonly stacks: Stacks;
  readonly checks: readonly VerifyCheck[];
  readonly steps: Pick<StepPrinter, 'say' | 'step' | 'detail'>;
  /** Stops the checks when it is aborted; destroying is not stopped. */
  readonly signal: AbortSignal;
  /** Finds what was deployed. */
  readonly connect: (outputs: Outputs) => Promise<DeployedSystem>;
  /** Finds what is left of it. */
  readonly leftBehind: (outputs: Outputs) => Promise<readonly string[]>;
}

/** The line of the receipt for destroying. */
const DESTROYED = 'everything that was deployed is destroyed';

/**
 * Deploys, checks and destroys. It destroys whatever happens: a failed deployment, a failed check, an aborted signal.
 *
 * @returns the receipt; it never throws
 *
 * @example
 * ```ts
 * const receipt = await verify({ target, name, orders: 20, destroyOnly: false }, deps);
 * ```
 */
export async function verify(plan: VerifyPlan, deps: VerifyDeps): Promise<VerifyReceipt> {
  const { signal, steps, stacks } = deps;
  const startedAt = Date.now();
  const results: VerifyResult[] = [];
  let outputs: Outputs = {};

  /** @returns true unless the check failed */
  async function record(check: string, run: () => Promise<VerifyFinding>): Promise<boolean> {
    const from = Date.now();
    steps.step(check);
    const found = await run().catch((error: unknown) => ({
      outcome: 'failed' as const,
      detail: errorMessage(error),
    }));
    const stopped = found.outcome === 'failed' && signal.aborted && check !== DESTROYED;
    if (!stopped) results.push({ check, ...found, seconds: Math.round((Date.now() - from) / 1_000) });
    return found.outcome !== 'failed';
  }

  let system: DeployedSystem | undefined;
  if (!plan.destroyOnly) {
    await record('the order system and its probes are deployed', async () => {
      outputs = await stacks.deploy(signal);
      system = await deps.connect(outputs);
      return passed(`${Object.keys(outputs).length} outputs`);
    });
    for (const { name, run } of deps.checks) {
      if (system === undefined || signal.aborted) break;
      const deployed = system;
      await record(name, () => run(deployed));
    }
  }
  const destroyed = await record(DESTROYED, async () => {
    await stacks.destroy();
    const left = await deps.leftBehind(outputs);
    if (left.length > 0) throw new Error(`These still exist: ${left.join(', ')}`);
    return passed(
      Object.keys(outputs).length === 0
        ? 'its stacks are gone'
        : 'its tables, buses, queues and functions are gone',
    );
  });
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const usd = plan.target.endpoint === undefined ? estimatedUsd(plan.orders, seconds) : 0;
  return receiptOf({
    ...plan,
    seconds,
    estimatedUsd: usd,
    checks: results,
    destroyed,
    stopped: signal.aborted,
  });
}
