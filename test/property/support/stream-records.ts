import { marshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { anyJson, anyText } from './arbitraries.ts';
import { type Attributes, anyAttribute, asItem, edited, edits, outboxRow, storable } from './outbox-items.ts';

/** A row as a producer wrote it, some time ago. */
interface GoodRecord {
  readonly kind: 'good';
  readonly ageMs: number;
  /** True if another publisher has claimed it since. */
  readonly claimed: boolean;
  /** What the record says of when it was made. @default when the row was written, in seconds */
  readonly createdAt?: unknown;
}

/** One record of a batch. */
export type Spec =
  | GoodRecord
  /** A row that was edited by hand, or that no producer wrote; it may be gone from the table. */
  | { readonly kind: 'edited'; readonly change: Attributes; readonly stored: boolean }
  | { readonly kind: 'image'; readonly image: unknown }
  | { readonly kind: 'no record'; readonly record: unknown }
  /** A record before it, a second time. */
  | { readonly kind: 'again'; readonly of: number }
  /** A good row before it, copied to another partition. */
  | { readonly kind: 'copy'; readonly of: number; readonly PK: string };

export const goodRecord: fc.Arbitrary<GoodRecord> = fc.record({
  kind: fc.constant('good' as const),
  ageMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60_000 })),
  claimed: fc.constant(false),
});

/** So old that it is claimed before it is published. */
const claimedRecord: fc.Arbitrary<GoodRecord> = fc.record({
  kind: fc.constant('good' as const),
  ageMs: fc.integer({ min: 10_000, max: 60_000 }),
  claimed: fc.constant(true),
});

const editedRecord = fc.oneof(
  fc.record({ change: edits(storable), stored: fc.constant(true) }),
  fc.record({ change: edits(anyAttribute), stored: fc.constant(false) }),
);

/** A record of any shape. */
export const anyRecord: fc.Arbitrary<Spec> = fc.oneof(
  { weight: 5, arbitrary: goodRecord },
  { weight: 1, arbitrary: claimedRecord },
  {
    weight: 1,
    arbitrary: fc.tuple(goodRecord, anyJson).map(([record, createdAt]) => ({ ...record, createdAt })),
  },
  {
    weight: 3,
    arbitrary: editedRecord.map((edit) => ({ kind: 'edited' as const, ...edit })),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('image' as const),
      image: fc.oneof(anyJson, fc.dictionary(anyText, anyAttribute)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('no record' as const), record: anyJson }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('again' as const), of: fc.nat({ max: 20 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('copy' as const),
      of: fc.nat({ max: 20 }),
      PK: fc.oneof(anyText, fc.constantFrom('OUTBOX#2025-11-21T01:09#00', 'ORDER#1')),
    }),
  },
);

/** A batch: its records, the good rows among them with their sequence numbers, and all rows to be stored before it. */
export interface Batch {
  readonly records: unknown[];
  readonly good: { readonly row: OutboxRow; readonly sequenceNumber: string; readonly claimed: boolean }[];
  readonly stored: Item[];
}

/** Makes a batch of these records. */
export function batchOf(specs: readonly Spec[], now: number): Batch {
  const batch: Batch = { records: [], good: [], stored: [] };
  const { records, good, stored } = batch;
  for (const [i, spec] of specs.entries()) {
    const sequenceNumber = String(1_000 + records.length);
    if (spec.kind === 'again') {
      if (records.length > 0) records.push(records[spec.of % records.length]);
    } else if (spec.kind === 'copy') {
      const original = good[spec.of % good.length];
      if (original === undefined) continue;
      const row = { ...original.row, PK: spec.PK };
      if (spec.PK !== '') stored.push({ ...row });
      records.push(insert(sequenceNumber, marshall(row), Math.floor(now / 1_000)));
    } else if (spec.kind === 'no record') {
      records.push(spec.record);
    } else if (spec.kind === 'image') {
      records.push(insert(sequenceNumber, spec.image, undefined));
    } else {
      const writtenAt = spec.kind === 'good' ? now - spec.ageMs : now;
      const row = outboxRow(writtenAt, i);
      const image = spec.kind === 'good' ? marshall(row) : edited(row, spec.change);
      if (spec.kind === 'good') {
        good.push({ row, sequenceNumber, claimed: spec.claimed });
        stored.push({ ...row, ...(spec.claimed ? { leaseUntil: now + 30_000 } : {}) });
      } else if (spec.stored) stored.push(asItem(image));
      const createdAt = 'createdAt' in spec ? spec.createdAt : Math.floor(writtenAt / 1_000);
      records.push(insert(sequenceNumber, image, createdAt));
    }
  }
  return batch;
}

function insert(SequenceNumber: string, NewImage: unknown, ApproximateCreationDateTime: unknown) {
  return {
    eventID: `event-${SequenceNumber}`,
    eventName: 'INSERT',
    dynamodb: { ApproximateCreationDateTime, NewImage, SequenceNumber },
  };
}
