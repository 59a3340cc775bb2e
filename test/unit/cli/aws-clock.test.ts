import { readdirSync, readFileSync } from 'node:fs';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from 'vitest';
import { createAwsClock, listenTo } from '../../../cli/terminal/aws-clock.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';

const NOON = Date.UTC(2026, 0, 1, 12);

/** A machine whose clock is wrong by `aheadMs`, and which has been running for a while. */
function machine(aheadMs: number) {
  let elapsed = 5_000;
  return {
    clock: createAwsClock({ now: () => NOON + elapsed + aheadMs, sleep: async () => {} }, () => elapsed),
    trueTime: () => NOON + elapsed,
    pass: (ms: number) => {
      elapsed += ms;
    },
  };
}

/** The `Date` header of an answer that is made at a time. */
const header = (time: number) => new Date(time).toUTCString();

describe('the time at AWS', () => {
  test.each([0, 31_000, -31_000, 86_400_000])(
    'is accurate to the second, and never ahead, on a machine that is %i ms ahead',
    (aheadMs) => {
      const { clock, trueTime, pass } = machine(aheadMs);
      for (const [waited, roundTrip] of [
        [0, 80],
        [123, 900],
        [777, 40],
      ] as const) {
        pass(waited);
        const sentMs = clock.steadyMs();
        const answered = header(trueTime() + roundTrip / 2);
        pass(roundTrip);
        clock.learn(answered, sentMs);
        expect(clock.now()).toBeLessThanOrEqual(trueTime());
        expect(clock.now()).toBeGreaterThan(trueTime() - 1_000 - roundTrip);
      }
    },
  );

  test('goes on between two answers, and no answer sets it back', () => {
    const { clock, trueTime, pass } = machine(31_000);
    clock.learn(header(trueTime()), clock.steadyMs());
    const before = clock.now();
    pass(40_000);
    expect(clock.now()).toBe(before + 40_000);
    clock.learn(header(trueTime() - 600_000), clock.steadyMs()); // from a cache
    expect(clock.now()).toBe(before + 40_000);
  });

  test('is the machine’s until a response corrects it', () => {
    const { clock, trueTime } = machine(31_000);
    for (const nothing of [undefined, '', 'yesterday']) clock.learn(nothing, 0);
    expect(clock.isKnown()).toBe(false);
    expect(clock.now()).toBe(trueTime() + 31_000);
    expect(clock.machineAheadMs()).toBe(0);
  });

  test.each([
    [31_000, 29_500, 31_000],
    [-31_000, -31_000, -29_500],
    [900, 0, 0],
    [-900, -900, 0],
  ])('tells by how much a machine is off at least that is %i ms ahead', (aheadMs, from, to) => {
    const { clock, trueTime, pass } = machine(aheadMs);
    const sentMs = clock.steadyMs();
    pass(200);
    clock.learn(header(trueTime()), sentMs);
    expect(clock.machineAheadMs()).toBeGreaterThanOrEqual(from);
    expect(clock.machineAheadMs()).toBeLessThanOrEqual(to);
  });

  test.each([
    ['an answer', 200, {}],
    ['a refusal', 400, { __type: 'ConditionalCheckFailedException' }],
  ])('is learnt from %s', async (_what, status, body) => {
    const { clock } = machine(31_000);
    const stub = stubHandler(() => ({ status, body, headers: { date: header(NOON) } }));
    const client = listenTo(new DynamoDBClient({ ...STUB_CONFIGURATION, requestHandler: stub }), clock);
    const call = client.send(new GetItemCommand({ TableName: 't', Key: { PK: { S: 'a' } } }));
    await call.catch(() => {});
    expect(clock.now()).toBe(NOON);
  });
});

test("no command uses this machine's clock", () => {
  const files = readdirSync('cli', { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('page/client/'),
  );
  expect(files.length).toBeGreaterThan(40);
  const asking = files.filter((file) =>
    /Date\.now\(|systemClock|new Date\(\)/.test(readFileSync(`cli/${file}`, 'utf8')),
  );
  expect(asking).toEqual(['terminal/aws-clock.ts']);
});
