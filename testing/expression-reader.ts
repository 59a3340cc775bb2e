import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Attributes } from './attribute-values.ts';
import type { Path } from './document-path.ts';
import { isReservedWord } from './reserved-words.ts';
import { ValidationException } from './validation-exception.ts';

/** The maximum length of an expression in bytes (DynamoDB service quotas, expression parameters). */
const EXPRESSION_BYTES_MAX = 4_096;

/** One token: a name, a placeholder, a number or a sign. */
const TOKEN = /\s*(?:([A-Za-z_]\w*|#\w+|:\w+|\d+)|(<>|<=|>=|[=<>+\-,.()[\]]))/y;

/** The tokens of the expressions so far: a program writes few different ones, each many times. */
const SPLIT = new Map<string, readonly string[]>();

const SPLIT_MAX = 1_000;

/** The `#names` and `:values` of one request, and the ones its expressions have used. */
export class Placeholders {
  readonly #names: Readonly<Record<string, string>>;
  readonly #values: Attributes;
  readonly #used = new Set<string>();

  constructor(names: Readonly<Record<string, string>> = {}, values: Attributes = {}) {
    this.#names = names;
    this.#values = values;
  }

  /** The attribute name behind `#name`; `undefined` if it is not defined. */
  name(placeholder: string): string | undefined {
    this.#used.add(placeholder);
    return this.#names[placeholder];
  }

  /** The value behind `:name`; `undefined` if it is not defined. */
  value(placeholder: string): AttributeValue | undefined {
    this.#used.add(placeholder);
    return this.#values[placeholder];
  }

  /** @throws ValidationException if a name or value is not used by any expression */
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

/** Reads an expression token by token; the grammars of conditions and updates are built on it. */
export class ExpressionReader {
  readonly #kind: string;
  readonly #tokens: readonly string[];
  readonly #placeholders: Placeholders;
  #next = 0;

  /** @param kind - the name used in errors: `ConditionExpression` or `UpdateExpression` */
  constructor(kind: string, text: string, placeholders: Placeholders) {
    this.#kind = kind;
    this.#placeholders = placeholders;
    if (text.trim() === '') throw this.error('The expression can not be empty;');
    if (Buffer.byteLength(text) > EXPRESSION_BYTES_MAX) {
      throw this.error('Expression size has exceeded the maximum allowed size;');
    }
    this.#tokens = SPLIT.get(text) ?? this.#split(text.trimEnd());
    if (SPLIT.size < SPLIT_MAX) SPLIT.set(text, this.#tokens);
  }

  /** Returns the next token without consuming it; `''` at the end. */
  peek(ahead = 0): string {
    return this.#tokens[this.#next + ahead] ?? '';
  }

  /** Consumes the next token. */
  take(): string {
    const token = this.peek();
    this.#next += 1;
    return token;
  }

  /** Consumes the next token if it is this one; keywords are case-insensitive. */
  accept(word: string): boolean {
    const found = this.peek().toUpperCase() === word;
    if (found) this.#next += 1;
    return found;
  }

  /** Consumes the next token, which must be this one. */
  expect(word: string): void {
    if (!this.accept(word)) throw this.syntaxError();
  }

  /** Reads a comma-separated list of at least one element. */
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

  /** Returns true if a `:name` follows. */
  atValue(): boolean {
    return this.peek().startsWith(':');
  }

  /** Returns true if the function with this name follows. */
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

  /** Throws unless everything has been read. */
  end(): void {
    if (this.peek() !== '') throw this.syntaxError();
  }

  error(message: string): ValidationException {
    return new ValidationException(`Invalid ${this.#kind}: ${message}`);
  }

  /** The error for an unexpected token. */
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
