import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { relayConfig, type rig, runThrough } from '../../../support/runtime-rig.ts';

type Rig = ReturnType<typeof rig>;

/** The stream handler on what is on the rig. */
export function stream(parts: Rig) {
  const { table, bus, clock, telemetry } = parts;
  const handler = createRelayStream({ config: relayConfig, table, bus, clock, telemetry });
  return (event = parts.streamEvent()) => runThrough(clock, handler(event));
}
