import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createKeyExchange, createRedirects } from '../../../../../cli/page/server/one-time-token.ts';
import { runningUi, tokenIn } from '../../support/running-ui.ts';

/** The mode of a file, octal. */
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

test('the redirect file opens the page with a token of 256 bits in the fragment, which no browser sends', async () => {
  const { ui, origin } = await runningUi();
  const html = await readFile(ui.redirectFile, 'utf8');
  const [, address = ''] = /url=([^"]+)"/.exec(html) ?? [];
  const { origin: opened, pathname, search, hash } = new URL(address);
  expect([opened, pathname, search]).toEqual([origin, '/', '']);
  expect(hash).toMatch(/^#token=[\w-]{43}$/);
});

test('the redirect file is its owner’s alone, in its own directory', async () => {
  const { ui } = await runningUi();
  const other = await ui.newRedirect();
  expect(dirname(other)).not.toBe(dirname(ui.redirectFile));
  for (const file of [ui.redirectFile, other])
    expect([await modeOf(file), await modeOf(dirname(file))]).toEqual(['600', '700']);
});

test.runIf(process.getuid?.() === 0)(
  'another user of the machine cannot read the redirect file',
  async () => {
    const { ui } = await runningUi();
    const nobody = { uid: 65_534, gid: 65_534 };
    const run = promisify(execFile);
    await expect(run('cat', [ui.redirectFile], nobody)).rejects.toThrow(/Permission denied/);
    await expect(run('ls', [dirname(ui.redirectFile)], nobody)).rejects.toThrow(/Permission denied/);
    // The same programs can read what is for everyone.
    await run('cat', ['/etc/passwd'], nobody);
  },
);

test('a token is exchanged once, and its redirect file is gone then', async () => {
  const { ui, post, send } = await runningUi();
  const token = await tokenIn(ui.redirectFile);
  const { key } = (await post('/api/key', { token })).json<{ key: string }>();
  expect(key).toMatch(/^[\w-]{43}$/);
  expect(key).not.toBe(token);
  expect((await send('/api/mailroom', { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
  await expect.poll(() => existsSync(dirname(ui.redirectFile)), { timeout: 60_000 }).toBe(false);
  const replayed = await post('/api/key', { token });
  expect([replayed.status, replayed.json().code]).toEqual([401, 'TOKEN_USED']);
});

test.each([undefined, 1, null, '', 'x', 'x'.repeat(43), ['x']])('%j is not a token', async (token) => {
  const { post } = await runningUi();
  expect((await post('/api/key', { token })).status).toBe(401);
});

test('each further tab has its own token and key', async () => {
  const { ui, post, withKey, send } = await runningUi();
  const first = await withKey();
  const second = await post('/api/key', { token: await tokenIn(await ui.newRedirect()) });
  const headers = { Authorization: `Bearer ${second.json<{ key: string }>().key}` };
  expect(headers).not.toEqual(first);
  for (const own of [first, headers])
    expect((await send('/api/mailroom', { headers: own })).status).toBe(200);
});

test('an unopened redirect file expires, and its token with it', async () => {
  const keys = createKeyExchange();
  const made: string[] = [];
  const newToken = (onUsed?: () => void) => {
    const one = keys.newToken(onUsed);
    made.push(one.token);
    return one;
  };
  const redirects = createRedirects({ ...keys, newToken }, 'http://127.0.0.1:1', 1);
  const path = await redirects.add();
  await expect.poll(() => existsSync(path), { timeout: 60_000 }).toBe(false);
  expect(made.map(keys.exchange)).toEqual([undefined]);
});

test('the redirect files are gone when the server has stopped', async () => {
  const { ui } = await runningUi();
  const files = [ui.redirectFile, await ui.newRedirect()];
  await ui.stop();
  expect(files.filter((file) => existsSync(dirname(file)))).toEqual([]);
  expect(await ui.ended).toBe('stopped');
});
