import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, readPages } from './pages.ts';
import { writeCode } from './write-code.ts';

/** Its test walks a thousand schedules: test/package runs it, in its own app. */
const FIRST_APP = '/docs/getting-started.md/test/';

// The tests that the pages show, run from the pages' own text: a page that shows what does not hold is red.
const shown = writeCode(readPages()).filter((path) => path.endsWith('.test.ts') && !path.includes(FIRST_APP));

test('pages show tests', () => {
  expect(shown.length).toBeGreaterThan(2);
});

for (const path of shown) {
  describe(path.replace(/^\.local\/docs-code\//, ''), async () => {
    const before = process.cwd();
    // The paths of a stack's functions begin in the folder of the app.
    beforeAll(() => process.chdir(ROOT + path.replace(/\/test\/.*$/, '')));
    afterAll(() => process.chdir(before));
    await import(ROOT + path);
  });
}
