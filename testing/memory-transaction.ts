import type { CancellationReason } from '../lambdas/runtime/base/errors.ts';
import {
  TRANSACTION_ACTIONS_MAX,
  TRANSACTION_BYTES_MAX,
  type TransactAction,
} from '../lambdas/runtime/store/table.ts';
import { type ActionOutcome, judge, type Prepared, prepare } from './memory-action.ts';
import { type Store, toItem } from './memory-store.ts';
import { ValidationException } from './validation-exception.ts';

/**
 * Parses all actions of a transaction.
 *
 * @throws ValidationException for everything that DynamoDB refuses before it reads the items
 */
export function prepareAll(
  actions: readonly TransactAction[],
  storeOf: (tableName?: string) => Store,
): Prepared[] {
  if (actions.length === 0 || actions.length > TRANSACTION_ACTIONS_MAX) {
    throw new ValidationException(
      `A transaction of ${actions.length} actions: Member must have length between 1 and ${TRANSACTION_ACTIONS_MAX}`,
    );
  }
  const prepared = actions.map((action) => prepare(action, storeOf));
  const whole = prepared.filter(({ fault }) => fault === undefined);
  const targets = new Set<string>();
  for (const { store, key } of whole) {
    const target = `${store.tableName} ${store.id(key)}`;
    if (targets.has(target)) {
      const item = JSON.stringify(toItem(store.keyOf(key)));
      throw new ValidationException(
        `Transaction request cannot include multiple operations on one item: ${item} of ${store.tableName}`,
      );
    }
    targets.add(target);
  }
  if (prepared.reduce((bytes, action) => bytes + action.bytes, 0) > TRANSACTION_BYTES_MAX) {
    throw new ValidationException(
      'Collection size of items exceeded, which can also be caused by the aggregate size of the items in the ' +
        'transaction exceeding the 4MB limit',
    );
  }
  return prepared;
}

/** Evaluates one action against its item: its cancellation reason (`None` if it does not cancel), and its result. */
export function judgeOne(action: Prepared): {
  readonly reason: CancellationReason;
  readonly outcome?: ActionOutcome;
} {
  try {
    const outcome = judge(action);
    if (!outcome.refused) return { reason: { code: 'None' }, outcome };
    const item = action.returnsOld && outcome.before ? { item: toItem(outcome.before) } : {};
    return { reason: { code: 'ConditionalCheckFailed', message: 'The conditional request failed', ...item } };
  } catch (error) {
    return { reason: { code: 'ValidationError', message: (error as Error).message } };
  }
}

/** Equal texts for equal actions. */
export function fingerprint(actions: readonly TransactAction[]): string {
  return JSON.stringify(actions, (_, value: unknown) => {
    if (value instanceof Set) return { set: [...value] };
    if (value instanceof Map) return { map: [...value] };
    return typeof value === 'bigint' ? String(value) : value;
  });
}
