import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  circles,
  folderCircles,
  type Import,
  importsBelow,
  importsIn,
  loadedBy,
  ROOT,
} from './import-graph.ts';

const imports = importsBelow([
  'bench',
  'bin',
  'cli',
  'demo',
  'docs/.vitepress',
  'docs/examples',
  'lambdas',
  'lib',
  'localstack',
  'testing',
  'tools',
  'verify',
]);

/** What runs in AWS may not load the CDK; what a user's synth loads may not load the SDK. */
const CDK = ['aws-cdk-lib', 'constructs'];

/** The folders of the runtime. Each may import some of those before it, and none after it. */
const RUNTIME = [
  'base',
  'events',
  'bus',
  'store',
  'observe',
  'outbox',
  'inbox',
  'store/dynamo',
  'relay',
  'consume',
  'sources/sqs',
  'operations',
  'store/sql',
  'store/postgres',
  'store/mysql',
  'bridge',
  'sources',
  'database',
  'postgres',
  'mysql',
];

/** The folders of the runtime up to one of them. */
const upTo = (last: string) =>
  RUNTIME.slice(0, RUNTIME.indexOf(last) + 1).map((name) => `lambdas/runtime/${name}`);

/** What the files of a folder, without its folders that are listed here, may import besides each other. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  'lambdas/runtime': upTo('mysql'),
  'lambdas/runtime/base': [],
  'lambdas/runtime/events': upTo('base'),
  'lambdas/runtime/bus': upTo('events'),
  'lambdas/runtime/store': upTo('bus'),
  'lambdas/runtime/observe': upTo('bus'),
  'lambdas/runtime/outbox': upTo('observe'),
  'lambdas/runtime/inbox': upTo('outbox'),
  'lambdas/runtime/store/dynamo': upTo('inbox'),
  'lambdas/runtime/relay': upTo('store/dynamo'),
  'lambdas/runtime/consume': upTo('store/dynamo'),
  'lambdas/runtime/operations': upTo('consume'),
  'lambdas/runtime/bridge': upTo('operations'),
  'lambdas/runtime/sources/sqs': upTo('consume'),
  'lambdas/runtime/sources': upTo('consume'),
  'lambdas/runtime/store/sql': upTo('operations'),
  'lambdas/runtime/store/postgres': upTo('store/sql'),
  'lambdas/runtime/store/mysql': upTo('store/sql'),
  'lambdas/runtime/database': [...upTo('store/sql'), 'lambdas/runtime/sources'],
  'lambdas/runtime/postgres': [
    ...upTo('store/postgres'),
    'lambdas/runtime/sources',
    'lambdas/runtime/database',
  ],
  'lambdas/runtime/mysql': [
    ...upTo('store/sql'),
    'lambdas/runtime/store/mysql',
    'lambdas/runtime/sources',
    'lambdas/runtime/database',
  ],
  lambdas: upTo('operations'),
  'lambdas/postgres-audit': ['lambdas', ...upTo('base'), 'lambdas/runtime/postgres'],
  'lambdas/mysql-audit': ['lambdas', ...upTo('base'), 'lambdas/runtime/mysql'],
  'lambdas/postgres-relay': [...upTo('bus'), 'lambdas/runtime/postgres'],
  'lambdas/mysql-relay': [...upTo('bus'), 'lambdas/runtime/mysql'],
  'lambdas/example': ['lambdas/runtime'],
  testing: upTo('operations'),
  lib: [
    'lib/checks',
    'lib/functions',
    'lib/database',
    'lib/mailroom',
    'lib/consumer',
    'lib/monitoring',
    'lib/database-mailroom',
    ...upTo('operations'),
    ...CDK,
  ],
  'lib/checks': [...upTo('relay'), ...CDK],
  'lib/functions': ['lib/checks', ...upTo('events'), ...CDK],
  'lib/database': ['lib/checks', 'lib/functions', ...upTo('base'), ...CDK],
  'lib/mailroom': ['lib/checks', 'lib/functions', 'lib/database', ...upTo('operations'), ...CDK],
  'lib/consumer': ['lib/checks', 'lib/functions', 'lib/mailroom', ...upTo('operations'), ...CDK],
  'lib/monitoring': ['lib/checks', 'lib/mailroom', 'lib/consumer', ...upTo('operations'), ...CDK],
  'lib/database-mailroom': [
    'lib/checks',
    'lib/database',
    'lib/functions',
    'lib/mailroom',
    'lib/monitoring',
    'lambdas/runtime/base',
    'lambdas/runtime/events',
    'lambdas/runtime/observe',
    'lambdas/runtime/relay',
    'lambdas/runtime/postgres',
    'lambdas/runtime/mysql',
    ...CDK,
  ],
  'lib/example': ['lib', 'lib/functions', 'lib/consumer', 'lambdas/example', ...upTo('base'), ...CDK],
  cli: ['cli/terminal', 'cli/commands'],
  'cli/terminal': upTo('base'),
  'cli/deployment': [
    'cli/terminal',
    'lambdas/runtime/postgres',
    'lambdas/runtime/mysql',
    ...upTo('store/mysql'),
  ],
  'cli/reports': ['cli/terminal', 'cli/deployment', 'lambdas/runtime/store/mysql', ...upTo('store/sql')],
  'cli/changes': ['cli/terminal', 'cli/deployment', 'cli/reports', ...upTo('operations')],
  'cli/page/server': ['cli/terminal', 'cli/deployment', 'cli/reports', 'cli/changes', ...upTo('operations')],
  'cli/page/client': ['cli/terminal', 'cli/reports', 'cli/changes', 'cli/page/server', ...upTo('store')],
  'cli/commands': [
    'cli/terminal',
    'cli/deployment',
    'cli/reports',
    'cli/changes',
    'cli/page/server',
    'localstack',
    'lambdas/runtime/postgres',
    'lambdas/runtime/mysql',
    ...upTo('store/mysql'),
  ],
  localstack: upTo('base'),
  tools: ['cli', 'cli/terminal', 'lib/functions', ...upTo('base')],
  'docs/.vitepress': ['tools'],
  'docs/examples': [],
  bin: ['lib/example', ...CDK],
  demo: [
    'cli/terminal',
    'cli/deployment',
    'cli/reports',
    'cli/changes',
    'cli/page/server',
    'localstack',
    'lambdas/example',
    'test/brokers/clients',
    'test/brokers/servers',
    'test/postgres/server',
    'test/mysql/server',
    'lambdas/runtime/postgres',
    'lambdas/runtime/mysql',
    'lambdas/runtime/store/mysql',
    ...upTo('store/postgres'),
    'testing',
  ],
  'test/brokers/clients': [],
  'test/brokers/servers': [],
  'test/postgres/server': [],
  'test/mysql/server': [],
  verify: ['cli/terminal', 'demo', 'localstack', ...upTo('base')],
};

/** The folder of ARROWS that a file belongs to; a package by its name; `undefined` for another package. */
function roomOf(path: string): string | undefined {
  const rooms = Object.keys(ARROWS).filter((room) => path.startsWith(`${room}/`));
  const cdk = CDK.find((name) => path === name || path.startsWith(`${name}/`));
  const inRepository = path.endsWith('.ts') || path.endsWith('.tsx') || path.endsWith('.json');
  return rooms.sort((a, b) => b.length - a.length)[0] ?? cdk ?? (inRepository ? path : undefined);
}

/** The imports that {@link ARROWS} does not allow. */
function forbidden(all: readonly Import[]): string[] {
  return all.flatMap(({ from, to }) => {
    const [room = from, other] = [roomOf(from), roomOf(to)];
    const may =
      other === undefined || other === room || ARROWS[room]?.includes(other) || room.startsWith('bench/');
    return may ? [] : [`${from} imports ${to}`];
  });
}

/** The files of the runtime that make an operator's changes. */
const WRITERS: ReadonlySet<string> = new Set([
  'lambdas/runtime/operations/order-operations.ts',
  'lambdas/runtime/operations/audit/audit-repair.ts',
  'lambdas/runtime/operations/message-operations.ts',
  'lambdas/runtime/store/dynamo/outbox-operator.ts',
  'lambdas/runtime/store/operation-record.ts',
]);

/** The functions and the requests to AWS that may change something. */
const WRITES = /^(invoke|settleByConsumer|(?!(Describe|Filter|Get|List|Simulate)[A-Z])[A-Z]\w*Command)$/;

/** The methods of the ports that change something. */
const WRITING_CALL = /\.(write|transact|updateEach|remove|enableMapping)\(|queues\.send\(/g;

const isRuntime = (path: string) => path.startsWith('lambdas/runtime/');
/** The relay with OpenTelemetry, whose API is an optional peer of the package. */
const shown = ({ from, to, values }: Import) => `${from} imports ${values.join(', ') || '*'} of ${to}`;

describe('the law of the tree', () => {
  test('a folder imports only the folders that its arrows name', () => {
    expect(forbidden(imports)).toEqual([]);
  });

  test('an import against the arrows is found, of a package too', () => {
    expect(
      forbidden([
        ...importsIn('lambdas/runtime/base/a.ts', "import type { Table } from '../store/table.ts';"),
        ...importsIn('lambdas/runtime/store/a.ts', "import { errorCode } from '../base/errors.ts';"),
        ...importsIn('cli/terminal/a.ts', "import { App } from 'aws-cdk-lib/core';"),
        ...importsIn('lib/a.ts', "import { manualClock } from '../testing/manual-clock.ts';"),
        ...importsIn('demo/a.ts', "import { eventually } from '../test/support/eventually.ts';"),
      ]),
    ).toEqual([
      'lambdas/runtime/base/a.ts imports lambdas/runtime/store/table.ts',
      'cli/terminal/a.ts imports aws-cdk-lib/core',
      'lib/a.ts imports testing/manual-clock.ts',
      'demo/a.ts imports test/support/eventually.ts',
    ]);
  });

  test('the arrows have an order: no folder may import one that may import it, directly or by others', () => {
    const arrows = Object.entries(ARROWS).flatMap(([from, may]) =>
      may.map((to): Import => ({ from, to, values: [], typeOnly: false })),
    );
    expect(circles(arrows)).toEqual([]);
  });

  test('every arrow is used', () => {
    const used = new Set(imports.map(({ from, to }) => `${roomOf(from)} ${roomOf(to)}`));
    const unused = Object.entries(ARROWS)
      .flatMap(([room, may]) => may.map((other) => `${room} ${other}`))
      .filter((arrow) => !/ (lambdas\/runtime\/.*|aws-cdk-lib|constructs)$/.test(arrow) && !used.has(arrow));
    expect(unused).toEqual([]);
  });

  test('the library takes from the runtime constants, codecs, settings, names, timings, checks of settings and the error, and nothing that does work', () => {
    const may =
      /^([A-Z][A-Z0-9_]*|(?:en|de)code[A-Z]\w*|[a-z]\w*(Key|Name|Path|Ms|Problems|Settings|Text)|MailroomError)$/;
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

  test('the stacks of the examples import only event definitions from its functions', () => {
    const taken = imports.filter(
      ({ from, to }) => from.startsWith('lib/') && /^lambdas\/(?!runtime\/)/.test(to),
    );
    expect(taken.length).toBeGreaterThan(0);
    const definitions = ['lambdas/example/events.ts', 'lambdas/example/shop/catalog.ts'];
    expect(taken.filter(({ to }) => !definitions.includes(to)).map(shown)).toEqual([]);
  });

  test('no file of the runtime, and none that is deployed, loads the CDK or a package that only tests have', () => {
    const entries = [
      'lambdas/runtime/index.ts',
      ...new Set(imports.map(({ from }) => from).filter(isHandler)),
    ];
    expect(entries.length).toBeGreaterThan(6);
    const may =
      /^(node:[\w/]+|@aws-sdk\/[\w-]+|@aws-lambda-powertools\/[\w/-]+|@standard-schema\/spec|@opentelemetry\/api|p-limit|p-map|zod(\/mini)?)$/;
    const ofBridge = /^(amqplib|kafkajs|@nats-io\/[\w-]+)$/;
    const drivers = new Map([
      ['postgres', 'pg'],
      ['mysql', 'mysql2/promise'],
    ]);
    /** The driver of the database that a file is for. */
    const driverOf = (entry: string) =>
      drivers.get(/^lambdas\/(?:runtime\/|example\/orders\/)?(postgres|mysql)/.exec(entry)?.[1] ?? '');
    for (const entry of entries) {
      const mayBoth = (name: string) =>
        may.test(name) ||
        (entry.startsWith('lambdas/example/bridge/') && ofBridge.test(name)) ||
        name === driverOf(entry);
      const packages = [...loadedBy(entry, imports)].filter((name) => !name.endsWith('.ts'));
      expect(
        packages.filter((name) => !mayBoth(name)),
        entry,
      ).toEqual([]);
    }
  });

  test('the page takes from the command types, the escaping of stored text and the checks of data, and loads nothing of Node', () => {
    const may =
      /^(cli\/page\/client\/.*|cli\/(terminal\/(escaped|exact-json|times)|reports\/(audit\/(audit-answers|changed-words)|dead-letters\/verdict-words|findings\/finding-counts|status\/consumer-dead-letters)|changes\/resend\/data-changes)\.ts|lambdas\/runtime\/base\/(clock|documentation|errors|patience|retry-schedule|units|json)\.ts|preact(\/hooks)?|eventsource-parser)$/;
    const loaded = [...loadedBy('cli/page/client/main.tsx', imports)];
    expect(loaded).toContain('cli/terminal/escaped.ts');
    expect(loaded.filter((name) => !may.test(name))).toEqual([]);
  });

  test('the reports of the command load nothing that changes a Mailroom, and call nothing that does', () => {
    const reports = imports.filter(({ from }) => from.startsWith('cli/reports/'));
    const loaded = new Set(reports.flatMap(({ from }) => [...loadedBy(from, imports)]));
    expect(loaded).toContain('lambdas/runtime/operations/dead-letters.ts');
    expect([...loaded].filter((name) => WRITERS.has(name))).toEqual([]);
    expect(reports.filter(({ values }) => values.some((name) => WRITES.test(name))).map(shown)).toEqual([]);
    const calls = [...new Set(reports.map(({ from }) => from))].flatMap((file) =>
      [...textOf(file).matchAll(WRITING_CALL)].map(([call]) => `${file} calls ${call}`),
    );
    expect(calls).toEqual([]);
  });

  test('in the command, only the changes import what changes a Mailroom, and they import all of it', () => {
    const importers = imports.filter(({ from, to }) => from.startsWith('cli/') && WRITERS.has(to));
    const changes = importers.filter(({ from }) => from.startsWith('cli/changes/'));
    expect([...WRITERS].filter((name) => !changes.some(({ to }) => to === name))).toEqual([]);
    const others = importers.filter((one) => !one.typeOnly && !changes.includes(one));
    expect(others.map(shown)).toEqual([]);
  });

  test('the inbox and the outbox decide, and leave it to the stores to write', () => {
    const decisions = imports.filter(({ from }) => /^lambdas\/runtime\/(inbox|outbox)\//.test(from));
    expect(decisions.map(({ from }) => from)).toContain('lambdas/runtime/inbox/inbox-transitions.ts');
    const writes = /^lambdas\/runtime\/store\/(retry|row-update|dynamo\/.*)\.ts$|^(@aws-sdk\/.*|pg)$/;
    expect(decisions.filter(({ to }) => writes.test(to)).map(shown)).toEqual([]);
  });

  test('the console and all that it shows load no parser of command lines', () => {
    const loaded = [...loadedBy('cli/page/server/server.ts', imports)];
    expect(loaded).toContain('cli/changes/change.ts');
    expect(loaded).toContain('hono');
    expect(loaded).not.toContain('commander');
  });

  test('no two folders import each other, directly or by others', () => {
    const ofProduct = imports.filter(({ from }) => /^(cli|lambdas|lib)\//.test(from));
    expect(folderCircles(ofProduct)).toEqual([]);
  });

  test('no two files import each other, directly or by others, not even their types', () => {
    expect(circles(imports)).toEqual([]);
  });
});

describe('the imports of a file', () => {
  const of = (text: string) => importsIn('lib/names.ts', text);

  test('imports are found in every form that the code uses', () => {
    expect(of("import { a, type B, c as d } from '../lambdas/runtime/store/outbox-row.ts';\n")).toEqual([
      {
        from: 'lib/names.ts',
        to: 'lambdas/runtime/store/outbox-row.ts',
        values: ['a', 'c'],
        typeOnly: false,
      },
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

  test('show folders that import each other', () => {
    const some = [
      ...importsIn('a/one.ts', "import { b } from '../b/two.ts';"),
      ...importsIn('b/three.ts', "import type { A } from '../a/four.ts';"),
    ];
    expect(folderCircles(some)).toEqual(['a -> b -> a']);
    expect(circles(some)).toEqual([]);
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

function textOf(file: string): string {
  return readFileSync(new URL(file, ROOT), 'utf8');
}

function isHandler(file: string): boolean {
  return file.startsWith('lambdas/') && /(^|[./])handler\.ts$/.test(file) && !isRuntime(file);
}
