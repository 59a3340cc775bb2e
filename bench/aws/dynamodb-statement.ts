import type { AttributeValue } from '@aws-sdk/client-dynamodb';
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
  const [set = [], remove = [], when = []] = [sets, removes, where].map(quotedNames);
  if (Parameters.length !== set.length + when.length)
    throw new ValidationException("Number of parameters in request and statement don't match.");
  const bound = [...set, ...when].map((name, at) => ({ name, at, value: Parameters[at] }));
  const isKey = ({ name, at }: { name: string; at: number }) => at >= set.length && keyNames.includes(name);
  const plain = bound.filter((each) => !isKey(each));
  const equals = plain.map(({ at }) => ({ isSet: at < set.length, text: `#p${at} = :p${at}` }));
  const assignments = equals.filter(({ isSet }) => isSet).map(({ text }) => text);
  const conditions = equals.filter(({ isSet }) => !isSet).map(({ text }) => text);
  const removals = remove.map((_, at) => `#r${at}`).join(', ');
  return {
    tableName,
    update: {
      Key: Object.fromEntries(bound.filter(isKey).map(({ name, value }) => [name, value])),
      UpdateExpression: `SET ${assignments.join(', ')}${removals && ` REMOVE ${removals}`}`,
      ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
      ExpressionAttributeNames: {
        '#key': keyNames[0],
        ...Object.fromEntries(plain.map(({ at, name }) => [`#p${at}`, name])),
        ...Object.fromEntries(remove.map((name, at) => [`#r${at}`, name])),
      },
      ExpressionAttributeValues: Object.fromEntries(plain.map(({ at, value }) => [`:p${at}`, value])),
    },
  };
}

function quotedNames(clause: string): string[] {
  return [...clause.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
}
