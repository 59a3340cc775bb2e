import { expect, test } from 'vitest';
import { duplicateWait } from '../../../demo/duplicate-wait.ts';

function rig() {
  const printed: string[] = [];
  let nowMs = 0;
  const wait = duplicateWait({
    steps: {
      say: (line) => printed.push(line),
      step: (line) => printed.push(line),
      detail: (text) => printed.push(text),
    },
    now: () => nowMs,
  });
  return {
    printed,
    look: (finished: boolean, queued: number, atMs: number) => {
      nowMs = atMs;
      return wait({ published: 9, processed: 9, expected: 9, finished, atRest: false }, queued);
    },
  };
}

test('the wait for the last duplicates is explained, with a countdown', () => {
  const { printed, look } = rig();
  expect(look(false, 4, 0)).toBe(false);
  expect(printed).toEqual([]);
  expect(look(true, 3, 1_000)).toBe(true);
  expect(look(true, 3, 3_500)).toBe(true);
  expect(look(true, 1, 7_500)).toBe(true);
  expect(printed).toEqual([
    expect.stringMatching(/^All 9 messages are processed\. A duplicate .* within 6 s\.$/),
    'Waiting for the last duplicates',
    '3 left, at most 6 s more',
    '3 left, at most 4 s more',
    '1 left, due now',
  ]);
});

test('no waiting duplicate means no report', () => {
  const { printed, look } = rig();
  expect(look(true, 0, 0)).toBe(false);
  expect(printed).toEqual([]);
});
