import { randomUUID } from 'node:crypto';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import type { StoredOutboxRow } from '../../lambdas/runtime/store/stored-envelope.ts';
import { listenTo } from '../local/support/bus-listener.ts';
import { eventually } from '../local/support/eventually.ts';
import { mailroom } from '../local/support/mailroom.ts';
import { documents, eventsWith, get, put, tableName } from '../local/support/order-system.ts';
import { outboxOf } from '../local/support/unpublished-order.ts';

/** A type that no consumer has; in an account its queues are deployed, see test/account/verified-system.ts. */
const type = 'ParcelForged';
const schema = z.object({ run: z.string(), n: z.int() });
const definition = { type, version: 1, aggregateType: 'Parcel', schema };
const Genuine = defineEvent({ ...definition, source: 'orders' });
const Forged = defineEvent({ ...definition, source: 'bank' });

it('the deployed relay never publishes a row with an undeclared source, but publishes its neighbors', async () => {
  const run = randomUUID();
  const [genuine, forged] = await Promise.all([listenTo(Genuine), listenTo(Forged)]);
  const entries = async (event: typeof Genuine, count: number): Promise<StoredOutboxRow[]> => {
    const drafts = Array.from({ length: count }, (_, n) =>
      event.create({ aggregateId: run, data: { run, n } }),
    );
    return (await outboxOf(event.source).entries(drafts)).map(({ Put }) => Put.Item);
  };
  // Due at once, so that a sweep that would publish it does.
  const lies = (await entries(Forged, 10)).map((row) => ({ ...row, leaseUntil: Date.now() - 10_000 }));
  try {
    await Promise.all(lies.map(put));
    await Promise.all((await entries(Genuine, 30)).map(put));
    await eventually(async () => {
      const rows = (await eventsWith(run)).map(({ row }) => row).filter(({ source }) => source === 'orders');
      expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => 'PUBLISHED'));
    });
    await eventually(async () =>
      expect(new Set((await genuine.heard()).map(({ eventId }) => eventId)).size).toBe(30),
    );

    // Every minute in which they can be, by the deployed function; it counts them as waiting.
    const swept = await mailroom('sweep', '--since', '10m', '--json');
    expect(swept.json().pending).toBeGreaterThanOrEqual(lies.length);
    for (const { PK, SK, leaseUntil } of lies) {
      expect(await get({ PK, SK })).toMatchObject({
        status: 'PENDING',
        attempts: 0,
        source: 'bank',
        leaseUntil,
      });
    }
    expect(await forged.heard()).toEqual([]);

    const eventId = lies[0]?.SK.slice('EVENT#'.length) ?? '';
    const why = await mailroom('why', eventId, '--json');
    expect(why.json().verdict).toMatchObject({
      state: 'undeclared',
      text: expect.stringContaining('Declared sources: inventory, mailroom, orders, payments.'),
    });
  } finally {
    for (const { PK, SK } of lies)
      await documents.send(new DeleteCommand({ TableName: tableName, Key: { PK, SK } }));
    await Promise.all([genuine.remove(), forged.remove()]);
  }
});
