import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Attributes } from '../../testing/attribute-values.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import type { Wire } from './wire.ts';

/** One statement of BatchExecuteStatement. */
export interface Statement {
  readonly Statement: string;
  readonly Parameters?: readonly AttributeValue[];
  readonly ReturnValuesOnConditionCheckFailure?: string;
}

/** The only supported form: the statements that `dynamoTable` writes. */
const UPDATE =
  /^UPDATE "([^"]+)"((?: SET "[^"]+"=\?)+)((?: REMOVE "[^"]+")*) WHERE ((?:"[^"]+"=\?(?: AND )?)+)$/;

/**
 * Parses an UPDATE statement into the equivalent UpdateItem. An UPDATE never creates an item, so its condition includes that one
 * exists (developer guide, "PartiQL update statements for DynamoDB").
 *
 * @param keyNamesOf - the key attributes of a table
 * @throws if the statement has a different form
 */
export function readStatement(
  { Statement, Parameters = [] }: Statement,
  keyNamesOf: (tableName: string) => readonly string[],
): { readonly tableName: string; readonly update: Wire } {
  const [, tableName, sets = '', removes = '', where = ''] = UPDATE.exec(Statement) ?? [];
  if (tableName === undefined)
    throw new Error(`The metered AWS does not support this statement: ${Statement}`);
  const keyNames = keyNamesOf(tableName);
  const [set, remove, when] = [sets, removes, where].map(quotedNames) as [string[], string[], string[]];
  if (Parameters.length !== set.length + when.length) {
    throw new ValidationException("Number of parameters in request and statement don't match.");
  }
  const value = (index: number) => Parameters[index] as AttributeValue;
  const names: Record<string, string> = {};
  const values: Attributes = {};
  const named = (mark: string, name: string) => {
    names[mark] = name;
    return mark;
  };
  const equals = (mark: string, name: string, index: number) => {
    values[`:${mark}`] = value(index);
    return `${named(`#${mark}`, name)} = :${mark}`;
  };

  const assignments = set.map((name, i) => equals(`s${i}`, name, i));
  const removals = remove.map((name, i) => named(`#r${i}`, name));
  const conditions = when.flatMap((name, i) =>
    keyNames.includes(name) ? [] : [equals(`w${i}`, name, set.length + i)],
  );
  const Key = Object.fromEntries(keyNames.map((name) => [name, value(set.length + when.indexOf(name))]));
  const exists = `attribute_exists(${named('#key', keyNames[0] ?? '')})`;
  return {
    tableName,
    update: {
      Key,
      UpdateExpression: `SET ${assignments.join(', ')}${removals.length > 0 ? ` REMOVE ${removals.join(', ')}` : ''}`,
      ConditionExpression: [exists, ...conditions].join(' AND '),
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: values,
    },
  };
}

function quotedNames(clause: string): string[] {
  return [...clause.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
}
