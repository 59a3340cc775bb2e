import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord, AttributeValue as StreamAttribute } from 'aws-lambda';
import { itemBytes } from '../lambdas/runtime/store/item-size.ts';
import { type Attributes, equal } from './attribute-values.ts';
import { type Store, toItem } from './memory-store.ts';

/** The first sequence number; DynamoDB's have 21 digits or more. */
const FIRST_SEQUENCE_NUMBER = 100_000_000_000_000_000_000n;

/** The stream of one in-memory table, as a Lambda function receives it. */
export interface MemoryStream {
  readonly records: readonly DynamoDBRecord[];
  /** Adds the record of one change; a write without a change adds none, as in DynamoDB. */
  add(change: {
    readonly store: Store;
    readonly before: Attributes | undefined;
    readonly after: Attributes | undefined;
    readonly now: number;
    /** Set if TTL deleted the item. @default false */
    readonly expired?: boolean;
  }): void;
}

/** Creates an empty stream with the view type NEW_IMAGE. */
export function createStream(): MemoryStream {
  const made: DynamoDBRecord[] = [];
  let waiting: (() => DynamoDBRecord)[] = []; // created on first read
  return {
    get records() {
      made.push(...waiting.map((make) => make()));
      waiting = [];
      return made;
    },
    add: ({ store, before, after, now, expired = false }) => {
      const subject = after ?? before;
      if (!subject || equal(before && { M: before }, after && { M: after })) return;
      const number = made.length + waiting.length;
      const sequence = FIRST_SEQUENCE_NUMBER + BigInt(number);
      waiting.push(() => ({
        eventID: `${store.tableName}-${number + 1}`,
        eventName: before === undefined ? 'INSERT' : after === undefined ? 'REMOVE' : 'MODIFY',
        eventVersion: '1.1',
        eventSource: 'aws:dynamodb',
        awsRegion: 'us-east-1',
        eventSourceARN: `arn:aws:dynamodb:us-east-1:000000000000:table/${store.tableName}/stream/memory`,
        dynamodb: {
          ApproximateCreationDateTime: Math.floor(now / 1000),
          Keys: image(store.keyOf(subject)),
          ...(after && { NewImage: image(after) }),
          SequenceNumber: String(sequence),
          SizeBytes: itemBytes(toItem(after ?? store.keyOf(subject))),
          StreamViewType: 'NEW_IMAGE',
        },
        ...(expired && { userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' } }),
      }));
    },
  };
}

/** Lambda delivers binaries as base64 text. */
function image(item: Attributes): Record<string, StreamAttribute> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, inJson(value)]));
}

function inJson(value: AttributeValue): StreamAttribute {
  if (value.B) return { B: base64(value.B) };
  if (value.BS) return { BS: value.BS.map(base64) };
  if (value.L) return { L: value.L.map(inJson) };
  if (value.M) return { M: image(value.M) };
  return structuredClone(value) as StreamAttribute;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
