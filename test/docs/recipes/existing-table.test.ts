import { expect, test } from 'vitest';
import type { AnyEventDefinition, Handler, Table } from '../../../lambdas/runtime/index.ts';
import { explore } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

const page = 'docs/recipes/existing-table.md';
const { chargeIfNotCharged } = await codeOf<{
  chargeIfNotCharged(table: Table, charge: () => Promise<string>): Handler;
}>(page, 'src/charge-if-not-charged.ts');
const { OrderPlaced } = await codeOf<{ OrderPlaced: AnyEventDefinition }>(page, 'src/events.ts');

const event = OrderPlaced.create({ aggregateId: '42', data: { orderId: '42', totalCents: 4200 } });
const key = { PK: 'PAYMENT#42', SK: 'PAYMENT' };
const charging = { event, world: () => ({ charges: 0 }), deviations: 1 };

function handler({ table }: { table: Table }, world: { charges: number }): Handler {
  return chargeIfNotCharged(table, async () => {
    world.charges += 1;
    return 'charge-1';
  });
}

test('an order charged by the old code is not charged again, whatever crashes', async () => {
  await explore(handler, {
    ...charging,
    items: [{ ...key, chargeId: 'old' }],
    check: (table, world) => {
      expect(world.charges).toBe(0);
      expect(table.item(key)).toMatchObject({ chargeId: 'old' });
    },
  });
});

test('an order not charged by the old code is charged, whatever crashes', async () => {
  await explore(handler, {
    ...charging,
    check: (table, world) => {
      expect(world.charges).toBeGreaterThan(0);
      expect(table.item(key)).toMatchObject({ chargeId: 'charge-1' });
    },
  });
});
