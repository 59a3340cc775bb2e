/** The parts of a doc comment, as Markdown. */
export interface CommentParts {
  readonly summary: string;
  readonly params: readonly (readonly [name: string, text: string])[];
  readonly returns: string;
  readonly throws: readonly string[];
  readonly examples: readonly string[];
  readonly defaultValue: string;
  readonly deprecated: string;
}

/** The block tags of this repository's comments. One may follow text in its line. */
const TAGS = /(?:^|\s)@(param|returns|throws|example|default|deprecated)\b/;

/**
 * Reads a doc comment, whose text is Markdown.
 *
 * @param comment - with its slashes and stars; may be empty
 * @param linkTo - the address of a declaration, from a `{@link}`; undefined where the reference has none
 * @example
 * commentParts('/** Publishes. *\/', () => undefined).summary; // 'Publishes.'
 */
export function commentParts(comment: string, linkTo: (name: string) => string | undefined): CommentParts {
  const text = comment
    .replace(/^\/\*\*|\*\/\s*$/g, '')
    .replaceAll(/^[ \t]*\* ?/gm, '')
    .replaceAll(/\{@link ([^\s}|]+)(?: *\| *([^}]*))?\}/g, (_, name: string, shown: string = name) => {
      const to = linkTo(name);
      return to === undefined ? `\`${shown}\`` : `[\`${shown}\`](${to})`;
    });
  const [summary = '', ...blocks] = text.split(TAGS);
  const of = (tag: string) =>
    blocks.flatMap((name, at) => (at % 2 === 0 && name === tag ? [(blocks[at + 1] ?? '').trim()] : []));
  return {
    summary: plainText(summary.trim()),
    // API Extractor writes a second dash before a name with dots.
    params: of('param').map((param) => {
      const [, name = '', about = ''] = /^(?:- )?([\w.]+)(?: +-)?\s*([\s\S]*)$/.exec(param) ?? [];
      return [name, plainText(about)];
    }),
    returns: plainText(of('returns').join(' ')),
    throws: of('throws').map(plainText),
    // An example without a fence is code, too.
    examples: of('example').map((code) => (code.includes('```') ? code : `\`\`\`ts\n${code}\n\`\`\``)),
    defaultValue: plainText(of('default').join(' ')),
    deprecated: plainText(of('deprecated').join(' ')),
  };
}

/** Markdown without tags, templates of Vue and drawn lines that look like a table, outside code. */
function plainText(text: string): string {
  const parts = text.split(/(```[\s\S]*?```|`[^`\n]*`)/);
  return parts.map((part, at) => (at % 2 === 1 ? part : escaped(part).replaceAll('|', '&#124;'))).join('');
}

/** Text without characters that begin a tag or a template. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('{', '&#123;');
}
