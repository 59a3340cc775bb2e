import { describe, expect, test } from 'vitest';
import type { Bus } from '../../../../lambdas/runtime/bus/event-bus.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { stream } from './relay-stream-rig.ts';

const THROTTLED = { code: 'ThrottlingException', message: 'slow down' };
const DENIED = { code: 'NotAuthorizedForSourceException', message: 'no' };

/** How long each call takes, milliseconds. */
const CALL_MS = 50;

/** Forty calls' worth of events, on a bus that fails after some calls, and the calls that it saw. */
async function streamOn(failure: typeof THROTTLED | undefined, failsFrom = 0) {
  let calls = 0;
  let underWay = 0;
  const atOnce: number[] = [];
  const parts = rig({ bus: { failEntry: () => (calls > failsFrom ? failure : undefined) } });
  const put: Bus['put'] = async (entries, timeoutMs) => {
    calls += 1;
    underWay += 1;
    atOnce.push(underWay);
    await parts.clock.sleep(CALL_MS);
    underWay -= 1;
    return parts.bus.put(entries, timeoutMs);
  };
  for (let n = 0; n < 400; n += 50)
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n + i)) });
  const { batchItemFailures } = await stream({ ...parts, bus: { ...parts.bus, put } })();
  return { ...parts, calls, atOnce, returned: batchItemFailures.length };
}

describe('the calls of a pass', () => {
  test('are eight at a time until the bus has accepted one, then sixteen', async () => {
    const { atOnce, publishedIds } = await streamOn(undefined);
    expect(atOnce.slice(0, 8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(Math.max(...atOnce)).toBe(16);
    expect(publishedIds()).toHaveLength(400);
  });

  test('are ten when the bus refuses their service: eight, and two more until the third has failed', async () => {
    const { calls } = await streamOn(DENIED);
    expect(calls).toBe(10);
  });

  // Eight calls at a time, each with its three tries, would make thirty.
  test.each([
    ['from the first call on', 0],
    ['with sixteen calls under way', 20],
  ])('are at most thirty once the bus fails everything, %s', async (_when, failsFrom) => {
    const { calls, returned, publishedIds } = await streamOn(THROTTLED, failsFrom);
    expect(calls - failsFrom).toBeLessThanOrEqual(30);
    expect(returned).toBe(400 - publishedIds().length);
  });
});
