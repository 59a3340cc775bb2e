import { type CommentParts, commentParts, escaped } from './comment.ts';

/** One declaration of an entry, as API Extractor's model has it. */
export interface ApiDeclaration {
  readonly kind: string;
  /** Constructors have none. */
  readonly name?: string;
  readonly docComment?: string;
  readonly isOptional?: boolean;
  readonly excerptTokens: readonly { readonly text: string }[];
  readonly propertyTypeTokenRange?: { readonly startIndex: number; readonly endIndex: number };
  readonly members?: readonly ApiDeclaration[];
}

/** An entry of the package. */
export interface ApiEntry {
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
 * The exports of an entry, in alphabetical order.
 *
 * @param model - the JSON that API Extractor wrote
 * @throws Error If the model has no entry.
 */
export function declarationsOf(model: string): readonly ApiDeclaration[] {
  const [entry] = (JSON.parse(model) as ApiDeclaration).members ?? [];
  if (entry?.members === undefined) throw new Error('The model of the API has no entry point.');
  return entry.members.toSorted((a, b) => (a.name ?? '').localeCompare(b.name ?? '', 'en'));
}

/**
 * The page of one entry: an index, then each export under its own heading.
 *
 * @param entries - every entry, for links between them
 */
export function entryPage(entry: ApiEntry, entries: readonly ApiEntry[]): string {
  const linkTo: LinkTo = (name) => {
    const [owner = ''] = name.split(/[.#]/);
    const found = [entry, ...entries].find(({ declarations }) =>
      declarations.some((one) => one.name === owner),
    );
    return found && `${found === entry ? '' : `${found.page}.md`}#${owner.toLowerCase()}`;
  };
  const names = [...new Set(entry.declarations.map(({ name = '' }) => name))];
  return joined([
    `# ${entry.specifier}`,
    entry.purpose,
    ...Object.entries(KINDS).map(([kind, heading]) => index(entry.declarations, kind, heading)),
    ...names.flatMap((name) => [
      `## ${name}`,
      ...entry.declarations.filter((one) => one.name === name).map((one) => declared(one, linkTo)),
    ]),
  ]).concat('\n');
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n');
}

function index(declarations: readonly ApiDeclaration[], kind: string, heading: string): string {
  const names = new Set(declarations.filter((one) => one.kind === kind).map(({ name = '' }) => name));
  const links = [...names].map((name) => `[${name}](#${name.toLowerCase()})`);
  return links.length === 0 ? '' : `**${heading}**: ${links.join(', ')}`;
}

/** One declaration: its comment, its signature, a table of its properties, then each method and constructor. */
function declared(one: ApiDeclaration, linkTo: LinkTo): string {
  const { name = '', docComment = '', members = [], excerptTokens } = one;
  const { summary, ...parts } = commentParts(docComment, linkTo);
  const text = excerptTokens.map((token) => token.text).join('');
  const signature = text.replace(/^\s*export declare |^\s*export /, '').trim();
  const isProperty = ({ kind }: ApiDeclaration) => kind.startsWith('Property');
  const rows = members.filter(isProperty).map((property) => row(property, linkTo));
  const calls = members
    .filter((member) => !isProperty(member))
    .map((call) => {
      // With the owner's name, so that it has its own address: `Commit` and `commit` would share one.
      const heading =
        call.kind === 'Constructor' ? `### new ${name}()` : call.name && `### ${name}.${call.name}()`;
      return joined([heading ?? '', declared(call, linkTo)]);
    });
  return joined([
    // API Extractor writes a sentence for each constructor that has none.
    /^Constructs a new instance of the/.test(summary) ? '' : summary,
    signature === `interface ${name}` ? '' : `\`\`\`ts\n${signature}\n\`\`\``,
    ...details(parts),
    rows.length === 0 ? '' : ['| property | type | |', '| --- | --- | --- |', ...rows].join('\n'),
    ...calls,
  ]);
}

function details(parts: Omit<CommentParts, 'summary'>): string[] {
  const { params, returns, throws, defaultValue, deprecated, examples } = parts;
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? '' : `**${title}**\n\n${lines.map((line) => `- ${oneLine(line)}`).join('\n')}`;
  return [
    deprecated === '' ? '' : `**Deprecated:** ${deprecated}`,
    list(
      'Parameters',
      params.map(([name, text]) => `\`${name}\`: ${text}`),
    ),
    returns === '' ? '' : `**Returns** ${returns}`,
    defaultValue === '' ? '' : `**Default** ${defaultValue}`,
    list('Throws', throws),
    ...(examples.length === 0 ? [] : ['**Example**', ...examples]),
  ];
}

function row({ name, isOptional, docComment = '', ...property }: ApiDeclaration, linkTo: LinkTo): string {
  const { summary, defaultValue, throws, deprecated } = commentParts(docComment, linkTo);
  const cell = [
    deprecated && `**Deprecated:** ${deprecated}`,
    summary,
    ...throws.map((text) => `Throws ${text}`),
    defaultValue && `Default: ${defaultValue}`,
  ];
  const { startIndex = 0, endIndex = 0 } = property.propertyTypeTokenRange ?? {};
  const tokens = property.excerptTokens.slice(startIndex, endIndex);
  const type = oneLine(tokens.map(({ text }) => text).join('')).trim();
  const columns = [
    `\`${name}${isOptional ? '?' : ''}\``,
    `<code v-pre>${escaped(type)}</code>`,
    oneLine(cell.filter((part) => part !== '').join('<br>')),
  ];
  return `| ${columns.map((column) => column.replaceAll('|', '\\|')).join(' | ')} |`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
