import { execFileSync } from 'node:child_process';
import { expect } from 'vitest';
import { mailroom, type Run } from './mailroom.ts';

/** The commands of the program that a run printed, as printed. */
function printedCommands({ out }: Pick<Run, 'out'>): string[] {
  return [...out.matchAll(/^ +(npx cdk-mailroom .+)$/gm)].map(([, line = '']) => line);
}

/**
 * Runs a printed command as it was printed: a POSIX shell takes it apart. Only the reason is written by the operator.
 *
 * @param more - further options, e.g. to wait as long as a slow machine needs
 */
export async function runPrinted(line: string, reason?: string, ...more: readonly string[]): Promise<Run> {
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' }).split('\0');
  const [npx, program, ...argv] = words.slice(0, -1);
  expect([npx, program]).toEqual(['npx', 'cdk-mailroom']);
  const at = argv.indexOf('--reason') + 1;
  if (reason !== undefined) {
    expect(argv[at], 'the reason is left to the operator').toBe('…');
    expect(await mailroom(...argv), 'a command without a reason is refused').toMatchObject({ code: 2 });
    argv[at] = reason;
  }
  return mailroom(...argv, ...more);
}

/** The one printed command with these words. */
export function printedCommand(run: Pick<Run, 'out'>, ...words: readonly string[]): string {
  const found = printedCommands(run).filter((line) => words.every((word) => line.includes(word)));
  expect(found, `the command with ${words.join(' ')} in ${run.out}`).toHaveLength(1);
  return found[0] ?? '';
}
