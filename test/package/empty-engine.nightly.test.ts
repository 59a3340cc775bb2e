import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../localstack/free-port.ts';
import { identify } from '../../localstack/health.ts';
import { addMailroom, cacheWithEngine, deployTo, invoke, type StartedEngine } from './local-engine.ts';
import { step } from './step.ts';
import { linkIn, makeApp } from './stranger.ts';
import { type Packages, pack, packageFolder } from './tarball.ts';

let packages: Packages;
let folder = '';

beforeAll(async () => {
  folder = await packageFolder();
  packages = await pack(folder);
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

test("a user's app runs on the empty engine that mailroom local starts, the doctor misses only alarms, and why 42 finds its order beside another Mailroom", async () => {
  const app = join(folder, 'local', 'shop');
  await makeApp(app, 'ESM');
  await linkIn(app, packages);
  const cache = await cacheWithEngine(join(folder, 'cache'));
  const port = String(await freePort());
  const mailroom = async (args: string[], variables: Readonly<Record<string, string>> = cache) =>
    await step(app, 'npx', ['--no', '--', 'cdk-mailroom', ...args], variables);
  const engine = JSON.parse(await mailroom(['local', '--port', port, '--json'])) as StartedEngine;
  try {
    expect(engine.startedHere).toBe(true);
    await deployTo(app, engine);
    // It ends with 1: the app of the guide has no alarms.
    const doctor = async () => await mailroom(['doctor'], engine.environment).catch(String);
    await vi.waitFor(
      async () => expect(await doctor()).toMatch(/\n1 problem in .*\n.*no alarm watches ShopStack/),
      { timeout: 300_000, interval: 1_000 },
    );
    await addMailroom(engine, 'OtherStack');
    await invoke(engine, 'ShopStack-Orders', { orderId: '42', totalCents: 4200 });
    await vi.waitFor(
      async () =>
        expect(await mailroom(['why', '42'], engine.environment)).toMatch(/^processed +OrderPlaced/),
      { timeout: 300_000, interval: 1_000 },
    );
  } finally {
    expect(JSON.parse(await mailroom(['local', 'stop', '--port', port, '--json']))).toMatchObject({
      stopped: true,
    });
  }
  expect(await identify(engine.endpoint)).toBe('nothing');
  expect(await mailroom(['local', 'stop', '--port', port])).toBe('');
});
