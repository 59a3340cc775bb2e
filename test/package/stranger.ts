import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { firstAppFiles } from '../docs/code-blocks.ts';
import { step } from './step.ts';
import { ROOT, type Tarball } from './tarball.ts';

/** In what kind of app the package is tried. */
export interface StrangerSettings {
  readonly module: 'ESM' | 'CommonJS';
  /** Versions of packages, instead of those that the app's template or npm would choose. */
  readonly versions: Readonly<Record<string, string>>;
}

interface TemplateManifest {
  type?: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/**
 * Makes an app in which the package is installed from its tarball: what `cdk init` makes, and the files of docs/getting-started.md.
 *
 * @param folder - is made; its last part, which the CDK takes for the app's name, must be `shop` as on that page
 */
export async function makeApp(folder: string, tarball: Tarball, settings: StrangerSettings): Promise<void> {
  await mkdir(folder, { recursive: true });
  const cdk = join(ROOT, 'node_modules', 'aws-cdk', 'bin', 'cdk');
  await step(folder, process.execPath, [cdk, 'init', 'app', '--language', 'typescript', '--generate-only']);
  // A test for Jest, of a stack that the page replaces.
  await rm(join(folder, 'test', 'shop.test.ts'));
  for (const [file, text] of firstAppFiles()) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  await change(join(folder, 'package.json'), (text) => {
    const manifest = JSON.parse(text) as TemplateManifest;
    if (settings.module === 'ESM') manifest.type = 'module';
    Object.assign(manifest.dependencies, { 'cdk-mailroom': `file:${tarball.file}`, zod: '^4.0.0' });
    manifest.devDependencies.vitest = '^4.0.0';
    for (const [name, version] of Object.entries(settings.versions)) {
      const kind = name in manifest.devDependencies ? manifest.devDependencies : manifest.dependencies;
      kind[name] = version;
    }
    return JSON.stringify(manifest);
  });
  if (settings.module === 'ESM') {
    // What Node.js asks of an ES module, and the template is not.
    await change(join(folder, 'bin', 'shop.ts'), (text) => text.replace("shop-stack'", "shop-stack.js'"));
  }
  await step(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** The lowest version that a range lets in: `^1.2.3` or `>=1.2.3`. */
export function lowest(range: string): string {
  const version = /^(?:\^|>=)(\d+\.\d+\.\d+)$/.exec(range)?.[1];
  if (version === undefined) throw new Error(`The range "${range}" has no floor that this test can read`);
  return version;
}

async function change(file: string, rewrite: (text: string) => string): Promise<void> {
  await writeFile(file, rewrite(await readFile(file, 'utf8')));
}
