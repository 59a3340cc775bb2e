import { inflateRawSync } from 'node:zlib';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { hasLoneSurrogate } from '../../lambdas/runtime/base/json.ts';
import { readDelivered, readEvent } from '../../lambdas/runtime/consume/message.ts';
import type { Envelope, EventInput } from '../../lambdas/runtime/events/event.ts';
import { pendingRow } from '../../lambdas/runtime/outbox/pending-row.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { memoryBus, memoryQueue, memoryTable } from '../../testing/index.ts';
import { envelopeOf } from '../support/envelope-of.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { anything } from './support/anything.ts';
import { anyData, anyPayload, anyText, noJson, replacedByJson } from './support/arbitraries.ts';
import { eagerClock } from './support/eager-clock.ts';
import { runs, seededBytes } from './support/runs.ts';

const text = anyText.filter((value) => value !== '' && !hasLoneSurrogate(value));
const XRAY_HEADER = 'Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1';
const absent = { nil: undefined };

/** What a producer says of an event beside its payload. */
const saying = {
  aggregateId: text,
  occurredAt: fc.option(fc.maxSafeInteger(), absent),
  correlationId: fc.option(text, absent),
  causationId: fc.option(text, absent),
  traceId: fc.option(fc.oneof(fc.string({ minLength: 1, maxLength: 500 }), fc.constant(XRAY_HEADER)), absent),
  sequence: fc.option(fc.maxSafeInteger(), absent),
};
const event = fc.record({
  ...saying,
  // Some are large enough to be stored compressed.
  data: fc
    .oneof(
      anyPayload,
      anyPayload.map((value) => Array.from({ length: 40 }, () => value)),
    )
    .filter((value) => JSON.stringify(value) !== undefined),
});

it('what a producer writes is what a consumer reads, whether the stream carries it or the sweep', async () => {
  await fc.assert(
    fc.asyncProperty(event, fc.boolean(), fc.nat(), async (input, byStream, seed) => {
      const line = await written(input, seed);
      const read = await consumed(line, byStream ? line.image : line.item);
      expect(JSON.stringify({ ...read, source: undefined })).toBe(line.detail);
      expect(JSON.stringify(read.data)).toBe(JSON.stringify(input.data));
      for (const [name, value] of Object.entries(input)) {
        if (name !== 'data' && value !== undefined) expect(read).toHaveProperty(name, value);
      }
    }),
    runs(150),
  );
});

it('the schema is shown the same when an event is written as when it is read', async () => {
  await fc.assert(
    fc.asyncProperty(event, fc.nat(), async (input, seed) => {
      const line = await written(input, seed);
      await consumed(line, line.item);
      const [whenWritten, whenRead, ...more] = line.shown.values;
      expect(more).toEqual([]);
      expect(JSON.stringify(whenRead)).toBe(JSON.stringify(whenWritten));
      expect(whenRead).toEqual(whenWritten);
    }),
    runs(100),
  );
});

it('a payload that has no JSON text, or another one, is refused when it is written, and nothing is', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ ...saying, data: fc.oneof(noJson, replacedByJson) }),
      fc.nat(),
      async (input, seed) => {
        const { outbox, table, Anything } = rig(seed);
        await expect(outbox.commit({ events: [Anything.create(input)] })).rejects.toMatchObject({
          code: 'INVALID_PAYLOAD',
          message: expect.stringContaining('Anything cannot be written as JSON'),
        });
        expect(table.items()).toEqual([]);
      },
    ),
    runs(50),
  );
});

it('an event is refused by its outbox, or can be read by every consumer, whatever a careless producer says', async () => {
  const members = fc.constantFrom(...Object.keys(saying), 'data');
  await fc.assert(
    fc.asyncProperty(
      event,
      members,
      fc.oneof(anyText, anyData),
      fc.nat(),
      async (input, member, value, seed) => {
        let line: Awaited<ReturnType<typeof written>>;
        try {
          line = await written({ ...input, [member]: value }, seed);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(INVALID_EVENT|INVALID_PAYLOAD)$/) });
          return;
        }
        const read = await consumed(line, line.image);
        expect(JSON.stringify({ ...read, source: undefined })).toBe(line.detail);
      },
    ),
    runs(300),
  );
});

function rig(seed: number) {
  const clock = eagerClock();
  const random = seededBytes(seed);
  const table = memoryTable({ clock });
  const outbox = createOutbox({ config: consumerConfig, table, clock, random });
  return { clock, table, outbox, ...anything() };
}

/** The one row that an event becomes: as an item that was read, and as a record of the stream shows it. */
async function written(input: EventInput<unknown>, seed: number) {
  const parts = rig(seed);
  await parts.outbox.commit({ events: [parts.Anything.create(input)] });
  const [item] = parts.table.items();
  const [record] = JSON.parse(JSON.stringify(parts.table.stream()));
  return {
    ...parts,
    item: item as Item,
    // As it is stored, and not as the code under test reads it.
    detail:
      item?.encoding === undefined ? item?.envelope : inflateRawSync(item.envelope as Uint8Array).toString(),
    image: unmarshall(record.dynamodb.NewImage) as Item,
  };
}

/** The event as a handler is given it, once its row was published. */
async function consumed(line: Awaited<ReturnType<typeof written>>, item: object): Promise<Envelope> {
  const bus = memoryBus({ clock: line.clock });
  const queue = memoryQueue({ clock: line.clock });
  bus.routeTo(queue);
  const row = pendingRow(item as Item);
  expect(row?.entry.traceHeader).toBe(
    envelopeOf(line.item).traceId === XRAY_HEADER ? XRAY_HEADER : undefined,
  );
  expect(await bus.put(row === undefined ? [] : [row.entry], 1_000)).toMatchObject([{ ok: true }]);
  const [record] = queue.receive();
  if (record === undefined) throw new Error('The bus sent no message');
  return readEvent(line.Anything, readDelivered(record.body).envelope);
}
