import type { SQSRecord } from 'aws-lambda';
import fc from 'fast-check';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { consumerConfig } from '../../support/runtime-rig.ts';
import { anyJson, anyText } from './arbitraries.ts';
import { seededBytes } from './runs.ts';

/** What a handler does with its event: the event says it. */
export const DEEDS = ['return', 'commit', 'emit', 'effect', 'already', 'throw', 'poison'] as const;
export type Deed = (typeof DEEDS)[number];

/** The state of a good message's inbox row before the batch. */
const PRIORS = ['none', 'FAILED', 'abandoned', 'PROCESSED', 'leased'] as const;

/** A message that any consumer must work on. */
interface GoodMessage {
  readonly kind: 'good';
  readonly type: string;
  readonly deed: Deed;
  readonly prior: (typeof PRIORS)[number];
  readonly receives: number;
  /** What its envelope holds besides: members that may be absent, and unknown ones. */
  readonly besides: Readonly<Record<string, unknown>>;
}

/** One record of a batch. */
export type Spec =
  | GoodMessage
  /** A good message before it is redelivered, as the same message or as another one. */
  | { readonly kind: 'again'; readonly of: number; readonly sameId: boolean }
  /** An envelope with one member that is wrong. */
  | { readonly kind: 'wrong'; readonly member: string; readonly value: unknown }
  | { readonly kind: 'garbage'; readonly body: unknown; readonly attributes: unknown }
  | { readonly kind: 'no record'; readonly record: unknown };

const good = (deeds: readonly Deed[]): fc.Arbitrary<Spec> =>
  fc.record({
    kind: fc.constant('good' as const),
    type: fc.constantFrom('Led', 'Swift'),
    deed: fc.constantFrom(...deeds),
    prior: fc.oneof(fc.constant('none' as const), fc.constantFrom(...PRIORS)),
    receives: fc.integer({ min: 1, max: 6 }),
    besides: fc.record(
      { traceId: anyJson, causationId: anyJson, sequence: anyJson, unknown: anyJson },
      { requiredKeys: [] },
    ),
  });

const anyAttributes = fc.oneof(anyJson, fc.record({ ApproximateReceiveCount: anyJson }));

const wrongs = fc.oneof(
  fc.tuple(
    fc.constantFrom('type', 'eventId', 'occurredAt', 'aggregateId', 'correlationId'),
    fc.constant(null),
  ),
  fc.tuple(fc.constant('type'), anyText),
  fc.tuple(fc.constant('version'), fc.constantFrom<unknown>(0, -1, 1, 1.5, 3, 2 ** 53, '2')),
  fc.tuple(fc.constant('data'), anyJson),
);

/** A batch of records of any shape: good messages that do these deeds, and anything around them. */
export function batches(deeds: readonly Deed[]): fc.Arbitrary<readonly Spec[]> {
  const spec = fc.oneof(
    { weight: 4, arbitrary: good(deeds) },
    fc.record({ kind: fc.constant('again' as const), of: fc.nat({ max: 12 }), sameId: fc.boolean() }),
    wrongs.map(([member, value]) => ({ kind: 'wrong' as const, member, value })),
    fc.record({
      kind: fc.constant('garbage' as const),
      body: fc.oneof(anyText, anyJson),
      attributes: anyAttributes,
    }),
    fc.record({ kind: fc.constant('no record' as const), record: anyJson }),
  );
  return fc.array(spec, { maxLength: 10, size: 'max' });
}

/** One record as it is handed over, and what is known of it. */
export interface Handed {
  readonly spec: Spec;
  readonly record: unknown;
  /** The event in it, where there is a good one. */
  readonly eventId?: string;
}

/** The records of a batch, and the inbox rows before it. */
export function batchOf(specs: readonly Spec[], now: number): { handed: Handed[]; rows: Item[] } {
  const handed: Handed[] = [];
  const rows: Item[] = [];
  for (const [i, spec] of specs.entries()) {
    const messageId = `message-${i}`;
    const eventId = mintEventId(now, 2, seededBytes(i));
    if (spec.kind === 'good') {
      handed.push({ spec, eventId, record: goodRecord(spec, eventId, messageId, now) });
      const row = priorRow(spec, eventId, now);
      if (row !== undefined) rows.push(row);
    } else if (spec.kind === 'again') {
      const first = handed[spec.of];
      if (first?.eventId === undefined) continue;
      const record = { ...(first.record as SQSRecord), ...(spec.sameId ? {} : { messageId }) };
      handed.push({ ...first, record });
    } else if (spec.kind === 'wrong') {
      const detail = { ...envelope('Led', 'return', eventId, now), [spec.member]: spec.value };
      handed.push({ spec, record: { ...frame(messageId), body: JSON.stringify({ detail }) } });
    } else if (spec.kind === 'garbage') {
      handed.push({ spec, record: { ...frame(messageId), body: spec.body, attributes: spec.attributes } });
    } else {
      handed.push({ spec, record: spec.record });
    }
  }
  return { handed, rows };
}

function frame(messageId: string) {
  return { messageId, receiptHandle: `receipt-${messageId}`, attributes: {}, eventSource: 'aws:sqs' };
}

function goodRecord(spec: GoodMessage, eventId: string, messageId: string, now: number) {
  return {
    ...frame(messageId),
    attributes: { ApproximateReceiveCount: String(spec.receives) },
    body: JSON.stringify({
      source: consumerConfig.service,
      'detail-type': spec.type,
      detail: { ...spec.besides, ...envelope(spec.type, spec.deed, eventId, now) },
    }),
  };
}

function envelope(type: string, deed: Deed, eventId: string, now: number) {
  return {
    eventId,
    type,
    version: 2,
    aggregateType: 'Thing',
    aggregateId: '1',
    occurredAt: now,
    correlationId: 'chain',
    data: { deed },
  };
}

function priorRow(spec: GoodMessage, eventId: string, now: number): Item | undefined {
  if (spec.prior === 'none') return undefined;
  const row = { ...inboxKey(consumerConfig.consumer, eventId), schema: 1, fence: 'before', attempts: 1 };
  switch (spec.prior) {
    case 'abandoned':
      return { ...row, status: 'PROCESSING', leaseUntil: now - 1, endsBy: now - 1 };
    case 'leased':
      return { ...row, status: 'PROCESSING', leaseUntil: now + 10_000, endsBy: now + 20_000 };
    default:
      return { ...row, status: spec.prior };
  }
}
