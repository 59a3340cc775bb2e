import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { importsIn, ROOT } from './import-graph.ts';

const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/** Only writes files, and loads no SDK. */
const WRITES_FILES = /^(?:tools\/|test\/docs\/write-code\.ts$)/;

/** The programs that the commands of package.json run, except those that only write files. */
const programs = new Set(
  Object.values(scripts)
    .flatMap((line) => [...line.matchAll(/\btsx (\S+\.ts)/g)].map(([, file = '']) => file))
    .filter((file) => !WRITES_FILES.test(file)),
);

test.each([...programs])(
  '%s hides the SDK’s warning about Node 20 before it loads anything else',
  (program) => {
    const [first] = importsIn(program, readFileSync(new URL(program, ROOT), 'utf8'));
    expect(first?.to).toBe('localstack/quiet-sdk.ts');
  },
);

test('there are such programs', () => {
  expect(programs.size).toBeGreaterThan(5);
});
