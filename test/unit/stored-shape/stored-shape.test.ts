import { readFileSync } from 'node:fs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createOncePerKey } from '../../../lambdas/runtime/http.ts';
import { codeBlocks } from '../../docs/code-blocks.ts';
import { inboxScenes } from './inbox-scenes.ts';
import { outboxScenes } from './outbox-scenes.ts';
import { NOW, onlyOne } from './stored-shape-rig.ts';

/**
 * What is stored, made by the real runtime, against the JSON of docs/data-model.md: the page is true, and the shape frozen.
 * Red means that rows which are there already have another shape than those that are written now. Decide: see
 * docs/versioning.md, then raise `SCHEMA` in lambdas/runtime/store/rows.ts if old rows read otherwise, and change the page.
 */
const PAGE = 'docs/data-model.md';

const shown = new Map(
  codeBlocks(readFileSync(PAGE, 'utf8')).flatMap(({ language, heading, code }) =>
    language === 'json' ? [[heading, JSON.parse(code) as object] as const] : [],
  ),
);

/** The first example of outbox rows is whole; the later ones show only what differs from it. */
const FIRST: Readonly<Record<string, string>> = { 'Outbox row': 'Outbox row: PENDING' };

/** The whole item of each heading. */
const documented = new Map(
  [...shown].map(([heading, item]) => {
    const first = FIRST[heading.split(':')[0] ?? ''];
    return [heading, first === undefined ? item : { ...shown.get(first), ...item }] as const;
  }),
);

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

const scenes = { ...outboxScenes, ...inboxScenes };

afterEach(() => {
  vi.useRealTimers();
});

describe('docs/data-model.md shows, byte for byte,', () => {
  test('every item that has a scene here, and no other', () => {
    expect([...documented.keys()].sort()).toEqual(Object.keys(scenes).sort());
  });

  test.each(Object.entries(scenes))('%s', async (heading, scene) => {
    expect(await scene(), `"${heading}" of ${PAGE}`).toEqual(documented.get(heading));
  });
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
