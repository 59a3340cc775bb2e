import { runMailroom } from '../../cli/program.ts';
import { capturedIo } from './captured-io.ts';

/** Runs each command of `cdk-mailroom` that a text names in backticks, as it is. @returns their exit codes */
export async function runNamed(text = ''): Promise<number[]> {
  const codes: number[] = [];
  for (const [, line = ''] of text.matchAll(/`npx cdk-mailroom ([^`]+)`/g))
    codes.push(await runMailroom(line.split(' '), capturedIo().io));
  return codes;
}
