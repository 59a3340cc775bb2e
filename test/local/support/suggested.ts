import { mailroom, type Run } from './mailroom.ts';

/** The command that a run printed, to be run as it is. */
export function suggested({ out }: Run): (...more: string[]) => Promise<Run> {
  const [command, ...others] = [...out.matchAll(/^ +npx mailroom (.*)$/gm)].map(([, words = '']) => words);
  if (command === undefined || others.length > 0) throw new Error(`Not one command in: ${out}`);
  return (...more) => mailroom(...command.split(' '), ...more);
}
