import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { catalogChanges } from '../../cli/reports/catalog/catalog-changes.ts';
import { readCatalog } from '../../cli/reports/catalog/catalog-document.ts';
import { runs } from '../property/support/runs.ts';

const event = { source: 'a', type: 'B', version: 1, aggregateType: 'C', upcast: false, sequence: false };

/** An export of one event with this payload, as anybody may hand it over for `--against`. */
function read(payload: unknown, definitions: object = {}) {
  const components = { messages: { 'a.B': { 'x-mailroom': event } }, schemas: { 'a.B': payload } };
  const text = JSON.stringify({ 'x-mailroom': { catalog: 1 }, definitions, components });
  return readCatalog('theirs.json', text);
}

/** Definitions of which each refers to the next one twice: as many targets as powers of two. */
function doubled(levels: number, twice: (next: object) => object): object {
  const each = Array.from({ length: levels }, (_, level) => {
    const next = level + 1 < levels ? { $ref: `#/definitions/l${level + 1}` } : { type: 'string' };
    return [`l${level}`, twice(next)] as const;
  });
  return Object.fromEntries(each);
}

const first = { $ref: '#/definitions/l0' };
const REFUSED = 'The file theirs.json is not an AsyncAPI document of Mailroom: ';

describe('an export whose references multiply', () => {
  test.each<[string, unknown, (next: object) => object]>([
    ['in two fields', first, (next) => ({ type: 'object', properties: { a: next, b: next } })],
    ['in two alternatives', first, (next) => ({ oneOf: [next, next] })],
    [
      'in a keyword that is compared as a whole',
      { type: 'object', patternProperties: { x: first } },
      (next) => ({ type: 'object', properties: { a: next, b: next } }),
    ],
  ])('%s is refused', (_where, payload, twice) => {
    for (const levels of [22, 40, 200])
      expect(() => read(payload, doubled(levels, twice))).toThrow(
        /^The file theirs\.json is not an AsyncAPI document of Mailroom: (?:its schemas, at data\S*, refer to each other too often|the schema of data\S* nests more than 512 levels deep)/,
      );
  });

  test('in parts that must all match is read once', () => {
    const definitions = doubled(40, (next) => ({ allOf: [next, next] }));
    expect(read(first, definitions).get('a.B')?.fields.get('data')?.kinds.has('string')).toBe(true);
  });

  test('as in an ordinary export is read', () => {
    const definitions = doubled(8, (next) => ({ type: 'object', properties: { a: next, b: next } }));
    expect(read(first, definitions).get('a.B')?.fields.size).toBe(2 ** 9 - 1);
  });
});

test('an export whose references form a long chain is refused', () => {
  const definitions = doubled(5_000, (next) => ({ type: 'object', properties: { a: next } }));
  expect(() => read(first, definitions)).toThrow(/the schema of data[.a]* nests more than 512 levels deep/);
});

test.each(['#/%', '#/definitions/%E0%A4%A', '%/%'])(
  'the reference %j is refused, by the field that has it',
  (ref) => {
    const payload = { type: 'object', properties: { lines: { type: 'array', items: { $ref: ref } } } };
    expect(() => read(payload)).toThrow(
      `${REFUSED}the schema of data.lines[] has the reference ${JSON.stringify(ref)}, which is not a JSON pointer.`,
    );
  },
);

test('long lists of values, required fields and parts are read in linear time', () => {
  const many = (of: (index: number) => unknown) => Array.from({ length: 20_000 }, (_, index) => of(index));
  const lists = (offset: number) => ({
    type: 'object',
    properties: Object.fromEntries(many((index) => [`f${index}`, { type: 'string' }]) as [string, object][]),
    required: many((index) => `f${index}`),
    not: { enum: many((index) => ({ index: index + offset })) },
  });
  const [before, after] = [read(lists(0)), read(lists(1))];
  expect(catalogChanges(before, after).map(({ path }) => path)).toEqual(['data']);
  const values = (offset: number) => read({ enum: many((index) => ({ index: index + offset })) });
  expect(catalogChanges(values(0), values(1)).map(({ breaking }) => breaking)).toEqual([true, false]);
});

test('a schema of any form is read or refused, with the code', () => {
  const keyword = fc.constantFrom(
    '$ref',
    'allOf',
    'anyOf',
    'oneOf',
    'type',
    'enum',
    'const',
    'properties',
    'required',
    'items',
    'not',
    '__proto__',
  );
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>('#/definitions/l0', '#/%', '#', '#/components', ['object'], 'object', 'array'),
  );
  const schema = fc.dictionary(
    keyword,
    fc.oneof(value, fc.dictionary(keyword, value), fc.array(fc.dictionary(keyword, value))),
  );
  fc.assert(
    fc.property(schema, schema, schema, (one, other, definition) => {
      try {
        catalogChanges(read(one, { l0: definition }), read(other, { l0: definition }));
      } catch (error) {
        expect(error).toMatchObject({ code: 'NOT_A_CATALOG' });
      }
    }),
    runs(300),
  );
});
