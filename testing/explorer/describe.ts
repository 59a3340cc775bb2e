import { soleAction } from '../../lambdas/runtime/store/dynamo/table-checks.ts';
import type { EachUpdate, Item, Key, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { KeyNames } from '../memory-store.ts';

/** The names of the key attributes of tables other than the Mailroom's, by table name. */
export type OtherTables = Readonly<Record<string, KeyNames>>;

/** Describes a write for a timeline: its kind, its row, and the status that it sets. */
export function describeWrite(action: TransactAction, others: OtherTables = {}): string {
  const { kind, request } = soleAction(action);
  const { TableName } = request;
  if (kind === 'Put') return `put ${keyText(TableName, request.Item, others)}`;
  const key = keyText(TableName, request.Key, others);
  if (kind === 'Delete') return `delete ${key}`;
  if (kind === 'ConditionCheck') return `check ${key}`;
  const status = /#status = (:\w+)/.exec(request.UpdateExpression ?? '')?.[1];
  const value = status === undefined ? undefined : request.ExpressionAttributeValues?.[status];
  return `update ${key}${value === undefined ? '' : ` to ${String(value)}`}`;
}

/** The key of an item; in another table, after the table's name. @param item - the item, or its key */
function keyText(tableName: string | undefined, item: Item = {}, others: OtherTables): string {
  if (tableName === undefined) return shortKey(item);
  const names = others[tableName];
  if (names !== undefined) return [tableName, ...names.map((name) => String(item[name ?? '']))].join(' ');
  return 'PK' in item ? shortKey(item) : `an item of ${tableName}`;
}

/** Describes one update of a batch for a timeline. */
export function describeUpdate({ key, set }: EachUpdate): string {
  return `${shortKey(key)} to ${String(set.status ?? 'another lease')}`;
}

/** A key without the parts that carry no information: ids are shortened to their last digits. */
export function shortKey(key: Partial<Record<keyof Key, unknown>>): string {
  return `${String(key.PK)} ${String(key.SK)}`.replace(
    /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8}([0-9a-f]{4})/g,
    '~$1',
  );
}
