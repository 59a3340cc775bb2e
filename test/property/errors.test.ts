import fc from 'fast-check';
import { expect, it } from 'vitest';
import { asMailroomError, errorCode, errorMessage } from '../../lambdas/runtime/base/errors.ts';
import { fingerprint } from '../../lambdas/runtime/base/fingerprint.ts';
import { anyThrown } from './support/arbitraries.ts';
import { runs } from './support/runs.ts';

it('whatever is thrown has a code, a message and a fingerprint, all of them texts of bounded length', () => {
  fc.assert(
    fc.property(anyThrown, (thrown) => {
      expect(errorCode(thrown)).toEqual(expect.any(String));
      expect(errorCode(thrown)).not.toBe('');
      expect(errorMessage(thrown)).toEqual(expect.any(String));
      expect(errorMessage(thrown).length).toBeLessThanOrEqual(1_000);
      expect(fingerprint(thrown).length).toBeLessThanOrEqual(240);
      expect(asMailroomError(thrown)).toBeInstanceOf(Error);
    }),
    runs(500),
  );
});

it('failures that differ only in their numbers and ids have one fingerprint', () => {
  const numbered = fc.tuple(
    fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8}){0,4}$/),
    fc.nat(),
    fc.nat(),
    fc.uuid(),
    fc.uuid(),
  );
  fc.assert(
    fc.property(numbered, ([words, one, other, id, otherId]) => {
      const failure = (n: number, uuid: string) => fingerprint(new Error(`${words} ${n} of ${uuid} (${n})`));
      expect(failure(one, id)).toBe(failure(other, otherId));
      expect(failure(one, id)).toContain(words.slice(0, 200));
    }),
    runs(200),
  );
});
