import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Stack } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { moduleUrl } from './module-url.ts';

/** A function of a Mailroom itself: a folder of `lambdas/`. */
type OwnFunction = 'relay-stream' | 'relay-sweep' | 'audit' | 'heartbeat';

/** The repository, or the folder `dist` of the package. */
const ROOT = new URL('../../', moduleUrl);

/**
 * The code of one of Mailroom's own functions. The package contains them built, so a synth needs no esbuild for them; the
 * repository builds them at the first synth of a process, unless its templates need no code.
 */
export function ownCode(scope: Construct, name: OwnFunction) {
  return { code: Code.fromAsset(folderOf(scope, name)), handler: 'index.handler' };
}

function folderOf(scope: Construct, name: OwnFunction): string {
  if (!moduleUrl.endsWith('.ts')) return pathOf(`functions/${name}`);
  return Stack.of(scope).bundlingRequired ? `${builtHere()}/${name}` : pathOf(`lambdas/${name}`);
}

let built: string | undefined;

function builtHere(): string {
  if (built === undefined) {
    const folder = pathOf('.local/functions');
    const build = ['--import=tsx', pathOf('tools/pack/functions.ts'), folder];
    execFileSync(process.execPath, build, { cwd: pathOf('.'), stdio: ['ignore', 'ignore', 'inherit'] });
    built = folder;
  }
  return built;
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(name, ROOT));
}
