import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Parser } from '@asyncapi/parser';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { Ajv } from 'ajv';
import { type } from 'arktype';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import * as z from 'zod';
import { runMailroom } from '../../../cli/program.ts';
import { catalogChanges } from '../../../cli/reports/catalog/catalog-changes.ts';
import { asyncApiOf, jsonSchemaOf, readCatalog } from '../../../cli/reports/catalog/catalog-document.ts';
import { type AnyEventDefinition, createOutbox, defineEvent } from '../../../lambdas/runtime/index.ts';
import { manualClock, memoryTable, producerConfig } from '../../../testing/index.ts';
import { capturedIo, unwrapped } from '../../support/captured-io.ts';

const ROOT = new URL('../../../', import.meta.url).pathname;
let folder = '';

beforeAll(() => {
  mkdirSync(`${ROOT}.local`, { recursive: true });
  folder = mkdtempSync(`${ROOT}.local/catalog-`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a file, and returns its path from the current folder. */
function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return relative(process.cwd(), join(folder, name));
}

/** Writes a catalog module. `event(type, schema, others)` defines an event of `orders`. */
function moduleOf(name: string, code: string): string {
  const head = `import * as z from 'zod'; import * as v from 'valibot'; import { type } from 'arktype';
    import { defineEvent } from '../../lambdas/runtime/index.ts';
    const event = (name: string, schema: any, others = {}) => defineEvent({ source: 'orders', type: name, version: 1, aggregateType: 'Order', schema, ...others });`;
  return file(name, `${head}\n${code}\n`);
}

/** A text without the folders of this machine, and of this run. */
function withoutFolders(text: string): string {
  return text.replaceAll(ROOT, '').replaceAll(/\.local\/catalog-\w+\//g, '');
}

async function run(...argv: string[]) {
  const { io, written } = capturedIo();
  const code = await runMailroom(['events', ...argv], io);
  return { code, out: written.out, err: unwrapped(written.err) };
}

const tree = z.object({
  name: z.string(),
  get parts() {
    return z.array(tree).optional();
  },
});

function define(name: string, schema: AnyEventDefinition['schema'], others: object = {}): AnyEventDefinition {
  return defineEvent({ source: 'orders', type: name, version: 1, aggregateType: 'Order', schema, ...others });
}

/** Everything that a schema of the catalog may contain. */
const definitions = [
  define(
    'OrderPlaced',
    z.object({ orderId: z.uuid(), placedAt: z.iso.datetime().transform((t) => new Date(t)) }),
  ),
  define('TreePlanted', z.object({ tree, other: tree.nullable(), kinds: z.record(z.string(), z.int()) })),
  define(
    'Paid',
    z.discriminatedUnion('by', [z.object({ by: z.literal('card') }), z.object({ by: z.literal('cash') })]),
  ),
  define('Order placed by phone!', type({ 'note?': 'string > 2' }), { sequence: true }),
  define('OrderPlaced', z.strictObject({}), { source: 'archive' }),
  define('Refunded', toStandardJsonSchema(v.object({ cents: v.pipe(v.string(), v.transform(Number)) }))),
];

describe('events export', () => {
  test("AsyncAPI's own parser finds every event in the exported document, and no error", async () => {
    const text = JSON.stringify(asyncApiOf({ title: 'shop', version: '1.0.0', definitions }));
    const { document, diagnostics } = await new Parser().parse(text);
    expect(diagnostics.filter(({ severity }) => severity === 0)).toEqual([]);
    const names = document
      ?.allMessages()
      .all()
      .map((message) => message.name());
    expect(names?.sort()).toEqual(definitions.map((one) => one.type).sort());
  });

  test("AsyncAPI's own parser refuses a document with a wrong schema", async () => {
    const text = JSON.stringify(asyncApiOf({ title: 'shop', version: '1.0.0', definitions }));
    const { diagnostics } = await new Parser().parse(text.replace('"type":"object"', '"type":"thing"'));
    expect(diagnostics.some(({ severity }) => severity === 0)).toBe(true);
  });

  test('an event as the outbox writes it matches the exported JSON Schema, and one without a field does not', async () => {
    const clock = manualClock();
    const outbox = createOutbox({
      config: producerConfig({ service: 'orders' }),
      table: memoryTable({ clock }),
      clock,
    });
    const data = { tree: { name: 'oak', parts: [{ name: 'twig' }] }, other: null, kinds: { leaf: 1 } };
    const [planted = expect.fail()] = definitions.filter((one) => one.type === 'TreePlanted');
    const [event] = await outbox.commit({ events: [planted.create({ aggregateId: '1', data })] });
    const schema = jsonSchemaOf({ title: 'shop', version: '1.0.0', definitions });
    const matches = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    expect(matches(event), JSON.stringify(matches.errors)).toBe(true);
    expect(matches({ ...event, correlationId: undefined })).toBe(false);
    expect(matches({ ...event, version: 2 })).toBe(false);
    const wrong = { ...data, tree: { name: 'oak', parts: [{}] } };
    expect(matches({ ...event, data: wrong })).toBe(false);
  });

  test('exports a valibot schema that is wrapped as the error says', () => {
    const { definitions: schemas } = jsonSchemaOf({ title: 'shop', version: '1', definitions });
    expect(schemas).toMatchObject({ 'orders.Refunded': { properties: { cents: { type: 'string' } } } });
  });

  test('moves references, but neither fields named like keywords nor values', () => {
    const value = { $ref: '#/value' };
    const inner = { const: value, enum: [value], default: value, examples: [value] };
    const input = () => ({
      properties: { $ref: inner, const: { $ref: '#/definitions/part' }, all: { $ref: '#' } },
      definitions: { part: inner },
    });
    const validate = (given: unknown) => ({ value: given });
    const schema = { '~standard': { version: 1, vendor: 'own', validate, jsonSchema: { input } } } as const;
    const { definitions: schemas } = jsonSchemaOf({
      title: 'shop',
      version: '1',
      definitions: [define('Paid', schema)],
    });
    expect(schemas).toMatchObject({
      'orders.Paid': {
        properties: {
          $ref: inner,
          const: { $ref: '#/definitions/orders.Paid/definitions/part' },
          all: { $ref: '#/definitions/orders.Paid' },
        },
        definitions: { part: inner },
      },
    });
  });

  test('loads TypeScript with its own files, and takes title and version from the nearest package.json', async () => {
    file('package.json', JSON.stringify({ name: '@acme/events', version: '2.1.0' }));
    moduleOf('parts.ts', "export const Paid = event('Paid', z.object({}));");
    const module = file('index.ts', "export * from './parts';\nexport { Paid as Again } from './parts';\n");
    const { code, out, err } = await run('export', module);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const { info, channels } = JSON.parse(out);
    expect(info).toEqual({ title: '@acme/events', version: '2.1.0' });
    expect(Object.keys(channels)).toEqual(['orders.Paid']);
    expect(out.split('\n').length).toBeGreaterThan(20);
    const line = await run('export', module, '--json', '--format', 'json-schema');
    expect(line.out.split('\n')).toHaveLength(2);
    expect(Object.keys(JSON.parse(line.out).definitions)).toEqual(['Envelope', 'orders.Paid']);
  });

  test.each(['mjs', 'cjs'])('loads a .%s module', async (extension) => {
    const schema = `{ '~standard': { version: 1, vendor: 'x', validate: (value) => ({ value }), jsonSchema: { input: () => ({}) } } }`;
    const made = `{ source: 'orders', type: 'Paid', version: 1, aggregateType: 'Order', sequence: false, create() {}, schema: ${schema} }`;
    const code = extension === 'cjs' ? `module.exports = { Paid: ${made} };` : `export const Paid = ${made};`;
    const { out, err } = await run('export', file(`events.${extension}`, code));
    expect(err).toBe('');
    expect(Object.keys(JSON.parse(out).channels)).toEqual(['orders.Paid']);
  });

  test('refuses a module, and names what it has', async () => {
    const modules: Readonly<Record<string, string>> = {
      'no definitions': 'export const paid = z.object({});',
      'a default export': "export default event('Paid', z.object({}));",
      'an object as default export': "export default { Paid: event('Paid', z.object({})) };",
      'an event twice':
        "export const A = event('Paid', z.object({})); export const B = event('Paid', z.object({}));",
      'a syntax error': 'export const = 1;',
      'a missing package': "import 'no-such-package';",
      'an invalid definition': "event('Paid', z.object({}), { version: 0 });",
      'a Date': "export const Paid = event('Paid', z.object({ at: z.date() }));",
      'a Date of arktype': "export const Paid = event('Paid', type({ at: 'Date' }));",
      'a transform without an input':
        "export const Paid = event('Paid', z.object({ n: z.transform(Number) }));",
      valibot: "export const Paid = event('Paid', v.object({}));",
    };
    const refused: string[] = [];
    for (const [what, code] of Object.entries(modules)) {
      const { code: exit, out, err } = await run('export', moduleOf('bad.ts', code));
      expect({ what, exit, out }).toEqual({ what, exit: 2, out: '' });
      refused.push(`# ${what}\n${withoutFolders(err)}\n`);
    }
    await expect(refused.join('\n')).toMatchFileSnapshot('captures/events-export-refused.txt');
  });

  test('names esbuild if TypeScript needs it and it is not installed', async () => {
    vi.doMock('esbuild', () => {
      throw new Error("Cannot find package 'esbuild'");
    });
    onTestFinished(() => {
      vi.doUnmock('esbuild');
    });
    const { code, err } = await run(
      'export',
      moduleOf('now.ts', "export const Paid = event('Paid', z.object({}));"),
    );
    expect(code).toBe(2);
    expect(err).toContain('BAD_CATALOG: The catalog now.ts is TypeScript, which needs esbuild');
    expect(err).toContain('`npm install --save-dev esbuild`');
  });

  test('refuses an option that selects something deployed, and a module that does not exist', async () => {
    expect((await run('export', 'x.ts', '--stage', 'dev')).err).toContain(
      '--stage is "dev", but a catalog is a file',
    );
    for (const name of ['none.ts', 'none.js']) {
      const { code, err } = await run('export', name);
      expect(code).toBe(2);
      expect(err).toContain(`BAD_CATALOG: The catalog ${name} cannot be loaded: `);
    }
  });
});

/** Compares two versions of a module. */
async function check(before: string, after: string) {
  const old = await run('export', moduleOf('before.ts', before));
  expect(old.err).toBe('');
  const against = file('before.json', old.out);
  const { code, out, err } = await run('check', moduleOf('after.ts', after), '--against', against, '--json');
  expect(err).toBe('');
  const { breaking, compatible, changes } = JSON.parse(out);
  expect(code).toBe(breaking > 0 ? 1 : 0);
  expect(changes).toHaveLength(breaking + compatible);
  const texts = (
    changes as { path: string | null; breaking: boolean; consumersFirst: boolean; text: string }[]
  ).map(
    (one) =>
      `${one.breaking ? 'breaking' : one.consumersFirst ? 'consumers first' : 'fine'} ${one.path}: ${one.text}`,
  );
  return texts.sort();
}

/** A module with one event, whose payload has one field. */
const withField = (field: string) => `export const Paid = event('Paid', z.object({ field: ${field} }));`;

describe('events check', () => {
  const fields = 'a: z.string(), lines: z.array(z.object({ sku: z.string() }))';
  const paid = `export const Paid = event('Paid', z.object({ ${fields} }));`;
  const other = "export const Sent = event('Sent', z.object({}));";

  test('lists what has changed', async () => {
    const cases: Readonly<Record<string, readonly [before: string, after: string]>> = {
      nothing: [paid, paid],
      'a new event': [paid, paid + other],
      'a removed event': [paid + other, paid],
      'another source': [paid, paid.replace('}));', "}), { source: 'till' });")],
      'another aggregate': [paid, paid.replace('}));', "}), { aggregateType: 'Bill' });")],
      'a removed field': [paid, paid.replace('a: z.string(), ', '')],
      'a removed field in a list': [paid, paid.replace('sku: z.string()', '')],
      'a new required field': [paid, paid.replace('sku:', 'n: z.int(), sku:')],
      'a new optional field': [paid, paid.replace('sku:', 'n: z.int().optional(), sku:')],
      'a new optional field that strict consumers reject': [
        paid.replace('z.object', 'z.strictObject'),
        paid.replace('z.object({', 'z.strictObject({ n: z.int().optional(),'),
      ],
      'a schema that became strict': [paid, paid.replace('z.object', 'z.strictObject')],
      'a new required object, once': [paid, paid.replace('a:', 'b: z.object({ c: z.string() }), a:')],
      'a removed object, once': [paid, paid.replace(', lines: z.array(z.object({ sku: z.string() }))', '')],
      'a version without upcast': [paid, paid.replace('}));', '}), { version: 2 });')],
      'a version without upcast and its changes': [
        paid,
        paid.replace('a: z.string(), ', '').replace('}));', '}), { version: 2 });'),
      ],
      'a version with upcast': [
        paid,
        paid
          .replace('a: z.string()', 'b: z.int()')
          .replace('}));', '}), { version: 2, upcast: (d: unknown) => d });'),
      ],
      'a lowered version': [paid.replace('}));', '}), { version: 2 });'), paid],
      'a removed upcast': [
        paid.replace('}));', '}), { version: 2, upcast: (d: unknown) => d });'),
        paid.replace('}));', '}), { version: 2 });'),
      ],
      'a declared sequence': [paid, paid.replace('}));', '}), { sequence: true });')],
      'a removed sequence': [paid.replace('}));', '}), { sequence: true });'), paid],
    };
    const listed: string[] = [];
    for (const [what, [before, after]] of Object.entries(cases))
      listed.push(`# ${what}`, ...(await check(before, after)), '');
    await expect(listed.join('\n')).toMatchFileSnapshot('captures/events-check-changes.txt');
  });

  test('compares two schemas of a field, both ways', async () => {
    const schemas: readonly (readonly [string, string])[] = [
      ['z.string()', 'z.number()'],
      ['z.string()', 'z.string().nullable()'],
      ['z.string()', 'z.string().optional()'],
      ['z.string()', 'z.unknown()'],
      ['z.number().min(-9e9).max(9e9)', 'z.int().min(-9e9).max(9e9)'],
      ["z.enum(['a', 'b'])", "z.enum(['b', 'c'])"],
      ['z.string()', "z.enum(['a'])"],
      ['z.string().max(9)', 'z.string().max(5)'],
      ['z.number().min(1)', 'z.number().min(2)'],
      ['z.string()', 'z.string().regex(/a/)'],
      ['z.string().regex(/a/)', 'z.string().regex(/b/)'],
      ["z.enum(['x', 'y']).and(z.enum(['x', 'y']))", "z.enum(['x', 'y']).and(z.enum(['x']))"],
      [
        'z.object({ a: z.string() }).catchall(z.string())',
        'z.object({ a: z.string(), b: z.number().optional() }).catchall(z.string())',
      ],
      ['z.strictObject({})', 'z.object({}).catchall(z.string())'],
      ['z.array(z.string())', 'z.array(z.number())'],
      ['z.record(z.string(), z.int())', 'z.record(z.string(), z.string())'],
      ['z.tuple([z.string(), z.int()])', 'z.tuple([z.string(), z.string()])'],
      [
        "z.union([z.object({ k: z.literal('a'), x: z.string() }), z.object({ k: z.literal('c') })])",
        "z.union([z.object({ k: z.literal('a'), x: z.int() }), z.object({ k: z.literal('c') }), z.object({ k: z.literal('b'), y: z.string() })])",
      ],
      [
        'z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() }))',
        'z.object({ a: z.string(), b: z.string() })',
      ],
      [
        'z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() }))',
        'z.object({ a: z.string() })',
      ],
    ];
    const compared: string[] = [];
    for (const [one, other] of schemas)
      for (const [before, after] of [
        [one, other],
        [other, one],
      ] as const)
        compared.push(`# ${before} → ${after}`, ...(await check(withField(before), withField(after))), '');
    await expect(compared.join('\n')).toMatchFileSnapshot('captures/events-check-schemas.txt');
  });

  test('compares a recursive schema once', async () => {
    const node = (value: string) =>
      `const Node = z.object({ v: ${value}, get next() { return Node.optional(); } });
       export const Paid = event('Paid', z.object({ root: Node, list: z.array(Node) }));`;
    expect(await check(node('z.string()'), node('z.string()'))).toEqual([]);
    expect(await check(node('z.string()'), node('z.int()'))).toEqual([
      'breaking data.list[].v: string → number',
      'breaking data.root.v: string → number',
    ]);
  });

  test('a payload of zod and the same one of arktype are equal', async () => {
    const zod =
      "export const Paid = event('Paid', z.object({ id: z.string(), n: z.number(), k: z.enum(['a', 'b']).optional() }));";
    const arktype = `export const Paid = event('Paid', type({ id: 'string', n: 'number', 'k?': "'a'|'b'" }));`;
    expect(await check(zod, arktype)).toEqual([]);
  });

  test('prints the breaking changes first, and how to accept them', async () => {
    const against = file('old.json', (await run('export', moduleOf('now.ts', paid))).out);
    const module = moduleOf('now.ts', paid.replace('a: z.string()', 'b: z.string().optional()') + other);
    const { code, out } = await run('check', module, '--against', against);
    expect(code).toBe(1);
    expect(unwrapped(out)).toContain(`1 breaking change, 2 compatible ${module}, ${against} breaking`);
    expect(unwrapped(out)).toContain('• Paid of orders, data.a: removed compatible');
    expect(out).toContain(`\n  npx cdk-mailroom events export ${module}\n`);
  });

  test('refuses a file of another kind', async () => {
    const files: Readonly<Record<string, string>> = {
      'no JSON': 'openapi: 3',
      'JSON without the mark': '{"asyncapi":"3.0.0"}',
      'a later form': '{"asyncapi":"3.0.0","x-mailroom":{"catalog":2}}',
      'no messages': '{"asyncapi":"3.0.0","x-mailroom":{"catalog":1}}',
      'a changed message': '{"x-mailroom":{"catalog":1},"components":{"messages":{"a.B":{}}}}',
      'a missing schema':
        '{"x-mailroom":{"catalog":1},"components":{"messages":{"a.B":{"x-mailroom":{"source":"a","type":"B","version":1,"aggregateType":"C","upcast":false,"sequence":false}}}}}',
    };
    const refused: string[] = [];
    for (const [what, text] of Object.entries(files)) {
      const against = file('against.json', text);
      const { code, err } = await run('check', moduleOf('now.ts', paid), '--against', against);
      expect({ what, code }).toEqual({ what, code: 2 });
      refused.push(`# ${what}\n${withoutFolders(err)}\n`);
    }
    await expect(refused.join('\n')).toMatchFileSnapshot('captures/events-check-refused.txt');
  });

  test('reads the earlier export from standard input, and names a file that does not exist', async () => {
    const module = moduleOf('now.ts', paid);
    const { out: input } = await run('export', module);
    const { io, written } = capturedIo({ input });
    expect(await runMailroom(['events', 'check', module, '--against', '-'], io)).toBe(0);
    expect(unwrapped(written.out)).toContain(
      `0 breaking changes, 0 compatible ${module}, the earlier export`,
    );
    expect((await run('check', module, '--against', 'none.json')).err).toContain(
      'BAD_ARGUMENT: --against: ENOENT',
    );
  });
});

test.each<[what: string, before: object, after: object, expected: string[]]>([
  [
    'number or null → integer or null',
    { type: ['number', 'null'] },
    { type: ['integer', 'null'] },
    ['integer none → true'],
  ],
  [
    'a list that accepts no more items',
    { type: 'array', items: [{ type: 'string' }] },
    { type: 'array', items: [{ type: 'string' }], additionalItems: false },
    ['other items none → false'],
  ],
  [
    'another target of a reference in a pattern',
    { type: 'object', patternProperties: { '^a': { $ref: '#/definitions/one' } } },
    { type: 'object', patternProperties: { '^a': { $ref: '#/definitions/one', narrower: true } } },
    ['patternProperties'],
  ],
  [
    'anyOf beside oneOf',
    { oneOf: [{ type: 'string' }], anyOf: [{ minLength: 1 }] },
    { oneOf: [{ type: 'string' }], anyOf: [{ minLength: 2 }] },
    ['minLength 1 → 2'],
  ],
])('a schema that was written by hand: %s is breaking', (_, before, after, expected) => {
  const of = (schema: object, one: object) => {
    const event = { source: 'a', type: 'B', version: 1, aggregateType: 'C', upcast: false, sequence: false };
    const payload = JSON.parse(JSON.stringify(schema).replaceAll(',"narrower":true', ''));
    const components = { messages: { 'a.B': { 'x-mailroom': event } }, schemas: { 'a.B': payload } };
    return readCatalog(
      'file',
      JSON.stringify({ 'x-mailroom': { catalog: 1 }, definitions: { one }, components }),
    );
  };
  const isChanged = JSON.stringify(after).includes('narrower');
  const changes = catalogChanges(
    of(before, { type: 'string' }),
    of(after, isChanged ? { type: 'number' } : { type: 'string' }),
  );
  expect(changes.map(({ breaking }) => breaking)).toEqual(expected.map(() => true));
  expected.forEach((text, index) => {
    expect(changes[index]?.text).toContain(text);
  });
});
