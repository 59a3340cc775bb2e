import { soleAction } from '../lambdas/runtime/store/dynamo/table-checks.ts';
import { itemBytes } from '../lambdas/runtime/store/item-size.ts';
import { ITEM_BYTES_MAX, type TransactAction } from '../lambdas/runtime/store/table.ts';
import type { Attributes } from './attribute-values.ts';
import { parseCondition } from './condition.ts';
import type { ParsedCondition } from './condition-functions.ts';
import { Placeholders } from './expression-reader.ts';
import { type Store, toAttributes, toItem } from './memory-store.ts';
import { type ParsedUpdate, parseUpdate } from './update.ts';
import { ValidationException } from './validation-exception.ts';

/** One write or check, parsed and well-formed, but not yet evaluated against the item. */
export interface Prepared {
  readonly store: Store;
  readonly key: Attributes;
  /** Set if a refusal returns the item; `undefined` if the request does not specify it. */
  readonly returnsOld: boolean | undefined;
  /** The violation of the table's schema, if any: it fails a single write, and cancels a transaction. */
  readonly fault: ValidationException | undefined;
  /** Its contribution to the size of a transaction. */
  bytes(): number;
  readonly condition: ParsedCondition;
  /** The item after the write; `undefined` if it is deleted. */
  after(before: Attributes | undefined): Attributes | undefined;
}

/** The result of evaluating a prepared action against the item. */
export type ActionOutcome =
  | {
      readonly refused: false;
      readonly before: Attributes | undefined;
      readonly after: Attributes | undefined;
    }
  | { readonly refused: true; readonly before: Attributes | undefined };

/**
 * Parses one action of a request.
 *
 * @param storeOf - finds the table of an action
 * @throws ValidationException for everything that DynamoDB refuses before it reads the item
 */
export function prepare(action: TransactAction, storeOf: (tableName: string | undefined) => Store): Prepared {
  const { kind, request } = soleAction(action);
  const store = storeOf(request.TableName);
  const values = toAttributes(request.ExpressionAttributeValues);
  const placeholders = new Placeholders(request.ExpressionAttributeNames, values);
  assertNotEmpty('ExpressionAttributeNames', request.ExpressionAttributeNames);
  assertNotEmpty('ExpressionAttributeValues', request.ExpressionAttributeValues && values);
  const text = request.ConditionExpression;
  if (kind === 'ConditionCheck' && text === undefined) {
    throw new ValidationException(
      'The expression can not be empty; a ConditionCheck needs a ConditionExpression',
    );
  }
  const condition = text === undefined ? () => true : parseCondition(text, placeholders);
  const common = { store, condition, returnsOld: returnsOld(request.ReturnValuesOnConditionCheckFailure) };

  if (kind === 'Put') {
    const item = toAttributes(request.Item);
    placeholders.assertUsed();
    store.assertKeyBytes(item);
    assertItemBytes(item, 'Item size has exceeded the maximum allowed size');
    return {
      ...common,
      key: store.keyOf(item),
      bytes: () => itemBytes(toItem(item)),
      fault: store.itemFault(item),
      after: () => item,
    };
  }
  const key = toAttributes(request.Key);
  store.assertKeyBytes(key);
  const bytes = () => itemBytes(toItem(key)) + itemBytes(toItem(values));
  if (kind === 'Update') {
    const update = parseUpdate(request.UpdateExpression ?? '', placeholders);
    placeholders.assertUsed();
    const fault = store.keyFault(key) ?? keyUpdate(store, update);
    return { ...common, key, bytes, fault, after: (before) => updated(update, before ?? key) };
  }
  placeholders.assertUsed();
  const fault = store.keyFault(key);
  return { ...common, key, bytes, fault, after: kind === 'Delete' ? () => undefined : (before) => before };
}

/**
 * Evaluates an action against its item, without changing anything.
 *
 * @throws ValidationException if it does not fit the table or the item
 */
export function judge({ store, key, fault, condition, after }: Prepared): ActionOutcome {
  if (fault) throw fault;
  const before = store.get(key);
  if (!condition(before ?? {})) return { refused: true, before };
  return { refused: false, before, after: after(before) };
}

/** @throws ValidationException if the item is too large */
export function assertItemBytes(item: Attributes, message: string): void {
  // Its JSON, of at most three bytes a character, is never smaller than what DynamoDB counts, and much faster to make.
  if (JSON.stringify(item).length <= ITEM_BYTES_MAX / 3) return;
  if (itemBytes(toItem(item)) > ITEM_BYTES_MAX) throw new ValidationException(message);
}

function updated(update: ParsedUpdate, before: Attributes): Attributes {
  const after = update.apply(before);
  assertItemBytes(after, 'Item size to update has exceeded the maximum allowed size');
  return after;
}

function keyUpdate(store: Store, update: ParsedUpdate): ValidationException | undefined {
  const name = update.names.find((name) => store.keyNames.includes(name));
  if (name === undefined) return undefined;
  return new ValidationException(
    `One or more parameter values were invalid: Cannot update attribute ${name}. This attribute is part of the key`,
  );
}

function assertNotEmpty(name: string, given: object | undefined): void {
  if (given && Object.keys(given).length === 0) throw new ValidationException(`${name} must not be empty`);
}

function returnsOld(option: string | undefined): boolean | undefined {
  return option === undefined ? undefined : option === 'ALL_OLD';
}
