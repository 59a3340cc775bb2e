import { readFileSync } from 'node:fs';
import { type Step, sideBySide } from './side-by-side.ts';

// npm run check: what is quick to know before a commit. `npm test` runs the same, and everything else.

const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

const steps: readonly Step[] = [
  // Beside the others one thread is less work in all; and what has not changed since the last time is not read again.
  {
    name: 'typecheck',
    command: `${scripts.typecheck} --singleThreaded --incremental --tsBuildInfoFile .local/check.tsbuildinfo`,
  },
  { name: 'lint', command: scripts.lint },
  { name: 'knip', command: scripts.knip },
  {
    name: 'test',
    command: 'vitest run --project fast --reporter=dot',
    // Laws are tried a fifth as often as by `npm test`.
    env: { PROPERTY_TIMES: process.env.PROPERTY_TIMES ?? '0.2' },
    gist: /Tests +(.*)/,
  },
];

const failed = await sideBySide(steps, (text) => process.stdout.write(text));
if (failed.length > 0) {
  console.error(`check failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
