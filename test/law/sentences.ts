/** Code that reads a sentence. */
export interface ReadSentence {
  /** From 1. */
  readonly line: number;
  /** The member or variable whose words are read, e.g. `lastError`. */
  readonly name: string;
  /** The line of code, trimmed. */
  readonly code: string;
}

/** Members and variables that hold sentences: an error, an operator's text, a finding. */
const SENTENCE = String.raw`(?:errorMessage\([^()]*\)|\b(?:lastError|\w*[rR]easons?|message|subject|fingerprint|summary|description|sentence|what|why|said|explanation|line|problem)\b|\.text\b)`;

/** The text allowed between a sentence and the call: a default, another case, a cut. */
const CHANGED = String.raw`(?:\s*\?\?\s*(?:''|"")\s*\)?|\)|\s*\??\.(?:toLowerCase|toUpperCase|trim|normalize|slice|replace|replaceAll|concat)\((?:[^()]|\([^()]*\))*\))*`;

const READS = [
  // lastError.includes('…'), (reason ?? '').toLowerCase().startsWith('…'), message.split(…)
  new RegExp(
    String.raw`(${SENTENCE})${CHANGED}\s*\??\.\s*(?:includes|startsWith|endsWith|match|matchAll|search|split|indexOf|replace|replaceAll)\(`,
    'g',
  ),
  // /…/.test(lastError), PATTERN.exec(`${code} ${message}`)
  new RegExp(String.raw`\.(?:test|exec)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?(${SENTENCE})`, 'g'),
  // lastError === 'The bank is closed': a word alone may be a code
  new RegExp(String.raw`(${SENTENCE})\s*[!=]==\s*(['"\x60])(?:(?!\2)[^\n])*\s(?:(?!\2)[^\n])*\2`, 'g'),
];

/**
 * Finds where the code reads the words of a sentence to decide something.
 *
 * @example
 * ```ts
 * sentencesReadIn("if (row.lastError?.includes('over the limit')) return;"); // [{ line: 1, name: 'lastError', code: … }]
 * ```
 */
export function sentencesReadIn(source: string): ReadSentence[] {
  const code = withoutComments(source);
  const lines = source.split('\n');
  const found = READS.flatMap((read) =>
    [...code.matchAll(read)].map((match) => {
      const line = code.slice(0, match.index + match[0].length).split('\n').length;
      return { line, name: match[1] ?? '', code: lines[line - 1]?.trim() ?? '' };
    }),
  );
  return [...new Map(found.map((one) => [one.line, one])).values()].sort((a, b) => a.line - b.line);
}

/** The code with its comments as blanks, so that the lines stay. */
function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|(?<=[;{,\s])\/\/ .*$/gm, (comment) =>
    comment.replace(/[^\n]/g, ' '),
  );
}
