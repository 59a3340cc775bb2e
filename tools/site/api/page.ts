import { type ApiDeclaration, signatureOf, typeOf } from './declarations.ts';
import { escaped, type Words, wordsOf } from './tsdoc.ts';

/** An entry of the package. */
export interface Entry {
  /** The import specifier, e.g. `cdk-mailroom/runtime`. */
  readonly specifier: string;
  /** The page's file, without `.md`. */
  readonly page: string;
  /** Its purpose, a sentence. */
  readonly purpose: string;
  readonly declarations: readonly ApiDeclaration[];
}

/** Kinds of declarations in the order of the page's index, with their headings. */
const KINDS: Readonly<Record<string, string>> = {
  Class: 'Classes',
  Function: 'Functions',
  Interface: 'Interfaces',
  TypeAlias: 'Types',
  Variable: 'Constants',
};

type LinkTo = (name: string) => string | undefined;

/**
 * The page of one entry: an index, then each export under its own heading.
 *
 * @param entries - every entry, for links between them
 */
export function entryPage(entry: Entry, entries: readonly Entry[]): string {
  const linkTo: LinkTo = (name) => {
    const [owner = ''] = name.split(/[.#]/);
    const others = [entry, ...entries].find(({ declarations }) =>
      declarations.some((one) => one.name === owner),
    );
    if (others === undefined) return undefined;
    return `${others === entry ? '' : `${others.page}.md`}#${owner.toLowerCase()}`;
  };
  const byName = new Map<string, ApiDeclaration[]>();
  for (const one of entry.declarations)
    byName.set(one.name ?? '', [...(byName.get(one.name ?? '') ?? []), one]);
  return [
    `# ${entry.specifier}`,
    entry.purpose,
    ...Object.entries(KINDS).map(([kind, heading]) => index(entry.declarations, kind, heading)),
    ...[...byName].map(([name, overloads]) => section(name, overloads, linkTo)),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n');
}

function index(declarations: readonly ApiDeclaration[], kind: string, heading: string): string {
  const names = new Set(declarations.filter((one) => one.kind === kind).map(({ name = '' }) => name));
  const links = [...names].map((name) => `[${name}](#${name.toLowerCase()})`);
  return links.length === 0 ? '' : `**${heading}**: ${links.join(', ')}`;
}

function section(name: string, overloads: readonly ApiDeclaration[], linkTo: LinkTo): string {
  const parts = overloads.flatMap((one) => {
    const words = wordsOf(one.docComment ?? '', linkTo);
    const bare = signatureOf(one) === `interface ${name}`;
    return [words.summary, bare ? '' : code(one), ...details(words), members(one, linkTo)];
  });
  return [`## ${name}`, ...parts].filter((part) => part !== '').join('\n\n');
}

function code(declaration: ApiDeclaration): string {
  return `\`\`\`ts\n${signatureOf(declaration)}\n\`\`\``;
}

function details(words: Words): string[] {
  const params = [...words.params].map(([name, text]) => `- \`${name}\`: ${text.replaceAll('\n', ' ')}`);
  const throws = words.throws.map((text) => `- ${text.replaceAll(/\n+/g, ' ')}`);
  return [
    words.deprecated === '' ? '' : `**Deprecated:** ${words.deprecated}`,
    words.remarks,
    params.length === 0 ? '' : `**Parameters**\n\n${params.join('\n')}`,
    words.returns === '' ? '' : `**Returns** ${words.returns}`,
    words.defaultValue === '' ? '' : `**Default** ${words.defaultValue}`,
    throws.length === 0 ? '' : `**Throws**\n\n${throws.join('\n')}`,
    ...(words.examples.length === 0 ? [] : ['**Example**', ...words.examples]),
  ];
}

/** A table of the properties, then each method and constructor. */
function members({ name = '', members = [] }: ApiDeclaration, linkTo: LinkTo): string {
  const properties = members.filter(({ kind }) => kind.startsWith('Property'));
  const rows = properties.map((property) => row(property, linkTo));
  const table = ['| property | type | |', '| --- | --- | --- |', ...rows].join('\n');
  const calls = members
    .filter(({ kind }) => !kind.startsWith('Property'))
    .map((one) => call(name, one, linkTo));
  return [...(rows.length === 0 ? [] : [table]), ...calls].join('\n\n');
}

function row(property: ApiDeclaration, linkTo: LinkTo): string {
  const { summary, remarks, defaultValue, deprecated, throws } = wordsOf(property.docComment ?? '', linkTo);
  const cell = [
    deprecated === '' ? '' : `**Deprecated:** ${deprecated}`,
    summary,
    remarks,
    ...throws.map((text) => `Throws ${text}`),
    defaultValue === '' ? '' : `Default: ${defaultValue}`,
  ]
    .filter((part) => part !== '')
    .join('<br>')
    .replaceAll(/\n+/g, ' ');
  const type = `<code v-pre>${escaped(typeOf(property))}</code>`;
  return `| \`${property.name}${property.isOptional ? '?' : ''}\` | ${type} | ${cell} |`;
}

function call(owner: string, one: ApiDeclaration, linkTo: LinkTo): string {
  const words = wordsOf(one.docComment ?? '', linkTo);
  // With the owner's name, so that it has its own address: `Commit` and `commit` would share one.
  const member = one.name === undefined ? '' : `### ${owner}.${one.name}()`;
  const heading = one.kind === 'Constructor' ? `### new ${owner}()` : member;
  // API Extractor writes a sentence for each constructor that has none.
  const summary = /^Constructs a new instance of the/.test(words.summary) ? '' : words.summary;
  return [heading, summary, code(one), ...details(words)].filter((part) => part !== '').join('\n\n');
}
