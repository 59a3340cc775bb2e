import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { discardJson } from '../../../cli/changes/discard/discard-report.ts';
import { redriveJson } from '../../../cli/changes/redrive/redrive-report.ts';
import { listJson } from '../../../cli/reports/dead-letters/list-dead-letters.ts';
import type { JudgedDeadLetter } from '../../../cli/reports/dead-letters/redrive-plan.ts';

/** The JSON documents under a heading of docs/cli-json.md. */
async function documented(heading: string): Promise<unknown[]> {
  const page = await readFile('docs/cli-json.md', 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json = '']) => JSON.parse(json) as unknown);
}

/** The same document with every value replaced by the kind of thing that it is. */
function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shape);
  if (typeof value !== 'object' || value === null) return null;
  const members = Object.entries(value).map(([name, inner]) => [name, shape(inner)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => a.localeCompare(b)));
}

const source = { name: 'dead', kind: 'dead' } as const;
const deadLetter: JudgedDeadLetter = {
  id: 'l',
  eventId: 'e',
  type: 'OrderPlaced',
  sentAt: 1,
  expiresAt: 2,
  fingerprint: 'c',
  lastError: 'no',
  verdict: 'runs',
};
const received = { deadLetters: [deadLetter], total: 1 };

test('dlq list, by cause too, prints the members in docs/cli-json.md', async () => {
  const lists = [{ source, ...received }];
  const printed = [listJson(lists, 1), listJson(lists, 1, 'cause')];
  expect(printed.map(shape)).toEqual((await documented('dlq list')).map(shape));
});

test('dlq redrive and discard print the members in docs/cli-json.md', async () => {
  const place = { stack: 's', account: 'a', region: 'r' };
  const plan = { place, source, judged: [deadLetter], received, choice: {} };
  const back = [{ deadLetter, fingerprint: 'c', sameCause: true }];
  const redriven = redriveJson(plan, {
    done: [],
    handled: [],
    superseded: [],
    back,
    waiting: [],
    untried: [],
  });
  const steps = [{ deadLetter, outcome: 'discarded' }] as const;
  const discarded = discardJson({ place, source, same: [], changed: [] }, steps, { reason: 'r' });
  expect([redriven].map(shape)).toEqual((await documented('dlq redrive')).map(shape));
  expect(shape(redriveJson(plan))).toEqual(shape(planOf(redriven)));
  expect([discarded].map(shape)).toEqual((await documented('dlq discard')).map(shape));
});

/** The document of a redrive without the members that only `--apply` adds. */
function planOf({
  stopped: _,
  processed: __,
  superseded: ___,
  causes: ____,
  deadLetters,
  ...plan
}: ReturnType<typeof redriveJson>) {
  return {
    ...plan,
    deadLetters: deadLetters.map(
      ({ outcome: _, failedAgain: __, notTried: ___, ...deadLetterOfPlan }) => deadLetterOfPlan,
    ),
  };
}
