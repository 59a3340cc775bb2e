import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installCommand } from '../../../cli/terminal/install-command.ts';

describe('the command that installs a package', () => {
  let folder = '';

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mailroom-install-'));
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  const npx = { npm_config_user_agent: 'npm/10.9.0 node/v22.0.0 linux x64 workspaces/false' };

  test.each([
    ['pnpm-lock.yaml', 'pnpm add --save-dev esbuild'],
    ['yarn.lock', 'yarn add --dev esbuild'],
    ['bun.lock', 'bun add --dev esbuild'],
    ['bun.lockb', 'bun add --dev esbuild'],
    ['package-lock.json', 'npm install --save-dev esbuild'],
  ])('is that of the lock file %s above the folder, although npx runs it', (name, command) => {
    writeFileSync(join(folder, name), '');
    mkdirSync(join(folder, 'packages', 'shop'), { recursive: true });
    const shop = join(folder, 'packages', 'shop');
    expect(installCommand(['esbuild'], { dev: true, folder: shop, env: npx })).toBe(command);
  });

  test.each([
    ['pnpm/9.1.0 npm/? node/v22.0.0 linux x64', 'pnpm add a b'],
    ['yarn/1.22.22 npm/? node/v22.0.0 linux x64', 'yarn add a b'],
    ['bun/1.2.0 npm/? node/v22.0.0 linux x64', 'bun add a b'],
    ['npm/10.9.0 node/v22.0.0 linux x64', 'npm install a b'],
    ['cnpm/1.0.0', 'npm install a b'],
    [undefined, 'npm install a b'],
  ])('without a lock file is that of the program that runs it: %s', (agent, command) => {
    const env = { npm_config_user_agent: agent };
    expect(installCommand(['a', 'b'], { folder, env })).toBe(command);
  });
});
