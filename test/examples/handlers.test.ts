import { expect, test } from 'vitest';
import manifest from '../../docs/examples/handlers/package.json' with { type: 'json' };
import { importsBelow, loadedBy } from '../law/import-graph.ts';

test('the handlers of the examples install each SDK package that the runtime imports: esbuild resolves also what it drops', () => {
  const loaded = loadedBy('lambdas/runtime/index.ts', importsBelow(['lambdas/runtime']));
  const packages = [...loaded].filter((name) => name.startsWith('@aws-sdk/'));
  expect(packages).toContain('@aws-sdk/client-dynamodb');
  expect(packages.filter((name) => !(name in manifest.dependencies))).toEqual([]);
});
