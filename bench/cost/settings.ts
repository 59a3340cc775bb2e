import { createHash } from 'node:crypto';
import type { RelayConfig } from '../../lambdas/runtime/config.ts';
import type { Telemetry } from '../../lambdas/runtime/index.ts';
import { relayConfig } from '../../testing/index.ts';

/** The name of the Mailroom table; the services keep their rows in it. */
export const TABLE = 'Mailroom';

/** The relay's settings, as the constructs set them by default. */
export const RELAY_CONFIG: RelayConfig = relayConfig({ tableName: TABLE });

/** Says nothing: what is logged is counted by assumption, for every system alike. */
export const silent: Telemetry = {
  log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  count: () => {},
  gauge: () => {},
  duration: () => {},
  flush: () => {},
};

/** Random bytes that are the same in every run: nothing of the cost is chance. */
export function fixedRandom(): (count: number) => Uint8Array {
  let drawn = 0;
  return (count) => {
    drawn += 1;
    return createHash('sha256').update(String(drawn)).digest().subarray(0, count);
  };
}
