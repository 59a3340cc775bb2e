import { readFileSync } from 'node:fs';

/** A fenced block of a Markdown page. */
export interface CodeBlock {
  /** The first word after the fence, such as `ts`. Empty if there is none. */
  readonly language: string;
  /** What `file=` says after the language. */
  readonly file: string | undefined;
  /** The text between the fences, with the fence's own indentation taken away. Ends with a line break. */
  readonly code: string;
  /** The line of the page on which `code` begins, counted from 1. */
  readonly line: number;
  /** What the HTML comment directly above a `ts` block adds in front of it: needed to compile, not to read. */
  readonly prelude: { readonly code: string; readonly line: number } | undefined;
  /** The text of the heading that the block is under. Empty above the first one. */
  readonly heading: string;
}

const FENCE = /^(?<indent> *)(?<ticks>`{3,})(?<info>[^`]*)$/;
const HEADING = /^#{1,6} +(?<text>.*?) *#*$/;
const PRELUDE_BEGINS = /^ *<!-- ts *$/;
const PRELUDE_ENDS = /^ *--> *$/;

/**
 * The fenced blocks of a Markdown text, in its order.
 *
 * @throws Error If a fence or the comment of a prelude is never closed, or if a prelude is above anything but a `ts` block.
 * @example
 * codeBlocks('```ts file=src/a.ts\nexport {};\n```\n')[0]?.file; // 'src/a.ts'
 */
export function codeBlocks(markdown: string): CodeBlock[] {
  const lines = markdown.split('\n');
  const blocks: CodeBlock[] = [];
  let heading = '';
  let prelude: CodeBlock['prelude'];
  for (let at = 0; at < lines.length; at += 1) {
    const text = lines[at] ?? '';
    const fence = FENCE.exec(text)?.groups;
    if (prelude !== undefined && !/^ts\b/.test(fence?.info?.trim() ?? '')) {
      throw new Error(
        `Line ${at + 1}: expected a ts block directly below the "<!-- ts" comment; move it there.`,
      );
    }
    if (fence !== undefined) {
      const { indent = '', ticks = '', info = '' } = fence;
      const closing = new RegExp(`^ *${ticks}\`* *$`);
      const end = lines.findIndex((line, index) => index > at && closing.test(line));
      if (end < 0) throw new Error(`Line ${at + 1}: the fence "${text.trim()}" is never closed; close it.`);
      const [language = '', ...words] = info.trim().split(/\s+/);
      const file = words.find((word) => word.startsWith('file='))?.slice('file='.length);
      blocks.push({
        language,
        file,
        code: lined(lines.slice(at + 1, end), indent),
        line: at + 2,
        prelude,
        heading,
      });
      prelude = undefined;
      at = end;
    } else if (PRELUDE_BEGINS.test(text)) {
      const end = lines.findIndex((line, index) => index > at && PRELUDE_ENDS.test(line));
      if (end < 0)
        throw new Error(`Line ${at + 1}: the comment "<!-- ts" is never closed; close it with "-->".`);
      prelude = { code: lined(lines.slice(at + 1, end), ''), line: at + 2 };
      at = end;
    } else {
      heading = HEADING.exec(text)?.groups?.text ?? heading;
    }
  }
  return blocks;
}

/**
 * The files of the app in docs/getting-started.md, each with its whole text: prelude first, then the block.
 *
 * @example
 * firstAppFiles().get('src/events.ts');
 */
export function firstAppFiles(): ReadonlyMap<string, string> {
  const page = readFileSync(new URL('../../docs/getting-started.md', import.meta.url), 'utf8');
  const named = codeBlocks(page).flatMap(({ file, prelude, code }) =>
    file === undefined ? [] : [[file, (prelude?.code ?? '') + code] as const],
  );
  return new Map(named);
}

function lined(lines: readonly string[], indent: string): string {
  return lines
    .map((line) => `${line.startsWith(indent) ? line.slice(indent.length) : line.trimStart()}\n`)
    .join('');
}
