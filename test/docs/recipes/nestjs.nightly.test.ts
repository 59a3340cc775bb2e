import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { producerSettings } from '../../../lambdas/runtime/base/config.ts';
import {
  type Around,
  createConsumer,
  createOutbox,
  leased,
  type Outbox,
} from '../../../lambdas/runtime/index.ts';
import { lambdaContext, memoryTable, producerConfig } from '../../../testing/index.ts';
import { step } from '../../package/step.ts';
import { consumerConfig, rig, ThingHappened } from '../../support/runtime-rig.ts';
import { codeOf } from '../page-module.ts';
import { ROOT } from '../pages.ts';

interface Provider {
  readonly provide: unknown;
}
type OrdersService = new () => { place(order: { orderId: string; totalCents: number }): Promise<void> };
interface Nest {
  /** An application context with these providers. */
  start(providers: readonly object[]): Promise<{ get<T>(token: unknown): T; close(): Promise<void> }>;
}

const page = 'docs/recipes/nestjs.md';
const { outboxProvider } = await codeOf<{ outboxProvider: Provider }>(page, 'src/outbox-provider.ts');
const { ordersProvider, OrdersService } = await codeOf<{
  ordersProvider: Provider;
  OrdersService: OrdersService;
}>(page, 'src/orders-service.ts');

const { MessageContext, inMessageContext } = await codeOf<{
  MessageContext: new () => { readonly eventId: string | undefined };
  inMessageContext: Around;
}>(page, 'src/message-context.ts');

/** Nest as an app installs it. */
async function install(): Promise<Nest> {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.local', 'nest-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  const packages = ['@nestjs/core@11', '@nestjs/common@11', 'reflect-metadata', 'rxjs'];
  await step(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages]);
  const code = `import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
export function start(providers) {
  class Shop {}
  Module({ providers })(Shop);
  return NestFactory.createApplicationContext(Shop, { logger: false, abortOnError: false });
}`;
  await writeFile(join(folder, 'nest.mjs'), code);
  return (await import(pathToFileURL(join(folder, 'nest.mjs')).href)) as Nest;
}

test('Nest makes the outbox from the variables, and injects one of a test into the service', async () => {
  const nest = await install();
  const variables = {
    ...producerSettings.encode(producerConfig({ service: 'orders', publishes: ['OrderPlaced'] })),
    AWS_REGION: 'us-east-1',
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const real = await nest.start([outboxProvider, ordersProvider]);
  expect(real.get<Outbox>(outboxProvider.provide).commit).toBeTypeOf('function');
  expect(real.get(OrdersService)).toBeInstanceOf(OrdersService);
  await real.close();

  const table = memoryTable();
  const outbox = createOutbox({ config: producerConfig(), table });
  const app = await nest.start([{ provide: outboxProvider.provide, useValue: outbox }, ordersProvider]);
  await app.get<InstanceType<OrdersService>>(OrdersService).place({ orderId: '42', totalCents: 4200 });
  expect(table.items().map(({ SK }) => SK)).toEqual(['ORDER', expect.stringMatching(/^EVENT#/)]);
  await app.close();

  const { clock, memory, queue, telemetry, outbox: things, happened } = rig();
  const consumer = await nest.start([MessageContext]);
  const seen: unknown[] = [];
  const handle = leased(ThingHappened, async () => {
    seen.push(consumer.get<InstanceType<typeof MessageContext>>(MessageContext).eventId);
  });
  const around = inMessageContext;
  const deps = { config: consumerConfig, table: memory, queue, clock, telemetry, handlers: [handle], around };
  const events = await things.commit({ events: [1, 2].map(happened) });
  for (const detail of events) queue.send({ source: 'things', 'detail-type': detail.type, detail });
  await queue.deliver(createConsumer(deps), 10, lambdaContext({ clock }));
  expect(seen.toSorted()).toEqual(events.map(({ eventId }) => eventId).toSorted());
  await consumer.close();
});
