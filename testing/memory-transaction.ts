import type { Clock } from '../lambdas/runtime/base/clock.ts';
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
  if (prepared.reduce((bytes, action) => bytes + action.bytes(), 0) > TRANSACTION_BYTES_MAX) {
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

/** The lifetime of a transaction's token: 10 minutes (DynamoDB API reference, TransactWriteItems). */
const TOKEN_MS = 600_000;

/** The maximum length of a transaction's token in characters (DynamoDB API reference, TransactWriteItems). */
const TOKEN_CHARS_MAX = 36;

/** The tokens of recent transactions, each with a text of its request. */
export function createTokens(clock: Clock) {
  const tokens = new Map<string, { readonly request: string; readonly until: number }>();
  return {
    /** @throws ValidationException if the token is not valid, or belongs to another recent transaction */
    isReplay: (token: string, request: string): boolean => {
      if (token.length === 0 || token.length > TOKEN_CHARS_MAX) {
        throw new ValidationException(
          `Value '${token}' at 'clientRequestToken' failed to satisfy constraint: ` +
            `Member must have length between 1 and ${TOKEN_CHARS_MAX}`,
        );
      }
      const known = tokens.get(token);
      if (known === undefined || known.until <= clock.now()) return false;
      if (known.request === request) return true;
      throw new ValidationException(
        'The token was used by another transaction within the last 10 minutes',
        'IdempotentParameterMismatchException',
      );
    },
    add: (token: string, request: string): void => {
      tokens.set(token, { request, until: clock.now() + TOKEN_MS });
    },
  };
}

/** Equal texts for equal actions. */
export function fingerprint(actions: readonly TransactAction[]): string {
  return JSON.stringify(actions, (_, value: unknown) => {
    if (value instanceof Set) return { set: [...value] };
    if (value instanceof Map) return { map: [...value] };
    return typeof value === 'bigint' ? String(value) : value;
  });
}
