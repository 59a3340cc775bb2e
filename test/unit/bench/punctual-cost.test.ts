import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { jumpingClock } from '../../../bench/alternatives/workload.ts';
import { MINUTES_PER_MONTH } from '../../../bench/assumptions.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { total, usageOf, usdPerMillion } from '../../../bench/cost/measure.ts';
import { RELAY_CONFIG, sweepMinute, TABLE } from '../../../bench/cost/sweep-minute.ts';

const page = readFileSync(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');

/** The read units of an idle minute of the sweep, and the price of a month of them in US dollars. */
async function idleMinute(punctual: boolean) {
  const aws = createMeteredAws([{ name: TABLE, keys: ['PK', 'SK'] }], { clock: jumpingClock() });
  await sweepMinute(aws, {}, 0, { ...RELAY_CONFIG, punctual });
  const usage = usageOf(aws.requests());
  return { units: usage.readUnits, usd: (total(usdPerMillion(usage, 0)) * MINUTES_PER_MONTH) / 1e6 };
}

test('docs/scaling.md states what punctual sweeps cost', async () => {
  const [usual, punctual] = [await idleMinute(false), await idleMinute(true)];
  const percent = Math.round((100 * (punctual.units - usual.units)) / usual.units);
  expect(page.replaceAll('\n', ' ')).toContain(
    `for ${percent} % more reads of an idle sweep, ${(punctual.usd - usual.usd).toFixed(2)} USD a month`,
  );
});
