import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A package manager: its lock files, how it adds packages, and its option for those of development. */
interface PackageManager {
  readonly lockFiles: readonly string[];
  readonly add: string;
  readonly dev: string;
}

const NPM: PackageManager = { lockFiles: ['package-lock.json'], add: 'npm install', dev: '--save-dev' };

/** By the name in `npm_config_user_agent`. npm is last: a project that moved to another may have kept its lock file. */
const PACKAGE_MANAGERS: Readonly<Record<string, PackageManager>> = {
  pnpm: { lockFiles: ['pnpm-lock.yaml'], add: 'pnpm add', dev: '--save-dev' },
  yarn: { lockFiles: ['yarn.lock'], add: 'yarn add', dev: '--dev' },
  bun: { lockFiles: ['bun.lock', 'bun.lockb'], add: 'bun add', dev: '--dev' },
  npm: NPM,
};

/**
 * Returns the command that installs packages, for the package manager in use: that of the nearest lock file, else the one that runs this
 * process (`npx` in a pnpm project runs npm), else npm.
 *
 * @param folder - of the app
 *
 * @example
 * ```ts
 * installCommand(['esbuild'], { dev: true }); // 'pnpm add --save-dev esbuild'
 * ```
 */
export function installCommand(
  packages: readonly string[],
  { dev = false, folder = process.cwd(), env = process.env } = {},
): string {
  const [runner = ''] = env.npm_config_user_agent?.split('/') ?? [];
  const manager = managerOf(folder) ?? PACKAGE_MANAGERS[runner] ?? NPM;
  return [manager.add, ...(dev ? [manager.dev] : []), ...packages].join(' ');
}

/** The package manager whose lock file is in a folder, or in the nearest one above it. */
function managerOf(folder: string): PackageManager | undefined {
  const found = Object.values(PACKAGE_MANAGERS).find(({ lockFiles }) =>
    lockFiles.some((name) => existsSync(join(folder, name))),
  );
  const parent = dirname(folder);
  return found ?? (parent === folder ? undefined : managerOf(parent));
}
