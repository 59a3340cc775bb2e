import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { step } from './step.ts';
import { ROOT, type Tarball } from './tarball.ts';

/** Every entry of the package, as an app writes it. */
export const ENTRIES = [
  'cdk-mailroom',
  'cdk-mailroom/runtime',
  'cdk-mailroom/http',
  'cdk-mailroom/bridge',
  'cdk-mailroom/sources',
  'cdk-mailroom/postgres',
  'cdk-mailroom/mysql',
  'cdk-mailroom/internals',
  'cdk-mailroom/testing',
] as const;

/**
 * Makes an app that has the package with its dependencies, and of other packages only those named: a peer that is not named cannot
 * be found, as in an app that did not install it.
 *
 * @param packages - names of packages of this repository
 * @param others - other packages that are published, with their dependencies
 * @returns its folder, which is outside the repository, whose packages would be found otherwise
 */
export async function makeBareApp(
  library: Tarball,
  packages: readonly string[],
  ...others: readonly Tarball[]
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-bare-'));
  const published = [library, ...others];
  for (const { file, manifest } of published) {
    const unpacked = join(folder, 'node_modules', manifest.name);
    await mkdir(unpacked, { recursive: true });
    await step(folder, 'tar', ['-xzf', file, '-C', unpacked, '--strip-components=1']);
  }
  const dependencies = published.flatMap(({ manifest }) => Object.keys(manifest.dependencies));
  for (const name of new Set([...dependencies, ...packages])) {
    const link = join(folder, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), link);
  }
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  return folder;
}

/**
 * Evaluates code in a Node.js process of an app.
 *
 * @param code - an expression, which may return a Promise for a value that JSON can represent
 * @param flags - options of Node.js
 */
export async function evaluate(app: string, code: string, ...flags: readonly string[]): Promise<unknown> {
  const program = `(async () => ${code})().then((value) => console.log(JSON.stringify(value)))`;
  return JSON.parse(await step(app, process.execPath, [...flags, '--eval', program]));
}

/** Everything that a producer and its test import. */
const PRODUCER = `
import { bridge, kafkaTarget } from 'cdk-mailroom/bridge';
import { createOncePerKey } from 'cdk-mailroom/http';
import { createRelayStream } from 'cdk-mailroom/internals';
import { nodePostgres, postgresPool } from 'cdk-mailroom/postgres';
import { defineEvent, lambdaOutbox, type Outbox } from 'cdk-mailroom/runtime';
import { kafkaRun } from 'cdk-mailroom/sources';
import { memoryTable } from 'cdk-mailroom/testing';
export const outbox: Outbox = lambdaOutbox();
export const items: readonly object[] = memoryTable().items();
// @ts-expect-error the types are those of the package, and not any
export const wrong: number = defineEvent;
// @ts-expect-error the same of the HTTP idempotency, although Powertools is not installed
export const wrongOncePerKey: number = createOncePerKey;
// @ts-expect-error the same of a bridge, although the package of its target is not installed
export const wrongBridge: number = [bridge, kafkaTarget];
// @ts-expect-error the same of a source
export const wrongSource: number = kafkaRun;
// @ts-expect-error the same of PostgreSQL
export const wrongDatabase: number = [nodePostgres, postgresPool];
// @ts-expect-error the same of the relay
export const wrongRelay: number = createRelayStream;
`;

/** Compiles a producer, with every declaration checked. @throws Error with the compiler's messages */
export async function compileProducer(
  app: string,
  {
    type,
    module,
    resolution,
  }: { readonly type: string; readonly module: string; readonly resolution: string },
): Promise<void> {
  await writeFile(join(app, 'package.json'), JSON.stringify({ private: true, type }));
  await writeFile(join(app, 'producer.ts'), PRODUCER);
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = [
    '--strict',
    '--noEmit',
    '--skipLibCheck',
    'false',
    '--target',
    'es2023',
    '--types',
    'node',
  ];
  const modules = ['--module', module, '--moduleResolution', resolution];
  await step(app, process.execPath, [tsc, 'producer.ts', ...options, ...modules]);
}
