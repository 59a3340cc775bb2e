import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot, withoutAws } from '../../../localstack/workspace.ts';
import type { VerifyReceipt } from '../../../verify/receipt.ts';

/** How `npm run verify` ended, and what it printed. */
interface VerifyRun {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  /** What `--json` printed. */
  receipt(): VerifyReceipt;
}

/** What happens to a run when its progress shows a text. */
interface Interruption {
  readonly at: string;
  readonly signal: 'SIGINT' | 'SIGKILL';
}

/** Runs `npm run verify` in an environment that knows of no AWS account but what `env` says. */
export async function runVerify(
  args: readonly string[],
  { interrupt, env = {} }: { readonly interrupt?: Interruption; readonly env?: Record<string, string> } = {},
): Promise<VerifyRun> {
  const script = join(projectRoot, 'verify', 'main.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
    cwd: projectRoot,
    env: {
      ...withoutAws(process.env),
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err, interrupted] = ['', '', false];
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
    if (interrupt === undefined || interrupted || !err.includes(interrupt.at)) return;
    interrupted = true;
    child.kill(interrupt.signal);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, out, err, receipt: () => JSON.parse(out) };
}
