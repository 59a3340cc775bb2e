import type { Caller } from './deployed-functions.ts';
import type { Call } from './fault-proxy.ts';
import { killAfter, killBefore } from './faults.ts';
import type { Kill } from './kill-plan.ts';
import type { Stage } from './stage.ts';

/** A process that was killed as planned. */
export interface Killed {
  readonly victim: Caller;
  readonly kill: Kill;
  /** The call at which it was killed. */
  readonly action: string;
}

/**
 * Kills processes at the calls of a plan, from now on.
 *
 * @param counted.action - the plan counts only these calls. @default all
 * @param counted.onCall - sees each call that is counted. @default nothing
 * @returns the kills so far; it grows
 */
export function killByPlan<Victim extends Caller>(
  { system, fault }: Stage,
  plans: ReadonlyMap<Victim, readonly Kill[]>,
  { action, onCall }: { readonly action?: string; readonly onCall?: (call: Call) => void } = {},
): readonly Killed[] {
  const calls = new Map<string, number>();
  const dead = new Set<number>();
  const killed: Killed[] = [];
  for (const [victim, plan] of plans) {
    fault({ from: victim, action, where: ({ pid }) => !dead.has(pid) }, (call, forward) => {
      onCall?.(call);
      const n = (calls.get(victim) ?? 0) + 1;
      calls.set(victim, n);
      const kill = plan.find(({ atCall }) => atCall === n);
      if (kill === undefined) return forward();
      dead.add(call.pid);
      killed.push({ victim, kill, action: call.action });
      const act = kill.moment === 'before' ? killBefore : killAfter;
      return act(system.kill)(call, forward);
    });
  }
  return killed;
}

/** When a function was killed, in words. */
export function momentsOf(killed: readonly Killed[], victim: Caller): string {
  const moments = killed
    .filter((one) => one.victim === victim)
    .map(({ kill, action }) => `${kill.moment} its call ${kill.atCall} (${action})`);
  return `${victim}: ${moments.join(', ')}`;
}
