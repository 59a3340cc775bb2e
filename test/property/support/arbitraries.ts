import fc from 'fast-check';

/** Texts as UTF-16 may hold them: any character, halves of a pair on their own, and names that objects inherit. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0xd7f0, max: 0xe010 })).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    'toString',
    'null',
    '\u0000',
    '\u2028',
    '"',
    '\\',
    '\ufeff',
  ),
);

/** Numbers that JSON, JavaScript and DynamoDB do not agree on, and plain ones. */
export const anyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, 0.1, 1e21, 1e-7, 5e-324, 2 ** 53, 2 ** 63, Number.MAX_VALUE, Number.NaN, -Infinity),
);

/** Whatever `JSON.parse` may hand on. */
export const anyJson: fc.Arbitrary<unknown> = fc
  .letrec<{ value: unknown; leaf: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
      tie('leaf'),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(anyText, tie('value')), { maxLength: 4 }).map(own),
      // What String() and Number() stumble over.
      fc.record({ toString: tie('leaf'), valueOf: tie('leaf') }),
    ),
    leaf: fc.oneof(
      fc.constantFrom(null, true, false),
      anyNumber.map((number) => (Number.isFinite(number) ? number : null)),
      anyText,
    ),
  }))
  .value.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

const plainLeaf = fc.oneof(
  fc.constantFrom(null, true, false, undefined),
  anyNumber.filter((number) => Number.isFinite(number)),
  anyText,
);

/** Lists and objects with such leaves. */
function nested(leaf: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(anyText, tie('value')), { maxLength: 4 }).map(own),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
    ),
  })).value;
}

/** What a producer's code may hand over as a payload: also `undefined`, which JSON leaves out. */
export const anyPayload: fc.Arbitrary<unknown> = nested(plainLeaf);

/** What a handler's code may return: also what JSON turns into something else. */
export const anyData: fc.Arbitrary<unknown> = nested(
  fc.oneof(plainLeaf, anyNumber, fc.date(), fc.uint8Array()),
);

/** Values that a handler's code may return and that are stored. */
export const anyResult: fc.Arbitrary<unknown> = nested(fc.oneof(plainLeaf, fc.date({ noInvalidDate: true })));

/** Something that JSON empties, or leaves out. */
export const lostByJson = replacing(
  (value) => new Map([['key', value]]),
  (value) => new Set([value]),
  (value) => Promise.resolve(value),
  (value) => () => value,
  () => Symbol('s'),
  () => new Uint8Array(2),
  () => Number.NaN,
  () => -Infinity,
  () => new Date(Number.NaN),
  () => /x/,
  (value) => new Error(String(value)),
  () => new Headers({ a: '1' }),
);

/** Something in a payload that JSON turns into something else, or leaves out. */
export const replacedByJson = fc.oneof(
  lostByJson,
  replacing(() => new Date(0)),
);

function replacing(...replaced: ((value: unknown) => unknown)[]) {
  return fc
    .constantFrom(...replaced)
    .chain((by) => plainLeaf.map((leaf) => ({ deep: [{ leaf }, by(leaf)] })));
}

/** What JSON has no text for: the whole of it, or something in it. */
export const noJson = fc.oneof(
  fc.constantFrom<unknown>(undefined, Symbol('s'), () => 1),
  fc.bigInt().map((n) => ({ deep: [n] })),
  fc.constant(null).map(() => {
    const cycle: unknown[] = [];
    cycle.push({ cycle });
    return cycle;
  }),
  anyText.map((message) => ({
    toJSON: () => {
      throw new Error(message);
    },
  })),
);

/** Whatever code may throw: also what must not be looked at, and what looks like one of our own errors. */
export const anyThrown: fc.Arbitrary<unknown> = fc.oneof(
  fc.anything(),
  fc
    .tuple(anyText, anyText, anyJson)
    .map(([message, name, code]) => Object.assign(new Error(message), { name, code })),
  fc
    .constantFrom(
      'CONDITION_FAILED',
      'TRANSACTION_CANCELLED',
      'FENCE_LOST',
      'EFFECT_IN_PROGRESS',
      'OUT_OF_TIME',
    )
    .map((code) => ({ code })),
  fc.constantFrom('message', 'code', 'name').map(unreadable),
);

/** An object that throws when one of its members is read. */
function unreadable(member: string): object {
  const get = () => {
    throw new Error(`no access to ${member}`);
  };
  const value = () => `unreadable(${member})`;
  return Object.defineProperties({}, { [member]: { get, enumerable: true }, [fc.toStringMethod]: { value } });
}

/** An object with these members as its own, also `__proto__`. */
function own(members: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(members);
}
