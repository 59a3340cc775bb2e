import { expect, test } from 'vitest';
import { type Step, sideBySide } from './side-by-side.ts';

const node = (code: string) => `"${process.execPath}" -e "${code}"`;

async function ran(...steps: Step[]) {
  const lines: string[] = [];
  const failed = await sideBySide(
    steps,
    (text) => lines.push(text),
    () => 0,
  );
  return { failed, output: lines.join('') };
}

test('of a step that is well there is one line, with the gist of what it wrote', async () => {
  const step = { name: 'test', command: node("console.log('much', 'Tests 12 passed')"), gist: /(Tests .*)/ };
  expect(await ran(step)).toEqual({ failed: [], output: 'ok     test 0.0 s, Tests 12 passed\n' });
});

test('of a step that failed there is everything, also what it wrote as an error', async () => {
  const command = node("console.log('one'); console.error('two'); process.exitCode = 3");
  const { failed, output } = await ran({ name: 'lint', command, gist: /(one)/ });
  expect(failed).toEqual(['lint']);
  expect(output).toMatch(/^FAILED lint 0\.0 s\n/);
  expect(output).toContain('one');
  expect(output).toContain('two');
});

test('a step that fails stops no other', async () => {
  const { failed, output } = await ran(
    { name: 'knip', command: node('process.exitCode = 1') },
    { name: 'typecheck', command: node('process.exitCode = 0') },
  );
  expect(failed).toEqual(['knip']);
  expect(output).toContain('ok     typecheck');
});

test('a command that does not exist has failed', async () => {
  expect((await ran({ name: 'lint', command: 'mailroom-has-no-such-command' })).failed).toEqual(['lint']);
});

test('a step is given its own environment besides this one', async () => {
  const command = node(
    'process.exitCode = process.env.PROPERTY_TIMES === String(1 / 5) && process.env.PATH ? 0 : 1',
  );
  expect((await ran({ name: 'test', command, env: { PROPERTY_TIMES: '0.2' } })).failed).toEqual([]);
});
