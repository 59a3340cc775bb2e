import { soleAction } from '../../lambdas/runtime/store/dynamo/table-checks.ts';
import type { EachUpdate, Key, TransactAction } from '../../lambdas/runtime/store/table.ts';

/** Describes a write for a timeline: its kind, its row, and the status that it sets. */
export function describeWrite(action: TransactAction): string {
  const { kind, request } = soleAction(action);
  if (kind === 'Put') return `put ${shortKey(request.Item ?? {})}`;
  if (kind === 'Delete') return `delete ${shortKey(request.Key ?? {})}`;
  if (kind === 'ConditionCheck') return `check ${shortKey(request.Key ?? {})}`;
  const status = /#status = (:\w+)/.exec(request.UpdateExpression ?? '')?.[1];
  const value = status === undefined ? undefined : request.ExpressionAttributeValues?.[status];
  return `update ${shortKey(request.Key ?? {})}${value === undefined ? '' : ` to ${String(value)}`}`;
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
