import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildFunctions } from '../../tools/pack/functions.ts';

const run = promisify(execFile);

/** The zips of the functions, by the names that the Terraform configuration gives them. */
export interface ExampleCode {
  readonly folder: string;
  readonly zips: Readonly<Record<'stream_relay' | 'sweep' | 'audit' | 'place_order' | 'receipts', string>>;
}

/** Builds Mailroom's functions as the package has them, and the handlers of the examples; zips all of them. */
export async function exampleCode(python: string): Promise<ExampleCode> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-examples-'));
  await buildFunctions(folder);
  // The handlers' own script. The package is not installed beside them, so its name leads to its sources.
  const options = [`--outdir=${folder}`, '--alias:cdk-mailroom/runtime=../../lambdas/runtime/index.ts'];
  await run('npm', ['run', 'build', '--', ...options], { cwd: 'docs/examples/handlers' });
  const zip = async (name: string) => {
    const file = join(folder, `${name}.zip`);
    // Python is there because the local AWS needs it; Node.js writes no zip.
    await run(python, ['-m', 'zipfile', '-c', file, join(folder, name, 'index.mjs')]);
    return file;
  };
  return {
    folder,
    zips: {
      stream_relay: await zip('relay-stream'),
      sweep: await zip('relay-sweep'),
      audit: await zip('audit'),
      place_order: await zip('place-order'),
      receipts: await zip('receipts'),
    },
  };
}
