import {
  type DocHtmlEndTag,
  type DocHtmlStartTag,
  type DocNode,
  type DocSection,
  StandardTags,
  TSDocConfiguration,
  TSDocParser,
  TSDocTagDefinition,
  TSDocTagSyntaxKind,
} from '@microsoft/tsdoc';

/** The parts of a doc comment, as Markdown. */
export interface Words {
  readonly summary: string;
  readonly remarks: string;
  readonly params: ReadonlyMap<string, string>;
  readonly returns: string;
  readonly throws: readonly string[];
  readonly examples: readonly string[];
  readonly defaultValue: string;
  readonly deprecated: string;
}

/** Editors know `@default`; TSDoc's own grammar has `@defaultValue`. */
const DEFAULT = new TSDocTagDefinition({ tagName: '@default', syntaxKind: TSDocTagSyntaxKind.BlockTag });

/**
 * Reads a doc comment.
 *
 * @param comment - with its slashes and stars; may be empty
 * @param linkTo - the address of a declaration, from a `{@link}`; undefined where the reference has none
 * @example
 * wordsOf('/** Publishes. *\/', () => undefined).summary; // 'Publishes.'
 */
export function wordsOf(comment: string, linkTo: (name: string) => string | undefined): Words {
  const configuration = new TSDocConfiguration();
  configuration.addTagDefinition(DEFAULT);
  const { docComment } = new TSDocParser(configuration).parseString(
    nested(comment === '' ? '/** */' : comment),
  );
  const text = (section: DocSection | undefined) =>
    section === undefined ? '' : markdown(section, linkTo).trim();
  const blocks = (tag: string) =>
    docComment.customBlocks
      .filter(({ blockTag }) => blockTag.tagNameWithUpperCase === tag.toUpperCase())
      .map(({ content }) => text(content));
  return {
    summary: text(docComment.summarySection),
    remarks: text(docComment.remarksBlock?.content),
    params: new Map(
      docComment.params.blocks.map((block) => [
        block.parameterName.replaceAll('__', '.'),
        text(block.content),
      ]),
    ),
    returns: text(docComment.returnsBlock?.content),
    throws: blocks(StandardTags.throws.tagName),
    examples: blocks(StandardTags.example.tagName).map(exampleCode),
    defaultValue: blocks('@default').join(' '),
    deprecated: text(docComment.deprecatedBlock?.content),
  };
}

/** TSDoc's names have no dots: `@param deps.clock` is read as `deps__clock`. API Extractor writes a dash before them. */
function nested(comment: string): string {
  return comment.replaceAll(
    /@param\s+(?:- )?(?<name>\w+(?:\.\w+)+) - /g,
    (_, name: string) => `@param ${name.replaceAll('.', '__')} - `,
  );
}

/** An example without a fence is code, too. */
function exampleCode(example: string): string {
  return example.includes('```') ? example : `\`\`\`ts\n${unescaped(example)}\n\`\`\``;
}

/** The nodes of a comment as Markdown that Vue does not read as a template. */
function markdown(node: DocNode, linkTo: (name: string) => string | undefined): string {
  const inside = () =>
    node
      .getChildNodes()
      .map((child) => markdown(child, linkTo))
      .join('');
  const as = node as never as Record<string, string> & { codeDestination?: { emitAsTsdoc(): string } };
  switch (node.kind) {
    case 'PlainText':
      return escaped(as.text ?? '');
    case 'EscapedText':
      return escaped(as.decodedText ?? '');
    case 'SoftBreak':
      return '\n';
    case 'CodeSpan':
      return `\`${as.code}\``;
    case 'FencedCode':
      return `\n\`\`\`${as.language || 'ts'}\n${(as.code ?? '').trimEnd()}\n\`\`\`\n`;
    case 'LinkTag':
      return link(as, linkTo);
    case 'Paragraph':
      return `${inside().trim()}\n\n`;
    case 'ErrorText':
      return escaped(as.text ?? '');
    case 'HtmlStartTag':
    case 'HtmlEndTag':
      return escaped((node as DocHtmlStartTag | DocHtmlEndTag).emitAsHtml());
    default:
      return inside();
  }
}

function link(
  tag: Record<string, string> & { codeDestination?: { emitAsTsdoc(): string } },
  linkTo: (name: string) => string | undefined,
): string {
  const name = tag.codeDestination?.emitAsTsdoc() ?? '';
  if (name === '') return `[${tag.linkText ?? tag.urlDestination}](${tag.urlDestination})`;
  const text = `\`${tag.linkText ?? name}\``;
  const to = linkTo(name);
  return to === undefined ? text : `[${text}](${to})`;
}

/** Text as Markdown that means just this text. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('{', '&#123;')
    .replaceAll(/([*_|[\]])/g, '\\$1');
}

function unescaped(text: string): string {
  return text
    .replaceAll(/\\([*_|[\]])/g, '$1')
    .replaceAll('&#123;', '{')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
}
