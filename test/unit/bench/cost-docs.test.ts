import { beforeAll, describe, expect, it } from 'vitest';
import type { System } from '../../../bench/alternatives/system.ts';
import { ALTERNATIVES } from '../../../bench/alternatives/systems.ts';
import { MAILROOM } from '../../../bench/cost/mailroom.ts';
import { total } from '../../../bench/cost/measure.ts';
import { PAYLOADS, servicesTable } from '../../../bench/cost/tables.ts';
import { measured, plainRuns } from '../../../bench/cost.ts';
import { costPage } from './cost-page.ts';

const systemOf = (name: string) => ALTERNATIVES.find((system) => system.name === name) as System;

/** The one with the same guarantees as Mailroom. */
const PEER = systemOf('status-index+transactional-inbox');
const POWERTOOLS = systemOf('status-index+powertools');

/** What one consumer costs with each payload, and what each further one costs whatever the payload. */
interface Prices {
  readonly one: readonly number[];
  readonly more: number;
}

const prices = new Map<System, Prices>();

beforeAll(async () => {
  for (const system of [MAILROOM.transactional, MAILROOM.leased, PEER, POWERTOOLS]) {
    const usd = async (payloadBytes: number, consumers: number) => {
      const workload = { events: 10, payloadBytes, consumers, retries: 0, batchSize: 10 };
      return total((await measured(system, workload)).usd);
    };
    const one: number[] = [];
    for (const payloadBytes of PAYLOADS) one.push(await usd(payloadBytes, 1));
    prices.set(system, { one, more: (await usd(PAYLOADS[0], 2)) - (one[0] ?? 0) });
  }
});

describe('docs/cost.md', () => {
  it('names every system that promises as much as Mailroom', () => {
    const { promise } = MAILROOM.transactional;
    const peers = ALTERNATIVES.filter((system) => JSON.stringify(system.promise) === JSON.stringify(promise));
    expect(peers).toEqual([PEER]);
    expect(costPage()).toContain(`Only \`${PEER.name}\` gives the same guarantees as Mailroom`);
  });

  it('shows what an event of 1 KB costs today', async () => {
    const runs = await plainRuns([MAILROOM.transactional, PEER], undefined, [1_024]);
    const [, , , , dynamodb, bus, queue, lambda, logs, storage] = servicesTable(runs).rows[0] ?? [];
    expect(costPage()).toContain(
      `${dynamodb} for DynamoDB, ${bus} for the bus, ${queue} for the queue, ${lambda} for Lambda, ${logs} for logs and ${storage} for storage`,
    );
    for (const { system, usd } of runs) {
      const row = costPage()
        .split('\n')
        .find((each) => each.startsWith(`| ${system.name} | ${system.promise.publishes} |`));
      // After the name and two promises, 200 B comes first.
      expect(row?.split(' | ')[4]).toBe(total(usd).toFixed(2));
    }
  });

  it('states the number of consumers from which another system is cheaper', () => {
    const leased = dearerFrom(MAILROOM.leased, PEER);
    const powertools = dearerFrom(MAILROOM.transactional, POWERTOOLS);
    expect(costPage()).toContain(`cheaper than leased handlers at ${leased} consumers and above`);
    expect(costPage()).toContain(`cheaper than transactional ones at ${powertools} consumers and above`);
  });
});

it('an event costs less than in what promises as much, with every payload', () => {
  const [own, peer] = [pricesOf(MAILROOM.transactional), pricesOf(PEER)];
  for (const [index, usd] of own.one.entries()) expect(usd).toBeLessThan(peer.one[index] ?? 0);
});

/** From how many consumers on the first costs more than the second, for each payload, as the page says it. */
function dearerFrom(first: System, second: System): string {
  const [own, other] = [pricesOf(first), pricesOf(second)];
  const [small, middle, large] = own.one.map(
    (usd, index) => 1 + Math.ceil(((other.one[index] ?? 0) - usd) / (own.more - other.more)),
  );
  return `${small} (200 B), ${middle} (1 KB) or ${large} (4 KB)`;
}

function pricesOf(system: System): Prices {
  const found = prices.get(system);
  if (found) return found;
  throw new Error(`${system.name} was not measured`);
}
