import { beforeEach, expect, test } from 'vitest';
import { type ClaimRange, claimRange } from '../../../../lambdas/runtime/store/postgres/claim-range.ts';
import { manualClock } from '../../../../testing/manual-clock.ts';

let clock: ReturnType<typeof manualClock>;
let range: ClaimRange;

beforeEach(() => {
  clock = manualClock();
  range = claimRange(clock);
});

/** Makes a claim. @returns the time from which it reads */
async function from(upTo?: string, takesMs = 0, fully = false): Promise<string> {
  let read = '';
  await range.read(async (from) => {
    read = from;
    clock.jumpTo(clock.now() + takesMs);
    return { rows: [], upTo };
  }, fully);
  return read;
}

test('the first claim reads everything, and the next go on from its answer', async () => {
  expect([await from('t1'), await from('t2'), await from(), await from()]).toEqual([
    '-infinity',
    't1',
    't2',
    't2',
  ]);
});

test('a claim reads everything again after a second', async () => {
  await from('t1');
  await clock.advance(999);
  expect(await from('t2')).toBe('t1');
  await clock.advance(1);
  expect(await from('t3')).toBe('-infinity');
  expect(await from()).toBe('t3');
});

test('a claim reads everything if that is asked for', async () => {
  expect([await from('t1'), await from('t2', 0, true), await from()]).toEqual([
    '-infinity',
    '-infinity',
    't2',
  ]);
});

test('full readings take a tenth of the time', async () => {
  await from('t1', 200);
  await clock.advance(1_799);
  expect(await from()).toBe('t1');
  await clock.advance(1);
  expect(await from()).toBe('-infinity');
});

test('a full reading during which the process was paused for an hour postpones the next one by a minute at most', async () => {
  await from('t1', 3_600_000);
  await clock.advance(59_999);
  expect(await from()).toBe('t1');
  await clock.advance(1);
  expect(await from()).toBe('-infinity');
});

test('a claim that began before a full reading does not move the bound past its answer', async () => {
  await from('t5');
  let end = () => {};
  const begun = range.read(
    () =>
      new Promise((resolve) => {
        end = () => resolve({ rows: [], upTo: 't9' });
      }),
  );
  await clock.advance(1_000);
  expect(await from('t2')).toBe('-infinity');
  end();
  await begun;
  expect(await from()).toBe('t2');
});

test('a full reading that finds earlier events moves the bound back, whatever the claims beside it have read', async () => {
  let end = () => {};
  const full = range.read(
    () =>
      new Promise((resolve) => {
        end = () => resolve({ rows: [], upTo: 't1' });
      }),
  );
  await from('t9');
  end();
  await full;
  expect(await from()).toBe('t1');
});

test('one of several claims at a time reads everything, and another one if it hangs', async () => {
  const never = new Promise<never>(() => {});
  void range.read(() => never);
  await from('t1');
  await clock.advance(59_999);
  expect(await from()).toBe('t1');
  await clock.advance(1);
  expect(await from()).toBe('-infinity');
});

test('a full reading that fails is repeated after the pause', async () => {
  await expect(range.read(() => Promise.reject(new Error('down')))).rejects.toThrow('down');
  await clock.advance(1_000);
  expect(await from('t1')).toBe('-infinity');
});

test('a clock that is set back does not postpone full readings', async () => {
  await from('t1');
  clock.jumpTo(clock.now() - 3_600_000);
  expect(await from()).toBe('-infinity');
});
