import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readDelivered, readEvent } from '../../lambdas/runtime/consume/message.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { isEventId, mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { anything } from './support/anything.ts';
import { anyJson, anyText, anyThrown } from './support/arbitraries.ts';
import { runs, seededBytes } from './support/runs.ts';

const MEMBERS = ['eventId', 'type', 'version', 'aggregateType', 'aggregateId', 'occurredAt', 'correlationId'];

const eventId = fc.nat().map((seed) => mintEventId(Date.UTC(2026, 0, 1), 8, seededBytes(seed)));
const envelope = fc.record({
  eventId,
  type: fc.string({ minLength: 1 }),
  version: fc.integer({ min: 1 }),
  aggregateType: fc.string({ minLength: 1 }),
  aggregateId: fc.string({ minLength: 1 }),
  occurredAt: fc.maxSafeInteger(),
  correlationId: fc.string({ minLength: 1 }),
  data: anyJson,
});

const versions = fc.integer({ min: 1, max: 5 });

/** Envelopes that lack a member, or have another thing in its place. */
const nearly = fc
  .tuple(envelope, fc.constantFrom(...MEMBERS, 'data'), fc.option(anyJson, { nil: undefined }))
  .map(([whole, member, value]) => ({ ...whole, [member]: value }));
const bodies = fc.oneof(
  anyText,
  anyJson,
  anyJson.map((json) => JSON.stringify(json)),
  fc.oneof(envelope, nearly, anyJson).map((detail) => JSON.stringify({ detail })),
  fc.tuple(nearly, fc.nat()).map(([detail, cut]) => JSON.stringify({ detail }).slice(0, -1 - (cut % 200))),
);

it('whatever a body holds, it is read as an envelope or refused as unreadable', () => {
  fc.assert(
    fc.property(bodies, (body) => {
      let read: Record<string, unknown>;
      try {
        read = { ...readDelivered(body as string).envelope };
      } catch (error) {
        expect(error).toMatchObject({ name: 'PoisonMessage', code: 'UNREADABLE_MESSAGE' });
        return;
      }
      expect(isEventId(read.eventId)).toBe(true);
      expect(read).toHaveProperty('data');
      for (const name of ['type', 'aggregateType', 'aggregateId', 'correlationId']) {
        expect(typeof read[name] === 'string' && read[name] !== '').toBe(true);
      }
      expect(Number.isSafeInteger(read.version) && Number(read.version) >= 1).toBe(true);
      expect(Number.isSafeInteger(read.occurredAt)).toBe(true);
    }),
    runs(1_000),
  );
});

it('every envelope is read as it was sent, with what it holds besides', () => {
  fc.assert(
    fc.property(envelope, fc.dictionary(fc.string(), anyJson), (whole, besides) => {
      const detail = JSON.stringify({ ...besides, ...whole });
      const read = readDelivered(`{"detail":${detail}}`).envelope;
      expect(JSON.stringify(read)).toBe(detail);
    }),
    runs(200),
  );
});

it('an envelope without one of its members, or with null in its place, is refused by the member’s name', () => {
  fc.assert(
    fc.property(
      envelope,
      fc.constantFrom(...MEMBERS),
      fc.constantFrom(undefined, null),
      (whole, member, nothing) => {
        const body = JSON.stringify({ detail: { ...whole, [member]: nothing } });
        expect(() => readDelivered(body).envelope).toThrow(member);
      },
    ),
    runs(100),
  );
});

it('an event of this version is passed on, an older one upcast once, a newer one permanently refused', async () => {
  await fc.assert(
    fc.asyncProperty(envelope, versions, versions, async (sent, version, known) => {
      const upcasts: number[] = [];
      const definition = defineEvent({
        ...anything().Anything,
        version: known,
        upcast: (data, from) => {
          upcasts.push(from);
          return { upcast: data };
        },
      });
      const reading = readEvent(definition, { ...sent, version });
      if (version > known) {
        await expect(reading).rejects.toMatchObject({ name: 'PoisonMessage', code: 'UNKNOWN_EVENT_VERSION' });
      } else {
        const data = version < known ? { upcast: sent.data } : sent.data;
        await expect(reading).resolves.toEqual({ ...sent, source: definition.source, version: known, data });
      }
      expect(upcasts).toEqual(version < known ? [version] : []);
    }),
    runs(200),
  );
});

it('whatever an upcast or a schema throws, the message is refused permanently', async () => {
  await fc.assert(
    fc.asyncProperty(envelope, versions, anyThrown, async (sent, version, thrown) => {
      const throws = () => {
        throw thrown;
      };
      const { Anything } = anything();
      const schema = { '~standard': { ...Anything.schema['~standard'], validate: throws } };
      const today = defineEvent({ ...Anything, version, schema });
      const tomorrow = defineEvent({ ...Anything, version: version + 1, upcast: throws });
      for (const definition of [today, tomorrow]) {
        const reading = readEvent(definition, { ...sent, version });
        await expect(reading).rejects.toMatchObject({ name: 'PoisonMessage', code: 'INVALID_PAYLOAD' });
      }
    }),
    runs(100),
  );
});
