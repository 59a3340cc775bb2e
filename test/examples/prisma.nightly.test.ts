import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PrismaQueryable, prisma } from '../../lambdas/runtime/postgres/orm-databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { ROOT } from '../docs/pages.ts';
import { step } from '../package/step.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from '../postgres/support/rig.ts';

type Tx = PrismaQueryable & { order: { create(row: { data: { id: string } }): Promise<unknown> } };
type Client = Parameters<typeof prisma<Tx>>[0] & { $disconnect(): Promise<void> };

/** Prisma 7 runs its queries on the driver adapter for `pg`. */
const PACKAGES = ['@prisma/client@7', '@prisma/adapter-pg@7', 'prisma@7'];
const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "../generated"
}
datasource db {
  provider = "postgresql"
}
model Order {
  id String @id
  @@map("orders")
}
`;

let folder = '';
let rig: Rig;
let client: Client;

beforeAll(async () => {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  folder = await mkdtemp(join(ROOT, '.local', 'prisma-'));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  await step(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...PACKAGES]);
  await mkdir(join(folder, 'prisma'));
  await writeFile(join(folder, 'prisma', 'schema.prisma'), SCHEMA);
  // Only migrations run the schema engine, which is otherwise downloaded.
  const noEngine = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  await step(
    folder,
    'npx',
    ['--no', '--', 'prisma', 'generate', '--schema', 'prisma/schema.prisma'],
    noEngine,
  );
  rig = await startRig('prisma');
  await rig.pool.query('CREATE TABLE orders (id text PRIMARY KEY)');
  await writeFile(
    join(folder, 'client.ts'),
    `import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from './generated/client.ts';
export const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: '${rig.server.url}' }) });`,
  );
  ({ client } = (await import(pathToFileURL(join(folder, 'client.ts')).href)) as { client: Client });
});
afterAll(async () => {
  await client?.$disconnect();
  await rig?.close();
  await rm(folder, { recursive: true, force: true });
});

const orders = async () => (await rig.rows('SELECT id FROM orders')).map(({ id }) => id);

test("an order of Prisma's client and its event are committed together and published, or neither", async () => {
  const database = prisma<Tx>(client);
  const telemetry = memoryTelemetry();
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
  const [event] = await outbox.commit(async (tx) => {
    await tx.order.create({ data: { id: '1' } });
    return [placed(1)];
  });
  const refused = outbox.commit(async (tx) => {
    await tx.order.create({ data: { id: '2' } });
    throw new Error('refused');
  });
  await expect(refused).rejects.toThrow('refused');
  expect(await orders()).toEqual(['1']);

  const bus = memoryBus();
  const pass = await createPostgresRelay({ config: relayConfig(), database, bus, telemetry }).pass();
  expect(telemetry.lines()).toEqual([]);
  expect(pass).toEqual({ claimed: 1, published: 1, failed: false });
  expect(bus.published().map(({ detail }) => JSON.parse(detail))).toEqual([event]);
});
