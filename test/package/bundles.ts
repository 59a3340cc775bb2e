import { builtinModules } from 'node:module';
import { dirname } from 'node:path';
import { build } from 'esbuild';
import { packageOf } from './imports.ts';
import type { Tarball } from './tarball.ts';

/** What a bundle has in it. */
interface Bundle {
  readonly bytes: number;
  /** The packages whose code is in it. */
  readonly packages: readonly string[];
}

/** Bundles a module that imports the package, minified, as a function's code is. */
export async function smallBundle(tarball: Tarball, contents: string): Promise<Bundle> {
  const { metafile } = await build({
    stdin: { contents, resolveDir: dirname(tarball.unpacked) },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    mainFields: ['module', 'main'],
    logLevel: 'silent',
  });
  const [output] = Object.values(metafile.outputs);
  const inputs = Object.entries(output?.inputs ?? {}).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const names = inputs.flatMap(([file]) => {
    const inside = file.split('node_modules/').at(-1);
    return file.includes('node_modules/') && inside !== undefined ? packageOf(inside) : [];
  });
  return { bytes: output?.bytes ?? 0, packages: [...new Set(names)].sort() };
}

/** The packages that Node.js loads when an entry of the package is imported, whatever is then used of it. */
export async function reachedPackages(tarball: Tarball, entry: string): Promise<string[]> {
  const { metafile } = await build({
    stdin: { contents: `import '${entry}';`, resolveDir: dirname(tarball.unpacked) },
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    // Nothing may be left out because it is not used: Node.js leaves nothing out.
    ignoreAnnotations: true,
    treeShaking: false,
    external: [...builtinModules, ...packagesOf(tarball)],
    logLevel: 'silent',
  });
  const reached = Object.values(metafile.inputs)
    .flatMap(({ imports }) => imports)
    .filter(
      ({ external, kind, path }) => external && kind === 'import-statement' && !path.startsWith('node:'),
    )
    .map(({ path }) => packageOf(path));
  return [...new Set(reached)].sort();
}

/** What the package asks npm for: not looked into, so that what is reached is what the package itself imports. */
function packagesOf({ manifest }: Tarball): string[] {
  return Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
}
