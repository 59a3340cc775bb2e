import {
  ATTRIBUTE_TYPES,
  type Attributes,
  type AttributeType,
  elements,
  equal,
  typeOf,
} from './attribute-values.ts';
import { valueAt } from './document-path.ts';
import type { ExpressionReader } from './expression-reader.ts';
import { assertOperand, call, documentPath, pair } from './operand.ts';

/** A condition to evaluate against an item; a missing item is passed as `{}`. */
export type ParsedCondition = (item: Attributes) => boolean;

/** Reads a function that is a condition on its own; `undefined` if none follows. */
export function readTest(reader: ExpressionReader): ParsedCondition | undefined {
  const name = reader.peek();
  if (!reader.atFunction(name)) return undefined;
  switch (name) {
    case 'attribute_exists':
    case 'attribute_not_exists': {
      const path = call(reader, () => documentPath(reader));
      const expected = name === 'attribute_exists';
      return (item) => (valueAt(item, path) !== undefined) === expected;
    }
    case 'attribute_type':
      return attributeType(reader);
    case 'begins_with':
      return beginsWith(reader);
    case 'contains':
      return contains(reader);
    default:
      return undefined;
  }
}

function attributeType(reader: ExpressionReader): ParsedCondition {
  const [path, type] = call(reader, () => {
    const path = documentPath(reader);
    reader.expect(',');
    return [path, reader.value().S] as const;
  });
  if (!ATTRIBUTE_TYPES.includes(type as AttributeType)) {
    throw reader.error(
      `Invalid attribute type name found; type: ${type}, valid types: {${ATTRIBUTE_TYPES.join(',')}}`,
    );
  }
  return (item) => {
    const value = valueAt(item, path);
    return value !== undefined && typeOf(value) === type;
  };
}

function beginsWith(reader: ExpressionReader): ParsedCondition {
  const [text, prefix] = call(reader, () => pair(reader));
  assertOperand(reader, 'begins_with', prefix, ['S', 'B']);
  return (item) => {
    const [value, start] = [text.read(item), prefix.read(item)];
    if (value?.S !== undefined && start?.S !== undefined) return value.S.startsWith(start.S);
    if (!value?.B || !start?.B) return false;
    return Buffer.compare(value.B.subarray(0, start.B.length), start.B) === 0;
  };
}

function contains(reader: ExpressionReader): ParsedCondition {
  const [container, operand] = call(reader, () => pair(reader));
  return (item) => {
    const [value, part] = [container.read(item), operand.read(item)];
    if (!value || !part) return false;
    if (value.S !== undefined) return part.S !== undefined && value.S.includes(part.S);
    if (value.B) return part.B !== undefined && Buffer.from(value.B).includes(Buffer.from(part.B));
    return (value.L ?? elements(value) ?? []).some((element) => equal(element, part));
  };
}
