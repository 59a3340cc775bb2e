import { expect, test } from 'vitest';
import { type ApiDeclaration, entryPage } from '../../../tools/site/api/page.ts';

const text = (text: string) => [{ text }];

const commit: ApiDeclaration = {
  kind: 'Interface',
  name: 'Commit',
  docComment: '/** What is written; {@link publish} sends it. */',
  excerptTokens: text('export interface Commit '),
  members: [
    {
      kind: 'PropertySignature',
      name: 'retryMs',
      isOptional: true,
      docComment: '/** A delay of {{x}} <b>.\n * @default 5\n */',
      excerptTokens: [{ text: 'readonly retryMs?: ' }, { text: 'Map<string, A | B>' }, { text: ';' }],
      propertyTypeTokenRange: { startIndex: 1, endIndex: 2 },
    },
    {
      kind: 'MethodSignature',
      name: 'commit',
      docComment: '/** Commits. */',
      excerptTokens: text('commit(): void;'),
    },
  ],
};
const publish: ApiDeclaration = {
  kind: 'Function',
  name: 'publish',
  docComment: [
    '/**',
    ' * Publishes.',
    ' * @param  - deps.clock - the time',
    ' * @returns the count',
    ' * @deprecated use `send`',
    ' * @throws `BAD_EVENT` if it is invalid',
    ' * @example',
    " * publish(['a_b']); // <1>",
    ' */',
  ].join('\n'),
  excerptTokens: text('export declare function publish(deps: Deps): number;'),
};
const runtime = {
  specifier: 'pkg/runtime',
  page: 'runtime',
  purpose: 'Runs.',
  declarations: [commit, publish],
};
const testing = {
  specifier: 'pkg/testing',
  page: 'testing',
  purpose: 'Tests.',
  declarations: [
    { ...publish, name: 'faked', docComment: '/** Like {@link Commit.commit}, for {@link Unknown}. */' },
  ],
};
const page = entryPage(runtime, [runtime, testing]);

test('each export has a heading, and is in the index', () => {
  expect(page).toContain('**Functions**: [publish](#publish)');
  expect(page).toContain('\n## Commit\n');
  expect(page).toContain('\n## publish\n');
});

test('properties are a row with type and default, as text, not as a template, a tag or a column', () => {
  expect(page).toContain(
    '| `retryMs?` | <code v-pre>Map&lt;string, A \\| B></code> | A delay of &#123;&#123;x}} &lt;b>.<br>Default: 5 |',
  );
});

test('a method has an address of its own beside an interface of its name', () => {
  expect(page).toContain('### Commit.commit()\n\nCommits.\n\n```ts\ncommit(): void;\n```');
});

test('parameters of an object, results, errors and examples are shown', () => {
  expect(page).toContain('- `deps.clock`: the time');
  expect(page).toContain('**Returns** the count');
  expect(page).toContain('**Deprecated:** use `send`');
  expect(page).toContain('- `BAD_EVENT` if it is invalid');
  expect(page).toContain("```ts\npublish(['a_b']); // <1>\n```");
});

test('links lead to the page of the entry that exports the name', () => {
  expect(page).toContain('[`publish`](#publish)');
  expect(entryPage(testing, [runtime, testing])).toContain(
    'Like [`Commit.commit`](runtime.md#commit), for `Unknown`.',
  );
});
