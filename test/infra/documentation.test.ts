import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCUMENTATION_URL } from '../../lambdas/runtime/base/documentation.ts';
import { RUNBOOK_URL } from '../../lib/mailroom/tags.ts';

const { version, homepage } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string; homepage: string };

test('alarms and errors link to the documentation of the package, at the tag of its version', () => {
  expect(DOCUMENTATION_URL).toBe(`${homepage.replace(/#.*$/, '')}/blob/v${version}/docs`);
  expect(RUNBOOK_URL).toBe(`${DOCUMENTATION_URL}/operating.md`);
});
