import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CRASH_CASES } from './crash-cases.ts';
import { crashData, crashPage, crashTable, resultOf } from './crash-page.ts';
import { runCrash } from './crash-run.ts';

const DOCS = '../../../docs/';

describe('a crash', () => {
  it.for(CRASH_CASES.filter(({ part }) => part !== 'broken'))(
    '$id loses and doubles nothing',
    async (crash) => {
      const { broken, steps, counts } = await runCrash(crash);
      expect(broken).toBeUndefined();
      expect(steps.some(({ outcome }) => outcome !== 'done')).toBe(crash.turns.length > 0);
      expect(counts.payments ?? counts['times published'] ?? counts['times forwarded']).toBeGreaterThan(0);
    },
  );

  it('a crash between mark and publish loses the event if the relay marks first', async () => {
    const traces = await Promise.all(CRASH_CASES.filter(({ part }) => part === 'broken').map(runCrash));
    expect(traces.map(({ broken }) => broken)).toEqual([expect.stringMatching(/is lost: PUBLISHED/)]);
  });
});

describe('the result of a crash', () => {
  it.each([
    ['after-the-transaction', /Finished by the stream relay at once\.$/],
    ['stalled-worker', /Finished by worker 2 after 30 s\.$/],
    ['after-the-commit', /Finished by worker 1 at once\. Worker 2 deletes the message after 180 s\.$/],
  ])('%s names the process that made the last write', async (wanted, result) => {
    const crash = CRASH_CASES.find(({ id }) => id === wanted);
    if (crash === undefined) throw new Error(`No crash has the id ${wanted}`);
    expect(resultOf(await runCrash(crash))).toMatch(result);
  });
});

describe('the recordings', () => {
  it('show what the explorer records', async () => {
    const traces = await Promise.all(CRASH_CASES.map(runCrash));
    await expect(crashPage(traces)).toMatchFileSnapshot('recordings.md');
    await expect(crashData(traces)).toMatchFileSnapshot(`${DOCS}.vitepress/crashes.json`);
  });

  it('have the results that docs/crashes.md shows', async () => {
    const traces = await Promise.all(CRASH_CASES.map(runCrash));
    const page = readFileSync(new URL(`${DOCS}crashes.md`, import.meta.url), 'utf8');
    const renewed = page.replace(/^\| crash \|.*(?:\n\|.*)*/m, () => crashTable(traces));
    await expect(renewed).toMatchFileSnapshot(`${DOCS}crashes.md`);
  });
});
