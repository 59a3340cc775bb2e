import { createHash } from 'node:crypto';
import type { RelayConfig } from '../../lambdas/runtime/base/config.ts';
import type { Telemetry } from '../../lambdas/runtime/index.ts';
import { relayConfig } from '../../testing/index.ts';

/** The Mailroom table; the services store their rows in it. */
export const TABLE = 'Mailroom';

/** Default settings of the relay, as the constructs pass them. */
export const RELAY_CONFIG: RelayConfig = relayConfig({ tableName: TABLE });

/** Discards logs: their cost is an assumption, equal for every system. */
export const silent: Telemetry = {
  log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  count: () => {},
  gauge: () => {},
  duration: () => {},
  flush: () => {},
};

/** Random bytes that are the same in every run, so that costs do not depend on chance. */
export function fixedRandom(): (count: number) => Uint8Array {
  let drawn = 0;
  return (count) => {
    drawn += 1;
    return createHash('sha256').update(String(drawn)).digest().subarray(0, count);
  };
}
