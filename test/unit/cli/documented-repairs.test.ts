import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { listJson } from '../../../cli/dlq.ts';
import { discardJson } from '../../../cli/dlq-discard.ts';
import type { JudgedLetter } from '../../../cli/letters/letter-verdict.ts';
import { planJson, redrivenJson } from '../../../cli/letters/redrive-report.ts';

/** The JSON documents under a heading of docs/cli.md. */
async function documented(heading: string): Promise<unknown[]> {
  const page = await readFile('docs/cli.md', 'utf8');
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

const place = { place: 'dead', kind: 'dead' } as const;
const letter: JudgedLetter = {
  id: 'l',
  eventId: 'e',
  type: 'OrderPlaced',
  sentAt: 1,
  expiresAt: 2,
  fingerprint: 'c',
  verdict: 'runs',
};

test('dlq list, redrive and discard print what docs/cli.md says, member for member', async () => {
  const listed = listJson([{ place, total: 1, letters: [letter] }], 1);
  const back = [{ letter, fingerprint: 'c', sameCause: true }];
  const redriven = redrivenJson(place, [letter], 1, { done: [], back, waiting: [], untried: [] });
  const discarded = discardJson(place, [{ letter, fate: 'discarded' }], { apply: true, reason: 'r' });
  expect([listed].map(shape)).toEqual((await documented('dlq list')).map(shape));
  expect([planJson(place, [letter], 1), redriven].map(shape)).toEqual(
    (await documented('dlq redrive')).map(shape),
  );
  expect([discarded].map(shape)).toEqual((await documented('dlq discard')).map(shape));
});
