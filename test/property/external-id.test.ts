import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readExternal } from '../../lambdas/runtime/consume/external-message.ts';
import type { ExternalSubscription } from '../../lambdas/runtime/events/external-event.ts';
import {
  type ExternalIdValue,
  externalEventId,
  externalIdsOf,
  externalIdText,
  isExternalEventId,
} from '../../lambdas/runtime/store/external-id.ts';
import { anyJson } from './support/arbitraries.ts';
import { runs } from './support/runs.ts';

const text = fc.oneof(
  fc.string({ minLength: 1, unit: 'binary' }),
  fc.constantFrom('","', '["a"]', '\\', '\ud800', '\udbff', '1', 'null'),
);
const value: fc.Arbitrary<ExternalIdValue> = fc.oneof(text, fc.maxSafeInteger());
const paths = fc.array(text, { minLength: 1, maxLength: 3 });
const external = fc.record({ id: fc.option(paths, { nil: undefined }) });
const id = fc.array(value, { minLength: 1, maxLength: 3 });
const identity = fc.record({ source: text, type: text, external, id });
const idOf = (one: ExternalSubscription & { id: readonly ExternalIdValue[] }) => externalEventId(one, one.id);

it('two external events have the same event id if and only if source, type, id fields and their values are the same', () => {
  fc.assert(
    fc.property(identity, identity, (a, b) => {
      expect(isExternalEventId(idOf(a))).toBe(true);
      expect(idOf(structuredClone(a))).toBe(idOf(a));
      expect(idOf(a) === idOf(b)).toBe(
        JSON.stringify([a.source, a.type, a.external, a.id]) ===
          JSON.stringify([b.source, b.type, b.external, b.id]),
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
      const ids = externalIdsOf(externalIdText(one.id), one.id.length).map((id) => externalEventId(one, id));
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
      const subscription = { source: 's', type: 't', external: { id: [names.join('.')] } };
      const at = (body: unknown, arrivedAt: number) =>
        readExternal(JSON.parse(JSON.stringify(body)), [subscription], arrivedAt)?.eventId;
      const bridged = { source: 's', 'detail-type': 't', id: JSON.stringify(noise), detail: data };
      const expected = externalEventId(subscription, [id]);
      expect(at(data, 1)).toBe(expected);
      expect(at(bridged, 2)).toBe(expected);
      expect(at({ Type: 'Notification', TopicArn: 'a', Message: JSON.stringify(bridged) }, 3)).toBe(expected);
    }),
    runs(500),
  );
});

it('whatever a body holds, it is read, left to Mailroom or refused as poison', () => {
  const subscription = { source: 's', type: 't', external: { id: ['id'], time: 'at' } };
  const bodies = fc.oneof(anyJson, fc.record({ id: anyJson, at: anyJson }));
  fc.assert(
    fc.property(bodies, (body) => {
      try {
        const read = readExternal(body, [subscription], 7);
        if (read !== undefined) expect(isExternalEventId(read.eventId)).toBe(true);
      } catch (error) {
        expect(error).toMatchObject({ name: 'PoisonMessage' });
      }
    }),
    runs(1_000),
  );
});
