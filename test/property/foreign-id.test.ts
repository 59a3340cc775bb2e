import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readForeign } from '../../lambdas/runtime/consume/foreign-message.ts';
import type { ForeignSubscription } from '../../lambdas/runtime/events/foreign-event.ts';
import {
  type ForeignIdValue,
  foreignEventId,
  foreignIdsOf,
  foreignIdText,
  isForeignEventId,
} from '../../lambdas/runtime/store/foreign-id.ts';
import { anyJson } from './support/arbitraries.ts';
import { runs } from './support/runs.ts';

const text = fc.oneof(
  fc.string({ minLength: 1, unit: 'binary' }),
  fc.constantFrom('","', '["a"]', '\\', '\ud800', '\udbff', '1', 'null'),
);
const value: fc.Arbitrary<ForeignIdValue> = fc.oneof(text, fc.maxSafeInteger());
const paths = fc.array(text, { minLength: 1, maxLength: 3 });
const foreign = fc.record({ id: fc.option(paths, { nil: undefined }) });
const id = fc.array(value, { minLength: 1, maxLength: 3 });
const identity = fc.record({ source: text, type: text, foreign, id });
const idOf = (one: ForeignSubscription & { id: readonly ForeignIdValue[] }) => foreignEventId(one, one.id);

it('two foreign events have the same event id if and only if source, type, id fields and their values are the same', () => {
  fc.assert(
    fc.property(identity, identity, (a, b) => {
      expect(isForeignEventId(idOf(a))).toBe(true);
      expect(idOf(structuredClone(a))).toBe(idOf(a));
      expect(idOf(a) === idOf(b)).toBe(
        JSON.stringify([a.source, a.type, a.foreign, a.id]) ===
          JSON.stringify([b.source, b.type, b.foreign, b.id]),
      );
      const split = { ...a, id: [...a.id, 'x'] };
      expect(idOf(split)).not.toBe(idOf(a));
    }),
    runs(1_000),
  );
});

it('an operator who types the text of an id finds the event', () => {
  fc.assert(
    fc.property(identity, (one) => {
      const ids = foreignIdsOf(foreignIdText(one.id), one.id.length).map((id) => foreignEventId(one, id));
      expect(ids).toContain(idOf(one));
    }),
    runs(1_000),
  );
});

it('a message has the same event id however it reached the queue, and whatever else it contains', () => {
  const name = fc.string({ minLength: 1 }).filter((part) => !part.includes('.'));
  const paths = fc.array(name, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(paths, text, anyJson, (names, id, noise) => {
      const data = names.reduceRight<unknown>(
        (inner, key) =>
          Object.fromEntries([
            ['noise', noise],
            [key, inner],
          ]),
        id,
      );
      const subscription = { source: 's', type: 't', foreign: { id: [names.join('.')] } };
      const at = (body: unknown, arrivedAt: number) =>
        readForeign(JSON.parse(JSON.stringify(body)), [subscription], arrivedAt)?.eventId;
      const bridged = { source: 's', 'detail-type': 't', id: JSON.stringify(noise), detail: data };
      const expected = foreignEventId(subscription, [id]);
      expect(at(data, 1)).toBe(expected);
      expect(at(bridged, 2)).toBe(expected);
      expect(at({ Type: 'Notification', TopicArn: 'a', Message: JSON.stringify(bridged) }, 3)).toBe(expected);
    }),
    runs(500),
  );
});

it('whatever a body holds, it is read, left to Mailroom or refused as poison', () => {
  const subscription = { source: 's', type: 't', foreign: { id: ['id'], time: 'at' } };
  const bodies = fc.oneof(anyJson, fc.record({ id: anyJson, at: anyJson }));
  fc.assert(
    fc.property(bodies, (body) => {
      try {
        const read = readForeign(body, [subscription], 7);
        if (read !== undefined) expect(isForeignEventId(read.eventId)).toBe(true);
      } catch (error) {
        expect(error).toMatchObject({ name: 'PoisonMessage' });
      }
    }),
    runs(1_000),
  );
});
