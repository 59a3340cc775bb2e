/** A message in the source code, as the call that makes the error has it. */
export interface SourceMessage {
  readonly line: number;
  /** The code of the error; absent if a variable holds it. */
  readonly code: string | undefined;
  /** The last literal of the message, with its quotes; another expression as it is. */
  readonly end: string;
}

/** The calls that make an error, up to the bracket of their arguments. */
const CALLS =
  /\bnew (?<made>MailroomError|PoisonMessage|FenceLost)\(|(?<!function )\b(?<poison>poison)\(|\b(?<base>super)\((?=\s*'[A-Z])/g;

/**
 * Finds the errors that a TypeScript file makes.
 *
 * @example
 * messagesIn("throw new MailroomError('NO_BUS', 'There is no bus.');"); // [{ line: 1, code: 'NO_BUS', end: "'There is no bus.'" }]
 */
export function messagesIn(code: string): SourceMessage[] {
  return [...code.matchAll(CALLS)].flatMap((match) => {
    if (/^\s*(?:\*|\/\/).*$/.test(lineUpTo(code, match.index))) return [];
    const values = argumentsOf(code, match.index + match[0].length);
    const hasCode = match.groups?.made !== 'PoisonMessage' && match.groups?.made !== 'FenceLost';
    const message = values[hasCode ? 1 : 0];
    if (message === undefined) return [];
    const line = code.slice(0, match.index).split('\n').length;
    const named = hasCode ? /^'(\w+)'$/.exec(values[0] ?? '')?.[1] : undefined;
    return [{ line, code: named, end: lastPart(message) }];
  });
}

function lineUpTo(code: string, offset: number): string {
  return code.slice(code.lastIndexOf('\n', offset) + 1, offset);
}

/** The arguments of a call, from behind its opening bracket. */
function argumentsOf(code: string, from: number): string[] {
  const values: string[] = [];
  let start = from;
  let depth = 0;
  for (let at = from; at < code.length; at += 1) {
    const character = code[at] ?? '';
    if (`'"\``.includes(character)) at = endOfLiteral(code, at) - 1;
    else if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character) && --depth < 0) return [...values, code.slice(start, at).trim()];
    else if (character === ',' && depth === 0) {
      values.push(code.slice(start, at).trim());
      start = at + 1;
    }
  }
  return values;
}

/** The offset behind a literal that begins at an offset. */
function endOfLiteral(code: string, from: number): number {
  const quote = code[from];
  for (let at = from + 1; at < code.length; at += 1) {
    if (code[at] === '\\') at += 1;
    else if (quote === '`' && code.startsWith('${', at)) at = endOfInserted(code, at + 2) - 1;
    else if (code[at] === quote) return at + 1;
  }
  return code.length;
}

function endOfInserted(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at += 1) {
    const character = code[at] ?? '';
    if (`'"\``.includes(character)) at = endOfLiteral(code, at) - 1;
    else if (character === '{') depth += 1;
    else if (character === '}' && --depth < 0) return at + 1;
  }
  return code.length;
}

/** The last literal of a sum of literals, or of a choice of which only one side is a literal. */
function lastPart(message: string): string {
  let part = message;
  for (let at = 0; at < message.length; at += 1) {
    if (!`'"\``.includes(message[at] ?? '')) continue;
    const end = endOfLiteral(message, at);
    part = message.slice(at);
    at = end - 1;
  }
  return part.replace(/ : [\w.]+\(\w+\)$/, '').trim();
}
