import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { type bench, relayConfig, runThrough } from '../../../support/runtime-bench.ts';

type Bench = ReturnType<typeof bench>;

/** The stream handler on what is on the bench. */
export function stream(parts: Bench) {
  const { table, bus, clock, telemetry } = parts;
  const handler = createRelayStream({ config: relayConfig, table, bus, clock, telemetry });
  return (event = parts.streamEvent()) => runThrough(clock, handler(event));
}
