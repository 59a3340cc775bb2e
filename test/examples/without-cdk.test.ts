import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT } from '../docs/pages.ts';
import { renderPage } from './without-cdk-page.ts';

const FILE = `${ROOT}docs/without-cdk.md`;

test('docs/without-cdk.md shows what the codec reads and the constructs deploy', async () => {
  // Renew it with: npx vitest run --project constructs test/examples/without-cdk.test.ts -u
  await expect(renderPage(readFileSync(FILE, 'utf8'))).toMatchFileSnapshot(FILE);
});

test('a part of the page that was changed by hand is found', () => {
  const page = readFileSync(FILE, 'utf8');
  const changed = page.replace('| `MAILROOM_SHARDS` |', '| `MAILROOM_SHARD_COUNT` |');
  expect(changed).not.toBe(page);
  expect(renderPage(changed)).toBe(page);
});
