import { expect, test } from 'vitest';
import { deadLetterSource } from '../../../cli/reports/dead-letters/dead-letters.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { fine } from './support/why-rig.ts';

test.each([
  [['audit', '--sinse', '6h'], '(Run npx cdk-mailroom audit --help for usage.)'],
  [['dlq', 'redrive'], '(Run npx cdk-mailroom dlq redrive --help for usage.)'],
  [['statsu'], '(Run npx cdk-mailroom --help for usage.)'],
  [['redrive'], "unknown command 'redrive' (Did you mean dlq redrive?)"],
  [['status', '--stage', 'dev', '--stage', 'prod'], 'It was given before, as "dev". Give it once.'],
])('%j is wrong usage: %s', async (argv, says) => {
  const { code, err } = await runInMemory(mailroomInMemory([fine]), argv);
  expect(code).toBe(2);
  expect(unwrapped(err)).toContain(says);
});

test('a dead-letter source without its kind, or of another kind, is suggested whole', () => {
  const hint = 'Did you mean consumer:worker or rule:worker?';
  for (const name of ['worker', 'queue:worker'])
    expect(() => deadLetterSource(directory, name)).toThrow(hint);
  expect(() => deadLetterSource(directory, 'nothing')).toThrow(/mailroom-dev\. Sources: /);
});
