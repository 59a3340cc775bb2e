import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, expect, test, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createOncePerKey } from '../../../lambdas/runtime/http.ts';
import { inboxScenes } from './inbox-scenes.ts';
import { outboxScenes } from './outbox-scenes.ts';
import { NOW, onlyOne } from './stored-shape-rig.ts';

/**
 * The page of stored items, made by the real runtime: the page is true, and the shape frozen. Red means that rows which are there
 * already have another shape than those that are written now. Decide: see docs/versioning.md, then raise `SCHEMA` in
 * lambdas/runtime/store/row-schema.ts if old rows read otherwise, and only then renew the page.
 */
const PAGE = '../../../docs/stored-items.md';

const HEAD = `# Stored items

Each item that Mailroom stores, as the runtime writes it; [the data model](data-model.md) explains the attributes. All examples
show one event, and all random tokens are equal. Sets are shown as lists.`;

const SECTIONS = { 'Outbox, relay and operations': outboxScenes, Inbox: inboxScenes };

/** The record of a request at the example's orders API: Powertools' shape, under our key. */
async function httpRequestKey(): Promise<unknown> {
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  const oncePerKey = createOncePerKey({ client, tableName: 'Mailroom', operation: 'orders' });
  await oncePerKey({
    idempotencyKey: 'key-1',
    payload: { customerId: 'alice', items: [{ sku: 'coffee', quantity: 2, unitPrice: 1_250 }] },
    remainingMs: 10_000,
    first: async () => '{"orderId":"42"}',
    earlier: async () => undefined,
  });
  return onlyOne(aws.items('Mailroom'), 'REQUEST#');
}

afterEach(() => {
  vi.useRealTimers();
});

test('docs/stored-items.md shows every item as the runtime stores it', async () => {
  const parts = [HEAD];
  for (const [title, scenes] of Object.entries(SECTIONS)) {
    parts.push(`## ${title}`);
    for (const [heading, scene] of Object.entries(scenes))
      parts.push(`### ${heading}`, `\`\`\`json\n${JSON.stringify(await scene(), null, 2)}\n\`\`\``);
  }
  await expect(`${parts.join('\n\n')}\n`).toMatchFileSnapshot(PAGE);
});

test("the example's orders API stores a request in the shape of Powertools, and no `schema`", async () => {
  expect(await httpRequestKey()).toEqual({
    PK: 'REQUEST#key-1',
    SK: 'orders#Nk141378j6/0pCek7sqMb5DDV7mbSJM3pIctfqcUY5s=',
    status: 'COMPLETED',
    leaseUntil: 1795223350120,
    expiresAt: 1795309740,
    requestHash: 'zuUD68kWvYo2l5nXc1BH2TosQQuHIhWPVOrUuiITyfU=',
    answer: '{"orderId":"42"}',
  });
});
