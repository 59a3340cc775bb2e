import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import { capturedIo } from '../../support/captured-io.ts';

async function script(shell: string): Promise<string> {
  const { io, written } = capturedIo();
  expect(await runMailroom(['completion', shell], io)).toBe(0);
  return written.out;
}

/** The completions that bash offers for the last word. */
async function completed(...words: readonly string[]): Promise<string[]> {
  const ask = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mailroom; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', [
    '--norc',
    '-c',
    `${await script('bash')}\n${ask}`,
    'bash',
    'mailroom',
    ...words,
  ]);
  return stdout.split('\n').filter((word) => word !== '');
}

test('bash completes commands, subcommands, options and their values', async () => {
  expect(await completed('mess')).toEqual(['messages']);
  expect(await completed('dlq', '')).toEqual(expect.arrayContaining(['list', 'show', 'redrive', 'discard']));
  expect(await completed('dlq', 'list', 'dead', '--b')).toEqual(['--by']);
  expect(await completed('events', 'list', '--by', 'so')).toEqual(['source']);
  expect(await completed('--stage', 'dev', 'why', '--st')).toEqual(
    expect.arrayContaining(['--story', '--stage']),
  );
  expect(await completed('completion', 'fi')).toEqual(['fish']);
});

test('every shell has a script for every command', async () => {
  for (const shell of ['zsh', 'fish'])
    for (const word of ["'dlq/redrive'", '--payload', 'completion'])
      expect(await script(shell)).toContain(word);
});
