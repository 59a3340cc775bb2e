import { createRelaySweep, createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import type { Query, Table, Write } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { relayConfig, type rig, runThrough } from '../../../support/runtime-rig.ts';

type Rig = ReturnType<typeof rig>;

/** A sweep of what is on the rig. */
export function sweeper(parts: Rig, config: Partial<typeof relayConfig> = {}) {
  const { table, bus, clock, telemetry } = parts;
  const deps = { config: { ...relayConfig, ...config }, table, bus, clock, telemetry };
  const pass = createSweepPass(deps);
  const handler = createRelaySweep(deps);
  return {
    pass: () => runThrough(clock, pass(clock.now() + 60_000)),
    handler: (timeoutMs: number) => runThrough(clock, handler({}, lambdaContext({ clock, timeoutMs }))),
  };
}

/** The sweep's stored state. */
export const state = (parts: Rig) => parts.memory.item(SWEEP_STATE_KEY);
/** The pointers to unsettled minutes. */
export const pointers = (parts: Rig) =>
  parts.memory.items().filter((item) => /^SWEEP#\d/.test(String(item.PK)));

/** The table of a rig, of which some reads and writes fail as long as `broken.is`. */
export function breaking(
  parts: Rig,
  fails: { readonly query?: (query: Query) => boolean; readonly write?: (write: Write) => boolean },
) {
  const broken = { is: true };
  const refuse = () => {
    throw Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' });
  };
  const table: Table = {
    ...parts.memory,
    query: async (query) => (broken.is && fails.query?.(query) ? refuse() : parts.memory.query(query)),
    write: async (write) => (broken.is && fails.write?.(write) ? refuse() : parts.memory.write(write)),
  };
  return { broken, table };
}

/** Whether a write puts the pointer to an unsettled minute. */
export const isPointer = (write: Write) => /^SWEEP#/.test(String(write.Put?.Item?.PK));
