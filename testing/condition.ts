import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { equal, order } from './attribute-values.ts';
import { type ParsedCondition, readTest } from './condition-functions.ts';
import { ExpressionReader, type Placeholders } from './expression-reader.ts';
import { assertOperand, call, type Operand, operand } from './operand.ts';

/** The maximum number of operands of `IN` (DynamoDB service quotas, expression parameters). */
const IN_OPERANDS_MAX = 100;

type Comparator = (a: AttributeValue | undefined, b: AttributeValue | undefined) => boolean;

const COMPARATORS: ReadonlyMap<string, Comparator> = new Map<string, Comparator>([
  ['=', equal],
  // A missing attribute differs from everything.
  ['<>', (a, b) => !equal(a, b)],
  ['<', (a, b) => ordered(a, b, (sign) => sign < 0)],
  ['<=', (a, b) => ordered(a, b, (sign) => sign <= 0)],
  ['>', (a, b) => ordered(a, b, (sign) => sign > 0)],
  ['>=', (a, b) => ordered(a, b, (sign) => sign >= 0)],
]);

/**
 * Reads a ConditionExpression.
 *
 * @throws ValidationException, worded much like DynamoDB's own, if DynamoDB would refuse the expression
 */
export function parseCondition(text: string, placeholders: Placeholders): ParsedCondition {
  const reader = new ExpressionReader('ConditionExpression', text, placeholders);
  const condition = either(reader);
  reader.end();
  return condition;
}

function either(reader: ExpressionReader): ParsedCondition {
  const left = both(reader);
  if (!reader.accept('OR')) return left;
  const right = either(reader);
  return (item) => left(item) || right(item);
}

function both(reader: ExpressionReader): ParsedCondition {
  const left = not(reader);
  if (!reader.accept('AND')) return left;
  const right = both(reader);
  return (item) => left(item) && right(item);
}

function not(reader: ExpressionReader): ParsedCondition {
  if (!reader.accept('NOT')) return primary(reader);
  const inner = not(reader);
  return (item) => !inner(item);
}

function primary(reader: ExpressionReader): ParsedCondition {
  if (!reader.accept('(')) return readTest(reader) ?? comparison(reader);
  const nested = reader.peek() === '(' && closes(reader);
  const inner = either(reader);
  reader.expect(')');
  if (nested) throw reader.error('The expression has redundant parentheses;');
  return inner;
}

/** Returns true if the next parenthesis closes right before another one closes. */
function closes(reader: ExpressionReader): boolean {
  let depth = 0;
  for (let ahead = 0; reader.peek(ahead) !== ''; ahead += 1) {
    if (reader.peek(ahead) === '(') depth += 1;
    if (reader.peek(ahead) === ')') depth -= 1;
    if (depth === 0) return reader.peek(ahead + 1) === ')';
  }
  return false;
}

function comparison(reader: ExpressionReader): ParsedCondition {
  const left = operand(reader);
  if (reader.accept('BETWEEN')) return between(reader, left);
  if (reader.accept('IN')) return oneOf(reader, left);
  const operator = reader.take();
  const compare = COMPARATORS.get(operator);
  if (!compare) throw reader.syntaxError(-1);
  const right = operand(reader);
  if (operator !== '=' && operator !== '<>') {
    for (const side of [left, right]) assertOperand(reader, operator, side, ['S', 'N', 'B']);
  }
  return (item) => compare(left.read(item), right.read(item));
}

function between(reader: ExpressionReader, value: Operand): ParsedCondition {
  const low = operand(reader);
  reader.expect('AND');
  const high = operand(reader);
  for (const bound of [low, high]) assertOperand(reader, 'BETWEEN', bound, ['S', 'N', 'B']);
  if (low.literal && high.literal) {
    const sign = order(low.literal, high.literal);
    if (sign === undefined) {
      throw reader.error('The BETWEEN operator requires same data type for lower and upper bounds;');
    }
    if (sign > 0) {
      throw reader.error(
        'The BETWEEN operator requires upper bound to be greater than or equal to lower bound;',
      );
    }
  }
  return (item) => {
    const found = value.read(item);
    return (
      ordered(low.read(item), found, (sign) => sign <= 0) &&
      ordered(found, high.read(item), (sign) => sign <= 0)
    );
  };
}

function oneOf(reader: ExpressionReader, value: Operand): ParsedCondition {
  const operands = call(reader, () => reader.list(() => operand(reader)), false);
  if (operands.length > IN_OPERANDS_MAX) {
    throw reader.error(
      `The IN operator is provided with too many operands; number of operands: ${operands.length}`,
    );
  }
  return (item) => operands.some((other) => equal(value.read(item), other.read(item)));
}

function ordered(
  a: AttributeValue | undefined,
  b: AttributeValue | undefined,
  holds: (sign: number) => boolean,
): boolean {
  const sign = a && b && order(a, b);
  return sign !== undefined && holds(sign);
}
