import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY, unsettledKey } from '../../../lambdas/runtime/store/keys.ts';
import { outboxPartition } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { anyText } from './arbitraries.ts';
import {
  type Attributes,
  asItem,
  attributeName,
  edited,
  edits,
  outboxRow,
  storable,
} from './outbox-items.ts';

/** How long the system has been running when the sweep comes. */
export const RUNNING_MINUTES = 30;

/** Something in the table. Minutes and days are those before the sweep. */
export type Content =
  | { readonly kind: 'good'; readonly minutes: number; readonly leased: boolean }
  /** Older than what the sweep reads by itself: only its minute's pointer leads to it. */
  | { readonly kind: 'unsettled'; readonly days: number }
  | { readonly kind: 'edited'; readonly minutes: number; readonly change: Attributes }
  /** An item of any shape among pointers. */
  | { readonly kind: 'pointer'; readonly PK: string; readonly SK: string; readonly item: Attributes }
  /** An item of any shape among outbox rows. */
  | { readonly kind: 'row'; readonly minutes: number; readonly SK: string; readonly item: Attributes }
  /** The state row, with another thing where it has a number. */
  | { readonly kind: 'state'; readonly change: Attributes };

const minutes = fc.integer({ min: 2, max: RUNNING_MINUTES - 1 });
const sortKey = fc
  .oneof(
    anyText,
    anyText.map((text) => `EVENT#${text}`),
    fc.constant('2026-01-01T00:00'),
  )
  .filter((text) => text !== '');
const anyItem = fc.dictionary(
  fc.oneof(fc.constantFrom('status', 'leaseUntil', 'token', 'schema'), attributeName),
  fc.oneof(storable, fc.constant<AttributeValue>({ S: 'PENDING' })),
  { maxKeys: 4, noNullPrototype: true },
);
const noNumber = storable.filter((value) => value.N === undefined);

const leased = fc.oneof(
  { weight: 3, arbitrary: fc.constant(false) },
  { weight: 1, arbitrary: fc.constant(true) },
);
export const goodContent = fc.record({ kind: fc.constant('good' as const), minutes, leased });
const unsettled = fc.record({
  kind: fc.constant('unsettled' as const),

  days: fc.integer({ min: 1, max: 30 }),
});

/** Anything that a table may hold. */
export const anyContent: fc.Arbitrary<Content> = fc.oneof(
  { weight: 4, arbitrary: goodContent },
  { weight: 2, arbitrary: unsettled },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('edited' as const), minutes, change: edits(storable) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pointer' as const),
      PK: fc.constantFrom('SWEEP#00', 'SWEEP#01', 'DEAD#00', 'SWEEP'),
      SK: sortKey,
      item: anyItem,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('row' as const), minutes, SK: sortKey, item: anyItem }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('state' as const),
      change: fc.record(
        { sweptTo: noNumber, shards: noNumber },
        { requiredKeys: [] },
      ) as fc.Arbitrary<Attributes>,
    }),
  },
);

/** The items of a table, and the good rows among them. */
export interface Contents {
  readonly items: Item[];
  readonly good: { readonly row: OutboxRow; readonly due: boolean }[];
}

/** The items that these contents are, at the time of the sweep. */
export function contentsOf(contents: readonly Content[], now: number): Contents {
  const items: Item[] = [];
  const good: { row: OutboxRow; due: boolean }[] = [];
  const ago = (minute: number) => now - minute * MINUTE_MS;
  for (const [i, content] of contents.entries()) {
    switch (content.kind) {
      case 'good': {
        const bornAt = ago(content.minutes);
        const leaseUntil = content.leased ? now + 10 * MINUTE_MS : bornAt + 30_000;
        good.push({ row: outboxRow(bornAt, i, { leaseUntil }), due: !content.leased });
        break;
      }
      case 'unsettled': {
        const bornAt = ago(content.days * 24 * 60);
        const row = outboxRow(bornAt, i);
        good.push({ row, due: true });
        items.push({
          ...unsettledKey(Number(row.PK.slice(-2)), minuteOf(bornAt)),
          schema: 1,
          token: 'token',
        });
        break;
      }
      case 'edited':
        items.push(asItem(edited(outboxRow(ago(content.minutes), i), content.change)));
        break;
      case 'pointer':
        items.push({ ...asItem(content.item), PK: content.PK, SK: content.SK });
        break;
      case 'row': {
        const PK = outboxPartition(minuteOf(ago(content.minutes)), content.minutes % 2);
        items.push({ ...asItem(content.item), PK, SK: content.SK });
        break;
      }
      case 'state':
        items.push({ ...asItem(content.change), ...SWEEP_STATE_KEY });
    }
  }
  // The good ones last, so that nothing else takes their place.
  return { items: [...items, ...good.map(({ row }) => ({ ...row }))], good };
}
