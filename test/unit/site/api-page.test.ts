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
  docComment: '/** Publishes. */',
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

test('properties are a row with type and default, as text, not as a template, a tag or a column', () => {
  expect(page).toContain(
    '| `retryMs?` | <code v-pre>Map&lt;string, A \\| B></code> | A delay of &#123;&#123;x}} &lt;b>.<br>Default: 5 |',
  );
});

test('links lead to the page of the entry that exports the name', () => {
  expect(page).toContain('[`publish`](#publish)');
  expect(entryPage(testing, [runtime, testing])).toContain(
    'Like [`Commit.commit`](runtime.md#commit), for `Unknown`.',
  );
});
