import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

test('TypeScript without `exports`, as in `moduleResolution: node10`, finds the types of each entry', () => {
  const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
    path === '.' || typeof target === 'string' ? [] : [[path.slice(2), [target.types]]],
  );
  expect(entries.length).toBeGreaterThan(2);
  expect(manifest.typesVersions['*']).toEqual(Object.fromEntries(entries));
});
