import { describe, expect, test } from 'vitest';
import { circles, type Import, importsBelow, importsIn, loadedBy } from './import-graph.ts';

// What lint can see in one import, biome.json refuses: who may import which folder. Here is the rest.
const imports = importsBelow([
  'bench',
  'bin',
  'cli',
  'demo',
  'lambdas',
  'lib',
  'localstack',
  'site',
  'testing',
  'ui',
  'verify',
]);

const isRuntime = (path: string) => path.startsWith('lambdas/runtime/');
/** The relay with OpenTelemetry, whose API is an optional peer of the package. */
const isTraced = (path: string) => path.endsWith('/traced.handler.ts');
const shown = ({ from, to, values }: Import) => `${from} imports ${values.join(', ') || '*'} of ${to}`;

describe('the law of the tree', () => {
  test('the library takes from the runtime constants, codecs, names, timings, checks of settings and the error, and nothing that does work', () => {
    const may = /^([A-Z][A-Z0-9_]*|encode[A-Z]\w*|[a-z]\w*(Key|Name|Path|Ms|Problems)|MailroomError)$/;
    const taken = imports.filter(
      ({ from, to, typeOnly }) => from.startsWith('lib/') && isRuntime(to) && !typeOnly,
    );
    expect(taken.length).toBeGreaterThan(8);
    expect(
      taken.filter(({ values }) => values.length === 0 || values.some((name) => !may.test(name))).map(shown),
    ).toEqual([]);
  });

  test('the library loads nothing of the AWS SDK and of Powertools: synth makes no call', () => {
    const loaded = [...loadedBy('lib/index.ts', imports)];
    expect(loaded).toContain('aws-cdk-lib');
    expect(loaded.filter((name) => /^@aws-(sdk|lambda-powertools)\//.test(name))).toEqual([]);
  });

  test('the order system’s stacks import only event definitions from its functions', () => {
    const taken = imports.filter(
      ({ from, to }) => from.startsWith('lib/') && /^lambdas\/(?!runtime\/)/.test(to),
    );
    expect(taken.length).toBeGreaterThan(0);
    expect(taken.filter(({ to }) => to !== 'lambdas/example/events.ts').map(shown)).toEqual([]);
  });

  test('no file of the runtime, and none that is deployed, loads the CDK or a package that only tests have', () => {
    const entries = [
      'lambdas/runtime/index.ts',
      ...new Set(imports.map(({ from }) => from).filter(isHandler)),
    ];
    expect(entries.length).toBeGreaterThan(6);
    const may =
      /^(node:[\w/]+|@aws-sdk\/[\w-]+|@aws-lambda-powertools\/[\w/-]+|@standard-schema\/spec|p-limit|p-map|zod(\/mini)?)$/;
    for (const entry of entries) {
      const packages = [...loadedBy(entry, imports)].filter((name) => !name.endsWith('.ts'));
      expect(
        packages.filter((name) => !may.test(name) && !(isTraced(entry) && name === '@opentelemetry/api')),
        entry,
      ).toEqual([]);
    }
  });

  test('the page takes from the command types, the escaping of stored text and the checks of data, and loads nothing of Node', () => {
    const may =
      /^(ui\/.*|cli\/(frame\/(escaped|times)|dead-letters\/(data-changes|lossy-number))\.ts|lambdas\/runtime\/(clock|json-depth|errors|consume\/retry-schedule)\.ts|preact(\/hooks)?|eventsource-parser)$/;
    const loaded = [...loadedBy('ui/main.tsx', imports)];
    expect(loaded).toContain('cli/frame/escaped.ts');
    expect(loaded.filter((name) => !may.test(name))).toEqual([]);
  });

  test('only the page imports the page', () => {
    expect(
      imports.filter(({ from, to }) => to.startsWith('ui/') && !from.startsWith('ui/')).map(shown),
    ).toEqual([]);
  });

  test('no two files import each other, directly or by others, not even their types', () => {
    expect(circles(imports)).toEqual([]);
  });
});

describe('the imports of a file', () => {
  const of = (text: string) => importsIn('lib/names.ts', text);

  test('imports are found in every form that the code uses', () => {
    expect(of("import { a, type B, c as d } from '../lambdas/runtime/store/rows.ts';\n")).toEqual([
      { from: 'lib/names.ts', to: 'lambdas/runtime/store/rows.ts', values: ['a', 'c'], typeOnly: false },
    ]);
    expect(of("import {\n  a,\n  b,\n} from './mailroom.ts';")).toMatchObject([{ values: ['a', 'b'] }]);
    expect(of("import type { A } from './mailroom.ts';")).toMatchObject([{ values: [], typeOnly: true }]);
    expect(of("export { a } from './mailroom.ts';")).toMatchObject([
      { to: 'lib/mailroom.ts', values: ['a'] },
    ]);
    expect(of("import * as cdk from 'aws-cdk-lib';")).toMatchObject([{ to: 'aws-cdk-lib', values: [] }]);
    expect(of("import './mailroom.ts';")).toMatchObject([{ to: 'lib/mailroom.ts', typeOnly: false }]);
    expect(of("const it = await import('./mailroom.ts');")).toMatchObject([{ to: 'lib/mailroom.ts' }]);
    expect(of(" * import { a } from './mailroom.ts';\nexport const text = 'from';")).toEqual([]);
  });

  test('lead to loaded files, without type imports', () => {
    const some = [
      ...importsIn('a.ts', "import { b } from './b.ts';\nimport type { D } from './d.ts';"),
      ...importsIn('b.ts', "import { z } from 'zod';"),
    ];
    expect([...loadedBy('a.ts', some)]).toEqual(['a.ts', 'b.ts', 'zod']);
  });

  test('show an import cycle, including type imports', () => {
    const some = [
      ...importsIn('a.ts', "import { b } from './b.ts';"),
      ...importsIn('b.ts', "import { c } from './c.ts';"),
      ...importsIn('c.ts', "import type { B } from './b.ts';"),
    ];
    expect(circles(some)).toEqual(['b.ts -> c.ts -> b.ts']);
    expect(circles(some.slice(0, 2))).toEqual([]);
  });
});

function isHandler(file: string): boolean {
  return file.startsWith('lambdas/') && /(^|[./])handler\.ts$/.test(file) && !isRuntime(file);
}
