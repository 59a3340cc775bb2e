import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { codeBlocks, firstAppFiles } from '../docs/code-blocks.ts';
import { staticImports } from './imports.ts';
import { step } from './step.ts';
import { type Packages, ROOT } from './tarball.ts';

/** The kind of modules that an app is written in. */
export type AppModules = 'ESM' | 'CommonJS';

interface TemplateManifest {
  type?: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/**
 * Makes an app as `cdk init` does, with the files of docs/getting-started.md and without any packages.
 *
 * @param folder - is made; its last part, which the CDK takes for the app's name, must be `shop` as on that page
 */
export async function makeApp(folder: string, modules: AppModules): Promise<void> {
  await mkdir(folder, { recursive: true });
  const cdk = join(ROOT, 'node_modules', 'aws-cdk', 'bin', 'cdk');
  await step(folder, process.execPath, [cdk, 'init', 'app', '--language', 'typescript', '--generate-only']);
  for (const [file, text] of firstAppFiles()) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), modules === 'ESM' ? asEsModule(file, text) : text);
  }
  if (modules === 'CommonJS') return;
  await changeManifest(folder, (manifest) => {
    manifest.type = 'module';
  });
  await change(join(folder, 'bin', 'shop.ts'), (text) => asEsModule('bin/shop.ts', text));
  // For Jest, which has no complete support of ES modules.
  await rm(join(folder, 'test', 'shop.test.ts'));
}

/** Adds what Node.js requires of ES modules, and the imports that Vitest requires of tests: the template and the page have neither. */
function asEsModule(file: string, text: string): string {
  const extended = text.replace(/(?<=\bfrom )'(\.\.?\/[^']+)'/g, "'$1.js'");
  return file.startsWith('test/') ? `import { expect, test } from 'vitest';\n${extended}` : extended;
}

/**
 * Asks for the tarballs and what docs/getting-started.md installs besides.
 *
 * @param versions - of packages, instead of those that the app's template or npm would choose
 */
export async function dependIn(
  folder: string,
  { library, command }: Packages,
  versions: Readonly<Record<string, string>>,
): Promise<void> {
  await changeManifest(folder, ({ type, dependencies, devDependencies }) => {
    Object.assign(dependencies, { 'cdk-mailroom': `file:${library.file}`, zod: '^4.0.0' });
    devDependencies['@cdk-mailroom/cli'] = `file:${command.file}`;
    if (type === 'module') devDependencies.vitest = '^4.0.0';
    for (const [name, version] of Object.entries({ ...library.manifest.peerDependencies, ...versions })) {
      const kind = name in devDependencies ? devDependencies : dependencies;
      kind[name] = version;
    }
  });
}

/** Installs with npm. @param options - of `npm install` */
export async function installIn(folder: string, ...options: readonly string[]): Promise<void> {
  await step(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...options]);
}

/** Looks for types also where npm hoists those of a workspace: the template has only the app's own folder. */
export async function findHoistedTypes(folder: string): Promise<void> {
  await change(join(folder, 'tsconfig.json'), (text) =>
    text.replace('"./node_modules/@types"', '"./node_modules/@types", "../node_modules/@types"'),
  );
}

/** Links the unpacked command, as npm would; all other packages are those of the repository above the app. */
export async function linkIn(folder: string, { command }: Packages): Promise<void> {
  const commands = join(folder, 'node_modules', '.bin');
  await mkdir(commands, { recursive: true });
  await symlink(join(command.unpacked, 'bin', 'mailroom.js'), join(commands, 'cdk-mailroom'));
  // The repository has no types of Jest, which the tests need, and its others are not in the app's own folder.
  await change(join(folder, 'tsconfig.json'), (text) => {
    const { compilerOptions, exclude, ...rest } = JSON.parse(text);
    const { typeRoots: _, ...others } = compilerOptions;
    return JSON.stringify({
      ...rest,
      compilerOptions: { ...others, types: ['node'] },
      exclude: [...exclude, 'test'],
    });
  });
}

/** Everything that docs/getting-started.md has its reader do in the app, short of the deployment. */
export async function useApp(folder: string, { command }: Packages): Promise<void> {
  await step(folder, 'npx', ['--no', '--', 'cdk', 'synth', '-q']); // runs tsc first, as the template says
  const bundles = (await readdir(join(folder, 'cdk.out'), { recursive: true })).filter((file) =>
    file.endsWith('index.mjs'),
  );
  expect(bundles, 'stream, sweep, producer and consumer').toHaveLength(4);
  for (const bundle of bundles) {
    const code = await readFile(join(folder, 'cdk.out', bundle), 'utf8');
    expect(staticImports(code).filter((name) => !isBuiltin(name))).toEqual([]);
  }
  expect(await step(folder, 'npx', ['--no', '--', 'cdk-mailroom', '--version'])).toContain(
    command.manifest.version,
  );
  expect(await step(folder, 'npx', ['--no', '--', 'cdk-mailroom', '--help'])).toContain(
    'Usage: npx cdk-mailroom',
  );
}

/** Runs the app's tests with Vitest. */
export async function testWithVitest(folder: string): Promise<void> {
  await waitForTests(folder);
  expect(await step(folder, 'npx', ['--no', '--', 'vitest', 'run'])).toMatch(/Tests +2 passed \(2\)/);
}

/**
 * Runs the app's tests with Jest as the template sets it up, together with the template's own test and that of the stack in
 * docs/testing.md.
 *
 * @param node - the Node.js that runs them
 */
export async function testWithJest(folder: string, node = process.execPath): Promise<void> {
  await waitForTests(folder);
  const testing = codeBlocks(await readFile(join(ROOT, 'docs', 'testing.md'), 'utf8'));
  const stackTest = testing.find(({ file }) => file === 'test/stack.test.ts');
  await writeFile(join(folder, 'test', 'stack.test.ts'), stackTest?.code ?? '');
  const jest = createRequire(join(folder, 'package.json')).resolve('jest/bin/jest');
  const { numPassedTests, numTotalTests } = JSON.parse(await step(folder, node, [jest, '--json']));
  expect({ numPassedTests, numTotalTests }).toEqual({ numPassedTests: 4, numTotalTests: 4 });
}

/** The page's minute is for a reader's machine; how busy this one is must not decide. */
async function waitForTests(folder: string): Promise<void> {
  await change(join(folder, 'test', 'payments.test.ts'), (text) => text.replace('60_000', '1_800_000'));
}

async function changeManifest(folder: string, rewrite: (manifest: TemplateManifest) => void): Promise<void> {
  await change(join(folder, 'package.json'), (text) => {
    const manifest = JSON.parse(text) as TemplateManifest;
    rewrite(manifest);
    return JSON.stringify(manifest);
  });
}

async function change(file: string, rewrite: (text: string) => string): Promise<void> {
  await writeFile(file, rewrite(await readFile(file, 'utf8')));
}
