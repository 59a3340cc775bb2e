import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Attributes, sizeOf, typeOf } from './attribute-values.ts';
import { type Path, valueAt } from './document-path.ts';
import type { ExpressionReader } from './expression-reader.ts';

/** An operand of a condition: a literal value, or one read from the item. */
export interface Operand {
  /** Set for a literal value. */
  readonly literal?: AttributeValue;
  read(item: Attributes): AttributeValue | undefined;
}

/** Reads a `:value`, a path, or the size of a path. */
export function operand(reader: ExpressionReader): Operand {
  if (reader.atValue()) {
    const literal = reader.value();
    return { literal, read: () => literal };
  }
  if (!reader.atFunction('size')) {
    const path = reader.path();
    return { read: (item) => valueAt(item, path) };
  }
  const path = call(reader, () => documentPath(reader));
  return {
    read: (item) => {
      const value = valueAt(item, path);
      const size = value && sizeOf(value);
      return size === undefined ? undefined : { N: String(size) };
    },
  };
}

/** Reads a path; a value is refused. */
export function documentPath(reader: ExpressionReader): Path {
  if (reader.atValue()) throw reader.error('Operator or function requires a document path;');
  return reader.path();
}

/** Reads two operands separated by a comma. */
export function pair(reader: ExpressionReader): readonly [Operand, Operand] {
  const first = operand(reader);
  reader.expect(',');
  return [first, operand(reader)];
}

/** Reads the parenthesised arguments of a function, and its name if it has one. */
export function call<T>(reader: ExpressionReader, args: () => T, named = true): T {
  const name = named ? reader.take() : '';
  reader.expect('(');
  const read = args();
  if (reader.peek() === ',') {
    throw reader.error(
      `Incorrect number of operands for operator or function; operator or function: ${name}`,
    );
  }
  reader.expect(')');
  return read;
}

/** @throws ValidationException if a literal operand has none of the types */
export function assertOperand(
  reader: ExpressionReader,
  name: string,
  { literal }: Operand,
  types: readonly string[],
): void {
  if (literal && !types.includes(typeOf(literal))) {
    throw reader.error(
      'Incorrect operand type for operator or function; ' +
        `operator or function: ${name}, operand type: ${typeOf(literal)}`,
    );
  }
}
