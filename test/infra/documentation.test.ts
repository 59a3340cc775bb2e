import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCUMENTATION_URL } from '../../lambdas/runtime/base/documentation.ts';
import { RUNBOOK_URL } from '../../lib/mailroom/tags.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

const { version, homepage } = JSON.parse(read('package.json')) as { version: string; homepage: string };

test('alarms and errors link to the documentation at the tag of the version, and on main while the changelog calls it unreleased', () => {
  const headings = read('CHANGELOG.md')
    .split('\n')
    .filter((line) => line.startsWith(`## [${version}]`));
  expect(headings).toHaveLength(1);
  const ref = headings[0] === `## [${version}], unreleased` ? 'main' : `v${version}`;
  expect(DOCUMENTATION_URL).toBe(`${homepage.replace(/#.*$/, '')}/blob/${ref}/docs`);
  expect(RUNBOOK_URL).toBe(`${DOCUMENTATION_URL}/operating.md`);
});
