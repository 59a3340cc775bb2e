/** A part of a TypeScript file that a person reads. */
export interface CodeText {
  /** `doc` for a comment that starts with two asterisks, `comment` for any other, `string` for a literal or a template. */
  readonly kind: 'doc' | 'comment' | 'string';
  /** Its text without quotes or comment marks, which are spaces here, so that offsets and lines stay right. */
  readonly text: string;
  /** The line of the file on which `text` begins, counted from 1. */
  readonly line: number;
}

const TOKEN = [
  /(?<doc>\/\*\*(?!\/)[\s\S]*?\*\/)/,
  /(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*)/,
  /(?<string>'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*")/,
  /(?<template>`)/,
  // A slash begins a regular expression only where a value can begin: elsewhere it divides.
  /(?<regex>(?<=(?:^|[(,=:[!&|?{};>+]|\breturn|\bcase)\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/)/,
  /(?<open>\{)/,
  /(?<close>\})/,
];
const ANY = new RegExp(TOKEN.map(({ source }) => source).join('|'), 'g');

/**
 * The comments, strings and templates of a TypeScript file. A template is one text, with spaces for what it inserts; strings inside
 * an inserted expression are separate texts.
 *
 * @example
 * textsOfCode("const a = 'one'; // two"); // [{ kind: 'string', text: ' one ', line: 1 }, { kind: 'comment', … }]
 */
export function textsOfCode(code: string): CodeText[] {
  const texts: CodeText[] = [];
  scan(code, 0, texts);
  return texts;
}

/** Reads up to the brace that closes the expression begun before `from`, or to the end. Returns the offset behind it. */
function scan(code: string, from: number, texts: CodeText[]): number {
  let depth = 0;
  const pattern = new RegExp(ANY);
  pattern.lastIndex = from;
  for (let match = pattern.exec(code); match !== null; match = pattern.exec(code)) {
    const { doc, comment, string, template, open, close } = match.groups ?? {};
    const add = (kind: CodeText['kind'], text: string) =>
      texts.push({ kind, text, line: lineAt(code, match.index) });
    if (doc !== undefined) add('doc', unmarked(doc));
    else if (comment !== undefined) add('comment', unmarked(comment));
    else if (string !== undefined) add('string', ` ${string.slice(1, -1)} `);
    else if (template !== undefined) pattern.lastIndex = scanTemplate(code, match.index, texts);
    else if (open !== undefined) depth += 1;
    else if (close !== undefined && --depth < 0) return pattern.lastIndex;
  }
  return code.length;
}

/** Reads a template from its first backtick. Returns the offset behind its last one. */
function scanTemplate(code: string, from: number, texts: CodeText[]): number {
  let text = ' ';
  let at = from + 1;
  while (at < code.length && code[at] !== '`') {
    if (code.startsWith('${', at)) {
      const end = scan(code, at + 2, texts);
      text += blank(code.slice(at, end));
      at = end;
    } else {
      const length = code[at] === '\\' ? 2 : 1;
      text += code.slice(at, at + length);
      at += length;
    }
  }
  texts.push({ kind: 'string', text, line: lineAt(code, from) });
  return at + 1;
}

/** A comment with spaces for its slashes and for the asterisks at the left. */
function unmarked(comment: string): string {
  return comment.replace(/^\/[*/]+|\*+\/$/g, blank).replace(/\n[ \t]*\*/g, blank);
}

/** As many spaces as a text has characters; its line breaks stay. */
export function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ');
}

function lineAt(code: string, offset: number): number {
  return code.slice(0, offset).split('\n').length;
}
