// Makes `dist/cjs`, which Node.js loads, from the ES modules that tsc wrote to `dist`, which bundlers read: docs/adr/0034.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import manifest from '../../package.json' with { type: 'json' };
import { copyDeclarations, reachedFiles } from './declarations.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DIST = join(ROOT, 'dist');
const CJS = join(DIST, 'cjs');
/** The folder to which tsc writes the declarations, before they are copied. */
const TYPES = join(DIST, 'types');

/** The entries of package.json's `exports`, by their paths in `dist` without an extension. */
const ENTRIES = Object.values(manifest.exports).flatMap((target) =>
  typeof target === 'string' ? [] : target.module.replace(/^\.\/dist\/|\.js$/g, ''),
);

/** Dependencies that are ES modules only. Jest cannot `require` one, so the package contains a CommonJS copy. */
const ES_MODULE_PACKAGES = ['p-limit', 'p-map'];

/** Optional peers that every app with constructs has. */
const CDK_PACKAGES = ['aws-cdk-lib', 'constructs', 'esbuild'];

/** Loaded on first use: an app that uses no queue runs without the client of SQS. */
const LAZY_PACKAGES = Object.keys(manifest.peerDependenciesMeta).filter(
  (name) => !CDK_PACKAGES.includes(name),
);

/** The modules of `LAZY_PACKAGES` that the build imports. */
const lazilyLoaded = new Set<string>();

/** The one of `LAZY_PACKAGES` that contains a module. */
const lazyPackageOf = (path: string) =>
  LAZY_PACKAGES.find((name) => path === name || path.startsWith(`${name}/`));

/** The command that installs a missing package, for these modules and the command's own file. */
const INSTALL_COMMAND = substituteOf('install-command');

const lazyModule = (path: string) => `module.exports = new Proxy({}, {
  get(_, member) {
    try {
      return require('${path}')[member];
    } catch (cause) {
      if (cause?.code !== 'MODULE_NOT_FOUND' || !cause.message.includes("'${path}'")) throw cause;
      const { installCommand } = require('${specifier(join(CJS, substituteOf(path)), join(CJS, INSTALL_COMMAND))}');
      throw new Error('cdk-mailroom uses ${lazyPackageOf(path)} here, which is not installed. Run: ' + installCommand(['${lazyPackageOf(path)}']), { cause });
    }
  },
});
`;

/** The URL of the ES module, so that both builds find the same files beside it. */
const MODULE_URL = `
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
export const moduleUrl = pathToFileURL(join(__dirname, '..', '..', '..', 'lib', 'functions', 'module-url.js')).href;
`;

/** Keeps one output per source file, and replaces what cannot be loaded by `require`, or only if it is installed. */
const substitutes: Plugin = {
  name: 'substitutes',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ path, kind, importer }) => {
      if (kind === 'entry-point') return undefined;
      if (lazyPackageOf(path) !== undefined) lazilyLoaded.add(path);
      const substituted = ES_MODULE_PACKAGES.includes(path) || lazilyLoaded.has(path);
      return {
        path: substituted ? specifier(importer, join(DIST, substituteOf(path))) : path,
        external: true,
      };
    });
    onLoad({ filter: /[\\/]lib[\\/]functions[\\/]module-url\.js$/ }, () => ({ contents: MODULE_URL }));
  },
};

const OPTIONS = {
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
} satisfies BuildOptions;

/** The file that replaces a package, from the folder of the build. */
function substituteOf(name: string): string {
  return `packages/${name}.js`;
}

function specifier(importer: string, file: string): string {
  const path = relative(dirname(importer), file).split(sep).join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

/** Bundles a package that is ES modules only. Its default export becomes `module.exports`, which `import` reads as the default. */
async function copyPackage(name: string): Promise<void> {
  const license = await readFile(join(ROOT, 'node_modules', name, 'license'), 'utf8');
  await build({
    ...OPTIONS,
    stdin: { contents: `export { default } from '${name}';`, resolveDir: ROOT },
    outfile: join(CJS, substituteOf(name)),
    banner: { js: `/*! ${name}\n\n${license.trim()}\n*/` },
    footer: { js: 'module.exports = module.exports.default;' },
  });
}

async function writeLazyModule(path: string): Promise<void> {
  await build({
    ...OPTIONS,
    bundle: false,
    stdin: { contents: lazyModule(path), sourcefile: `${path}.js` },
    outfile: join(CJS, substituteOf(path)),
  });
}

async function failOnWarnings(options: BuildOptions): Promise<void> {
  const { warnings } = await build(options);
  if (warnings.length > 0)
    throw new Error(`esbuild has ${warnings.length} warnings about the CommonJS build`);
}

const modules = await reachedFiles(DIST, ENTRIES, '.js');
await failOnWarnings({
  ...OPTIONS,
  entryPoints: modules.map((file) => join(DIST, file)),
  outbase: DIST,
  outdir: CJS,
  plugins: [substitutes],
});
for (const name of ES_MODULE_PACKAGES) await copyPackage(name);
for (const path of lazilyLoaded) await writeLazyModule(path);
await build({
  ...OPTIONS,
  entryPoints: [join(ROOT, 'cli', 'terminal', 'install-command.ts')],
  outfile: join(CJS, INSTALL_COMMAND),
});
await copyDeclarations(TYPES, CJS, ENTRIES, LAZY_PACKAGES);
await rm(TYPES, { recursive: true });
await writeFile(join(CJS, 'package.json'), '{ "type": "commonjs" }\n');
