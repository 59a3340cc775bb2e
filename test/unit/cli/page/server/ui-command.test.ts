import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { hasBrowser, tunnelOf } from '../../../../../cli/page/server/browser.ts';
import { runMailroom } from '../../../../../cli/program.ts';
import { capturedIo, unwrapped } from '../../../../support/captured-io.ts';
import { mailroomInMemory } from '../../support/mailroom-in-memory.ts';
import { type MemoryMailroom, memoryDeployment } from '../../support/memory-deployment.ts';

const GENEROUS = { timeout: 60_000 };

/** Runs `mailroom ui` until `stop`, with a browser that only remembers what it was to open. */
function started(
  argv: readonly string[],
  {
    mailroom = mailroomInMemory([]),
    env = {},
    browser = async () => {},
  }: {
    readonly mailroom?: MemoryMailroom;
    readonly env?: Readonly<Record<string, string>>;
    readonly browser?: (file: string) => Promise<void>;
  } = {},
) {
  const stop = new AbortController();
  const { io, written } = capturedIo({ env, signal: stop.signal });
  const opened: string[] = [];
  const typed = new Set<() => void>();
  const code = runMailroom(['ui', ...argv], {
    ...io,
    open: async (given: typeof io, options: object) => memoryDeployment(mailroom, given, options),
    browse: async (file: string) => {
      opened.push(file);
      await browser(file);
    },
    onLine: (listener: () => void) => {
      typed.add(listener);
      return () => void typed.delete(listener);
    },
  } as typeof io);
  return {
    code,
    written,
    opened,
    stop: async () => {
      stop.abort();
      return await code;
    },
    enter: () => {
      for (const listener of typed) listener();
    },
  };
}

test('ui opens the redirect file in the browser and says where, who, what it may do and how to stop', async () => {
  const { written, opened, stop } = started([]);
  await expect.poll(() => opened.length, GENEROUS).toBe(1);
  const text = unwrapped(written.out);
  expect(text).toMatch(/Mailroom at http:\/\/127\.0\.0\.1:\d+\//);
  const [file = ''] = opened;
  const html = await readFile(file, 'utf8');
  const [, token = '?'] = /#token=([\w-]+)/.exec(html) ?? [];
  expect(written.out + written.err).not.toContain(token);
  expect(await stop()).toBe(0);
  expect(written.err).toContain('Stopped.');
});

test('Enter opens another tab, with another token', async () => {
  const { opened, enter, stop } = started([]);
  await expect.poll(() => opened.length, GENEROUS).toBe(1);
  enter();
  await expect.poll(() => opened.length, GENEROUS).toBe(2);
  const [first, second] = await Promise.all(opened.map((file) => readFile(file, 'utf8')));
  expect(first).not.toBe(second);
  await stop();
});

test('ui --no-open, and a browser that does not start, print the path of the file', async () => {
  const failing = { browser: () => Promise.reject(new Error('spawn xdg-open ENOENT')) };
  for (const run of [started(['--no-open']), started([], failing)]) {
    await expect.poll(() => run.written.err, GENEROUS).toContain('The file opens the web console once');
    expect(unwrapped(run.written.err)).toMatch(/open this file in a browser on this machine: \S+open\.html/);
    await run.stop();
  }
});

test('ui --json prints one document and opens nothing', async () => {
  const { written, opened, stop } = started(['--json', '--allow-changes', '--payload']);
  await expect.poll(() => written.out, GENEROUS).toContain('\n');
  const document = JSON.parse(written.out) as { readonly redirectFile: string };
  expect(document).toMatchObject({
    stack: 'mailroom-dev',
    account: '111122223333',
    region: 'eu-west-1',
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/$/),
    allowsChanges: true,
    showsPayloads: true,
  });
  const [, section = ''] = (await readFile('docs/cli-json.md', 'utf8')).split('\n## ui\n');
  const [, documented = ''] = /```json\n([\s\S]*?)```/.exec(section) ?? [];
  expect(Object.keys(document)).toEqual(Object.keys(JSON.parse(documented)));
  expect(await readFile(document.redirectFile, 'utf8')).toContain('#token=');
  expect(await stop()).toBe(0);
  expect(opened).toEqual([]);
});

test('ui stops after the idle time, says so and exits with 0', async () => {
  const { code, written } = started(['--idle', '1s']);
  expect(await code).toBe(0);
  expect(unwrapped(written.err)).toContain('Stopped: the web console was not used for 1 s.');
});

test('ui --port refuses a port that is taken, and one that is not a port', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await expect.poll(() => other.address(), GENEROUS).not.toBeNull();
  const { port } = other.address() as AddressInfo;
  const taken = started(['--port', String(port)]);
  expect(await taken.code).toBe(2);
  expect(unwrapped(taken.written.err)).toContain(`--port is ${port}, which another program uses.`);
  other.close();
  const { code } = started(['--port', '65536']);
  expect(await code).toBe(2);
});

test('over SSH, and on Linux without a display, no browser is opened', () => {
  expect(hasBrowser({}, 'darwin')).toBe(true);
  expect(hasBrowser({}, 'win32')).toBe(true);
  expect(hasBrowser({}, 'linux')).toBe(false);
  expect(hasBrowser({ DISPLAY: ':0' }, 'linux')).toBe(true);
  expect(hasBrowser({ WAYLAND_DISPLAY: 'wayland-0' }, 'linux')).toBe(true);
  expect(hasBrowser({ WSL_DISTRO_NAME: 'Ubuntu' }, 'linux')).toBe(true);
  expect(hasBrowser({ DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 5 10.0.0.2 22' }, 'linux')).toBe(false);
  expect(hasBrowser({ SSH_TTY: '/dev/pts/0' }, 'darwin')).toBe(false);
});

test('over SSH the commands for the tunnel and for the file are printed', () => {
  const page = { port: '40123', file: '/tmp/mailroom-x/open.html' };
  expect(tunnelOf({}, page)).toBeUndefined();
  const { forward, copy } = tunnelOf({ SSH_CONNECTION: '10.0.0.1 5 10.0.0.2 22' }, page) ?? {};
  expect(forward).toMatch(/^ssh -N -L 40123:127\.0\.0\.1:40123 \S+@10\.0\.0\.2$/);
  expect(copy).toMatch(/^scp \S+@10\.0\.0\.2:\/tmp\/mailroom-x\/open\.html \.$/);
  const other = tunnelOf({ SSH_CONNECTION: '::1 5 fe80::1 2222' }, page);
  expect(other?.forward).toMatch(/^ssh -p 2222 -N -L 40123:127\.0\.0\.1:40123 \S+@fe80::1$/);
  expect(other?.copy).toMatch(/^scp -P 2222 .\S+@\[fe80::1\]:/);
});
