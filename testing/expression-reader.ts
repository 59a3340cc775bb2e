import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Attributes } from './attribute-values.ts';
import type { Path } from './document-path.ts';
import { isReservedWord } from './reserved-words.ts';
import { ValidationException } from './validation-exception.ts';

/** The longest expression, in bytes (DynamoDB service quotas, expression parameters). */
const EXPRESSION_BYTES_MAX = 4_096;

/** One word: a name, a placeholder or a number; or a sign. */
const TOKEN = /\s*(?:([A-Za-z_]\w*|#\w+|:\w+|\d+)|(<>|<=|>=|[=<>+\-,.()[\]]))/y;

/** The `#names` and `:values` of one request, and which of them its expressions have used. */
export class Placeholders {
  readonly #names: Readonly<Record<string, string>>;
  readonly #values: Attributes;
  readonly #used = new Set<string>();

  constructor(names: Readonly<Record<string, string>> = {}, values: Attributes = {}) {
    this.#names = names;
    this.#values = values;
  }

  /** The attribute name behind `#name`; `undefined` when it is not defined. */
  name(placeholder: string): string | undefined {
    this.#used.add(placeholder);
    return this.#names[placeholder];
  }

  /** The value behind `:name`; `undefined` when it is not defined. */
  value(placeholder: string): AttributeValue | undefined {
    this.#used.add(placeholder);
    return this.#values[placeholder];
  }

  /** @throws ValidationException when a name or a value was given that no expression uses */
  assertUsed(): void {
    for (const [list, given] of [
      ['ExpressionAttributeNames', this.#names],
      ['ExpressionAttributeValues', this.#values],
    ] as const) {
      const unused = Object.keys(given).filter((placeholder) => !this.#used.has(placeholder));
      if (unused.length > 0) {
        throw new ValidationException(
          `Value provided in ${list} unused in expressions: keys: {${unused.join(', ')}}`,
        );
      }
    }
  }
}

/** Reads an expression word by word; the grammars of conditions and of updates are built on it. */
export class ExpressionReader {
  readonly #kind: string;
  readonly #tokens: readonly string[];
  readonly #placeholders: Placeholders;
  #next = 0;

  /** @param kind - as errors name it: `ConditionExpression` or `UpdateExpression` */
  constructor(kind: string, text: string, placeholders: Placeholders) {
    this.#kind = kind;
    this.#placeholders = placeholders;
    if (text.trim() === '') throw this.error('The expression can not be empty;');
    if (Buffer.byteLength(text) > EXPRESSION_BYTES_MAX) {
      throw this.error('Expression size has exceeded the maximum allowed size;');
    }
    this.#tokens = this.#split(text.trimEnd());
  }

  /** The next word, without reading it; `''` at the end. */
  peek(ahead = 0): string {
    return this.#tokens[this.#next + ahead] ?? '';
  }

  /** Reads the next word. */
  take(): string {
    const token = this.peek();
    this.#next += 1;
    return token;
  }

  /** Reads the next word if it is this one; keywords are known in any case. */
  accept(word: string): boolean {
    const found = this.peek().toUpperCase() === word;
    if (found) this.#next += 1;
    return found;
  }

  /** Reads the next word, which must be this one. */
  expect(word: string): void {
    if (!this.accept(word)) throw this.syntaxError();
  }

  /** Reads a list of one or more things with commas between. */
  list<T>(read: () => T): T[] {
    const things = [read()];
    while (this.accept(',')) things.push(read());
    return things;
  }

  /** Reads `:name`. */
  value(): AttributeValue {
    const placeholder = this.take();
    const value = this.#placeholders.value(placeholder);
    if (value) return value;
    throw this.error(
      `An expression attribute value used in expression is not defined; attribute value: ${placeholder}`,
    );
  }

  /** Whether a `:name` comes next. */
  atValue(): boolean {
    return this.peek().startsWith(':');
  }

  /** Whether the function of this name comes next. */
  atFunction(name: string): boolean {
    return this.peek() === name && this.peek(1) === '(';
  }

  /** Reads a document path, e.g. `#lines[0].sku`. */
  path(): Path {
    const steps: (string | number)[] = [this.#name()];
    for (;;) {
      if (this.accept('.')) {
        steps.push(this.#name());
      } else if (this.accept('[')) {
        const index = this.take();
        if (!/^\d+$/.test(index)) throw this.syntaxError(-1);
        steps.push(Number(index));
        this.expect(']');
      } else {
        return steps;
      }
    }
  }

  /** Makes sure that nothing is left to read. */
  end(): void {
    if (this.peek() !== '') throw this.syntaxError();
  }

  error(message: string): ValidationException {
    return new ValidationException(`Invalid ${this.#kind}: ${message}`);
  }

  /** The error for a word in a wrong place. */
  syntaxError(ahead = 0): ValidationException {
    const near = this.#tokens.slice(Math.max(0, this.#next + ahead - 1), this.#next + ahead + 2).join(' ');
    return this.error(`Syntax error; token: "${this.peek(ahead) || '<EOF>'}", near: "${near}"`);
  }

  #name(): string {
    const token = this.take();
    if (token.startsWith('#')) {
      const name = this.#placeholders.name(token);
      if (name !== undefined) return name;
      throw this.error(
        `An expression attribute name used in the document path is not defined; attribute name: ${token}`,
      );
    }
    if (!/^[A-Za-z_]/.test(token)) throw this.syntaxError(-1);
    if (this.peek() === '(') throw this.error(`Invalid function name; function: ${token}`);
    if (isReservedWord(token)) {
      throw this.error(`Attribute name is a reserved keyword; reserved keyword: ${token}`);
    }
    return token;
  }

  #split(text: string): string[] {
    const tokens: string[] = [];
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const start = TOKEN.lastIndex;
      const match = TOKEN.exec(text);
      if (!match)
        throw this.error(
          `Syntax error; token: "${text.slice(start).trim()[0]}", near: "${text.slice(start)}"`,
        );
      tokens.push(match[1] ?? match[2] ?? '');
    }
    return tokens;
  }
}
