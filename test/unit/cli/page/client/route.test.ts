import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRoute, routeTo } from '../../../../../cli/page/client/frame/route.ts';

test('a route survives its fragment, whatever an id is made of', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (argument, since) => {
      const { query, ...route } = parseRoute(routeTo('event', argument, { since }));
      expect(route).toEqual({ screen: 'event', argument });
      expect(query).toEqual(since === '' ? {} : { since });
    }),
  );
});

test.each([
  ['', 'flow'],
  ['#', 'flow'],
  ['#/', 'flow'],
  ['#/dead-letters', 'dead-letters'],
])('the fragment %j leads to %s', (fragment, screen) => {
  expect(parseRoute(fragment)).toEqual({ screen, argument: '', query: {} });
});

test('a malformed fragment is taken as it is', () => {
  expect(parseRoute('#/event/%E0%A4%A').argument).toBe('%E0%A4%A');
});
