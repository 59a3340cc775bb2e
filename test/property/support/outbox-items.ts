import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { anyText } from './arbitraries.ts';
import { seededBytes } from './runs.ts';

export type Attributes = Record<string, AttributeValue>;

/** Numbers as DynamoDB writes them: 38 digits. */
const numerals = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map(String),
  fc.constantFrom('0', '-1', '9007199254740993'),
);
/** Those that are neither a JavaScript number nor a bigint. */
const hugeNumerals = fc.constantFrom('9007199254740993.5', '-123456789012345678901234567890.5', '1e125');

const names = fc.oneof(
  anyText.filter((name) => name !== '__proto__' && name !== 'constructor'),
  fc.constantFrom('toString', 'valueOf', 'toJSON', 'length', 'M', 'S'),
);

/** Any value of DynamoDB's ten types that the table in memory can hold. */
export const storable = attributes(numerals, names);

/** Any value of DynamoDB's ten types. */
export const anyAttribute = attributes(fc.oneof(numerals, hugeNumerals), anyText);

function attributes(numeral: fc.Arbitrary<string>, name: fc.Arbitrary<string>): fc.Arbitrary<AttributeValue> {
  return fc.letrec<{ value: AttributeValue; leaf: AttributeValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small', withCrossShrink: true },
      tie('leaf'),
      fc.array(tie('value'), { maxLength: 3 }).map((L) => ({ L })),
      fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map((M) => ({ M: Object.fromEntries(M) })),
      // Of which String() makes nothing.
      tie('leaf').map((value) => ({ M: { toString: value } })),
    ),
    leaf: fc.oneof(
      anyText.map((S) => ({ S })),
      numeral.map((N) => ({ N })),
      fc.boolean().map((BOOL) => ({ BOOL })),
      fc.constant<AttributeValue>({ NULL: true }),
      fc.uint8Array({ maxLength: 8 }).map((B) => ({ B })),
      fc.uniqueArray(anyText, { minLength: 1, maxLength: 3 }).map((SS) => ({ SS })),
      fc.uniqueArray(fc.integer().map(String), { minLength: 1, maxLength: 3 }).map((NS) => ({ NS })),
    ),
  })).value;
}

/** The name of an attribute that is not a key's. */
export const attributeName = anyText.filter(
  (name) => !['', 'PK', 'SK', '__proto__', 'constructor'].includes(name),
);

/** The attributes of an outbox row, as a producer writes them, beside its key. */
const NAMES = [
  'schema',
  'status',
  'leaseUntil',
  'producerUntil',
  'attempts',
  'source',
  'type',
  'envelope',
  'traceId',
] as const;

/** Changes of a row: some attributes gone, or with another value in their place. */
export function edits(value: fc.Arbitrary<AttributeValue>): fc.Arbitrary<Attributes> {
  return fc.dictionary(
    fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...NAMES) }, { weight: 1, arbitrary: attributeName }),
    fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 5, arbitrary: value }),
    { minKeys: 1, maxKeys: 4, noNullPrototype: true },
  ) as fc.Arbitrary<Attributes>;
}

/** What DynamoDB stores, as values that can be written: with numbers that JavaScript would round, whole. */
export function asItem(attributes: Attributes): Item {
  return unmarshall(attributes, { wrapNumbers: true });
}

/** An outbox row as a producer wrote it, by way of an id that is the same for the same seed. */
export function outboxRow(now: number, seed: number, change: Partial<OutboxRow> = {}): OutboxRow {
  const eventId = mintEventId(now, 2, seededBytes(seed));
  return {
    ...outboxKeyOf(eventId),
    schema: 1,
    status: 'PENDING',
    leaseUntil: now + 30_000,
    attempts: 0,
    source: 'things',
    type: 'ThingHappened',
    envelope: JSON.stringify({ eventId, type: 'ThingHappened', data: { seed } }),
    ...change,
  };
}

/** The row with its edits, as DynamoDB stores it. */
export function edited(row: OutboxRow, change: Attributes): Attributes {
  const whole: Record<string, AttributeValue | undefined> = { ...marshall(row), ...change };
  return Object.fromEntries(
    Object.entries(whole).filter((entry): entry is [string, AttributeValue] => entry[1] !== undefined),
  );
}
