import { expect, test } from 'vitest';
import { createTurns } from '../../../../lambdas/runtime/sources/turns.ts';
import { gate } from './source-rig.ts';

/** Runs that record their beginning and end, and end when the test says so. */
function runs() {
  const turns = createTurns();
  const log: string[] = [];
  const gates = new Map<string, () => void>();
  const start = (how: 'beside' | 'alone', name: string) => {
    const { opened, open } = gate();
    gates.set(name, open);
    return turns[how](async () => {
      log.push(`+${name}`);
      await opened;
      log.push(`-${name}`);
      if (name.endsWith('!')) throw new Error(name);
      return name;
    });
  };
  const idle = () => new Promise((resolve) => setImmediate(resolve));
  return { log, start, idle, end: async (name: string) => [gates.get(name)?.(), await idle()] };
}

test('messages run beside one another', async () => {
  const { log, start, idle, end } = runs();
  const both = [start('beside', 'a'), start('beside', 'b')];
  await idle();
  expect(log).toEqual(['+a', '+b']);
  await end('a');
  await end('b');
  expect(await Promise.all(both)).toEqual(['a', 'b']);
});

test('a message that must run alone waits for the others, and those behind it wait for it', async () => {
  const { log, start, idle, end } = runs();
  void start('beside', 'a');
  await idle();
  void start('alone', 's');
  void start('beside', 'b');
  await idle();
  expect(log).toEqual(['+a']);
  await end('a');
  expect(log).toEqual(['+a', '-a', '+s']);
  await end('s');
  expect(log.slice(3)).toEqual(['-s', '+b']);
});

test('two that must run alone do not run beside one another, although the first fails', async () => {
  const { log, start, idle, end } = runs();
  const first = expect(start('alone', 's!')).rejects.toThrow('s!');
  void start('alone', 't');
  void start('beside', 'b!').catch(() => {});
  await idle();
  expect(log).toEqual(['+s!']);
  await end('s!');
  await first;
  expect(log).toEqual(['+s!', '-s!', '+t']);
  await end('t');
  await end('b!');
  expect(log.slice(3)).toEqual(['-t', '+b!', '-b!']);
});

test('a message whose turn came up while another asked to run alone waits for that one, too', async () => {
  const { log, start, idle, end } = runs();
  void start('alone', 's');
  void start('beside', 'b');
  await idle();
  void start('alone', 't');
  await end('s');
  expect(log).toEqual(['+s', '-s', '+t']);
  await end('t');
  expect(log.slice(3)).toEqual(['-t', '+b']);
});
