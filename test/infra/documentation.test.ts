import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RUNBOOK_URL } from '../../lib/mailroom/tags.ts';

const { version, homepage } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string; homepage: string };

test('the runbook is that of the package, at the tag of its version', () => {
  expect(RUNBOOK_URL).toBe(`${homepage.replace(/#.*$/, '')}/blob/v${version}/docs/operating.md`);
});
