import { createRelaySweep } from '../../../lambdas/runtime/relay/relay-sweep.ts';
import { SWEEP_STATE_KEY } from '../../../lambdas/runtime/rows.ts';
import { lambdaContext } from '../../../lambdas/runtime/testing.ts';
import { type bench, relayConfig, runThrough } from '../../support/runtime-bench.ts';

type Bench = ReturnType<typeof bench>;

/** A sweep of what is on the bench. */
export function sweeper(parts: Bench, config: Partial<typeof relayConfig> = {}) {
  const { table, bus, clock, telemetry } = parts;
  const sweep = createRelaySweep({ config: { ...relayConfig, ...config }, table, bus, clock, telemetry });
  return {
    pass: () => runThrough(clock, sweep.pass(clock.now() + 60_000)),
    handler: (timeoutMs: number) => runThrough(clock, sweep.handler({}, lambdaContext({ clock, timeoutMs }))),
  };
}

/** The sweep's stored state. */
export const state = (parts: Bench) => parts.memory.item(SWEEP_STATE_KEY);
/** The pointers to unsettled minutes. */
export const pointers = (parts: Bench) =>
  parts.memory.items().filter((item) => /^SWEEP#\d/.test(String(item.PK)));
