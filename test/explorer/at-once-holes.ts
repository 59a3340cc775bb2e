import type { DynamoDBRecord } from 'aws-lambda';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { allAccepted, type Hole, markFirst } from './relay-holes.ts';
import type { Tamper } from './relay-world.ts';

const MARGIN_MS = 2_000;

/** The rules of a producer that publishes at once, and of the stream relay beside it. */
export const AT_ONCE_HOLES: readonly Hole<Tamper>[] = [
  {
    rule: 'a producer publishes first and marks second',
    where: 'publish at once, and the stream',
    needs: { faults: 1, deviations: 1 },
    tamper: { bus: (bus, real) => markFirst(bus, real) },
    found: /is lost: PUBLISHED, but the bus never took it/,
  },
  {
    rule: "a producer reads every entry's own result",
    where: 'publish at once, and the stream',
    needs: { faults: 1, deviations: 1 },
    tamper: { bus: allAccepted },
    found: /is lost: PUBLISHED, but the bus never took it/,
  },
  {
    rule: 'a row says until when its producer may publish it',
    where: 'publish at once, and the stream',
    needs: { deviations: 1 },
    tamper: { records: (records) => records.map((record) => withTurnEnd(record, () => undefined)) },
    found: /publishes under the lease of the stream|published 2 times, without a fault/,
  },
  {
    rule: "the stream relay claims a row only after its producer's turn",
    where: 'publish at once, and the stream',
    needs: { deviations: 1 },
    tamper: { records: (records) => records.map((record) => withTurnEnd(record, () => 0)) },
    found: /publishes under the lease of|published 2 times, without a fault/,
  },
  {
    rule: "a producer's turn is over only a clock margin after its end",
    where: 'publish at once by a clock that is behind',
    needs: { deviations: 1 },
    tamper: { records: (records) => records.map((record) => withTurnEnd(record, (end) => end - MARGIN_MS)) },
    found: /publishes under the lease of|published 2 times, without a fault/,
  },
  {
    rule: 'a producer publishes only during its turn',
    where: 'publish at once, and the stream',
    needs: { stalls: 1, deviations: 1 },
    tamper: { written: (row) => ({ ...row, producerUntil: Number(row.producerUntil) + HOUR_MS }) },
    found: /publishes under the lease of|publishes .* after its lease|published 2 times/,
  },
];

/** The record with another end of its producer's turn; without any if that is `undefined`. */
function withTurnEnd(record: DynamoDBRecord, change: (end: number) => number | undefined): DynamoDBRecord {
  const { producerUntil, ...image } = record.dynamodb?.NewImage ?? {};
  const end = change(Number(producerUntil?.N));
  const NewImage = { ...image, ...(end === undefined ? {} : { producerUntil: { N: String(end) } }) };
  return { ...record, dynamodb: { ...record.dynamodb, NewImage } };
}
