import { errorCode, isMailroomError, TransactionCancelled } from '../../lambdas/runtime/base/errors.ts';
import type { Bus, BusEntry, BusResult } from '../../lambdas/runtime/bus/event-bus.ts';
import type { Queue } from '../../lambdas/runtime/sources/sqs/queue.ts';
import { soleAction } from '../../lambdas/runtime/store/dynamo/table-checks.ts';
import type {
  EachResult,
  EachUpdate,
  Item,
  Table,
  TransactAction,
  Write,
} from '../../lambdas/runtime/store/table.ts';
import type { MemoryBus } from '../memory-bus.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { Actor } from './actor.ts';
import { type CallFault, named } from './call-outcomes.ts';
import { describeUpdate, describeWrite, type OtherTables, shortKey } from './describe.ts';
import type { ExploredQueue } from './explored-queue.ts';
import type { PastItems } from './past-items.ts';
import { staleGets, staleQueries } from './stale-reads.ts';

/**
 * A table port whose every call goes through the scheduler. Partitions that are not `shared` are read directly.
 *
 * @param past - the earlier states that an eventually consistent read may return
 */
export function scheduledTable(
  actor: Actor,
  memory: MemoryTable,
  past: PastItems,
  shared: (pk: string) => boolean = () => true,
  others: OtherTables = {},
): Table {
  const throttledTokens = new Set<string | undefined>();
  const get: Table['get'] = (key, options) => {
    if (!shared(key.PK)) return memory.get(key, options);
    return actor.call({
      label: `get ${shortKey(key)}`,
      perform: () => memory.get(key, options),
      effect: false,
      failures: [throttled()],
      otherAnswers: options?.consistent ? undefined : () => staleGets(memory, past, key),
    });
  };
  return {
    name: memory.name,
    createdAt: () => memory.createdAt(),
    get,
    // Each item is read at a moment of its own, as by BatchGetItem.
    getEach: (keys, options) => Promise.all(keys.map((key) => get(key, options))),
    query: (query) => {
      if (!shared(query.pk)) return memory.query(query);
      return actor.call({
        label: `query ${query.pk}`,
        perform: () => memory.query(query),
        effect: false,
        failures: [throttled()],
        otherAnswers: query.consistent ? undefined : () => staleQueries(memory, past, query),
      });
    },
    write: (write) => {
      const call = { label: describeWrite(write, others), perform: () => memory.write(write) };
      // No actor reads a hint, so the time of its write makes no difference except to the caller that waits for the response.
      if (keysOf([write]).every(isHint))
        return actor.call({ ...call, effect: false, local: true, failures: [throttled()] });
      return actor.call({ ...call, effect: true, resends: true, failures: [throttled(), conflict()] });
    },
    transact: async (actions, token) => {
      if (throttledTokens.has(token)) throw throttle();
      await actor.call({
        label: `transact ${actions.map((action) => describeWrite(action, others)).join(', ')}`,
        perform: () => memory.transact(actions, token),
        effect: true, // sent once: `dynamoTable` leaves every retry of a transaction to its caller
        failures: [
          {
            // A single throttle is followed by the same transaction, as a conflict is.
            label: 'throttled, however often it is tried',
            perform: async () => {
              throttledTokens.add(token);
              throw throttle();
            },
          },
          ...cancellations(memory, actions, token),
        ],
      });
    },
    updateEach: (updates) => {
      if (updates.length === 0) return memory.updateEach(updates);
      return actor.call({
        label: `update each ${updates.map(describeUpdate).join(', ')}`,
        perform: () => memory.updateEach(updates),
        effect: true,
        resends: true,
        failures: [throttled(), firstThrottled(memory, updates)],
      });
    },
  };
}

/** A bus port whose every call goes through the scheduler. @param entryCodes - the error codes that an entry may return */
export function scheduledBus(
  actor: Actor,
  memory: MemoryBus,
  entryCodes: readonly string[] = ['ThrottlingException', 'SomethingNew'],
): Bus {
  return {
    put: (entries, timeoutMs) =>
      actor.call<BusResult[]>({
        label: `put ${entries.map(entryName).join(', ')}`,
        perform: () => memory.put(entries, timeoutMs),
        effect: true,
        failures: [
          { label: 'the whole call fails', error: () => named('InternalException', 'internal failure') },
          { label: 'access denied', error: () => named('AccessDeniedException', 'not authorized') },
          // Only for calls with several entries: for a single entry it would mean that the event itself is invalid.
          ...(entries.length > 1
            ? [{ label: 'the call is invalid', error: () => named('ValidationException', 'invalid') }]
            : []),
          ...entryCodes.map((code) => firstFails(memory, entries, timeoutMs, code)),
        ],
      }),
  };
}

/** A queue port whose every call goes through the scheduler. */
export function scheduledQueue(actor: Actor, queue: ExploredQueue): Queue {
  return {
    changeVisibility: (receiptHandle, seconds) =>
      actor.call({
        label: `change visibility to ${seconds} s`,
        perform: () => queue.changeVisibility(receiptHandle, seconds),
        effect: true,
        local: seconds > 0 && !queue.isSharedAtOnce(receiptHandle),
      }),
  };
}

function throttled(): CallFault<never> {
  return { label: 'throttled', error: throttle };
}

function throttle(): Error {
  return named('ThrottlingException', 'Rate exceeded');
}

function conflict(): CallFault<never> {
  return {
    label: 'it meets a transaction',
    error: () => named('TransactionConflictException', 'Transaction is ongoing for the item'),
  };
}

/** A transaction that conflicts with another one, and one that is throttled in addition to the results of its own conditions. */
function cancellations(
  memory: MemoryTable,
  actions: readonly TransactAction[],
  token: string | undefined,
): CallFault<void>[] {
  const none = actions.map(() => ({ code: 'None' }));
  const conflicted = () => new TransactionCancelled([{ code: 'TransactionConflict' }, ...none.slice(1)]);
  return [
    { label: 'it meets another transaction', error: conflicted },
    {
      label: 'cancelled for several reasons',
      perform: async () => {
        const reasons = await refusals(memory, actions, token);
        if (reasons === undefined) return; // already applied under this token
        const last = reasons.findLastIndex(({ code }) => code === 'None');
        throw new TransactionCancelled(
          reasons.map((reason, index) => (index === last ? { code: 'ThrottlingError' } : reason)),
        );
      },
    },
  ];
}

/** Evaluates the conditions of a transaction without applying it, by adding one that never holds. */
async function refusals(memory: MemoryTable, actions: readonly TransactAction[], token: string | undefined) {
  const never: TransactAction = {
    ConditionCheck: { Key: { PK: 'NEVER', SK: 'NEVER' }, ConditionExpression: 'attribute_exists(PK)' },
  };
  try {
    await memory.transact([...actions, never], token);
  } catch (error) {
    if (errorCode(error) === 'IdempotentParameterMismatchException') return undefined;
    if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return error.reasons.slice(0, -1);
    throw error;
  }
  throw new Error('A transaction that cannot happen happened');
}

function firstThrottled(memory: MemoryTable, updates: readonly EachUpdate[]): CallFault<EachResult[]> {
  return {
    label: 'the first of them is throttled',
    perform: async () => [
      { ok: false, refused: false, code: 'ThrottlingError', message: 'Rate exceeded' },
      ...(updates.length > 1 ? await memory.updateEach(updates.slice(1)) : []),
    ],
  };
}

function firstFails(
  memory: MemoryBus,
  entries: readonly BusEntry[],
  timeoutMs: number,
  code: string,
): CallFault<BusResult[]> {
  return {
    label: `the first entry fails with ${code}`,
    perform: async () => [
      { ok: false, code, message: 'failed' },
      ...(entries.length > 1 ? await memory.put(entries.slice(1), timeoutMs) : []),
    ],
  };
}

function entryName(entry: BusEntry): string {
  try {
    const { aggregateId } = JSON.parse(entry.detail) as { aggregateId?: unknown };
    return `${entry.detailType} of ${String(aggregateId)}`;
  } catch {
    return entry.detailType;
  }
}

/** Returns true if an item only records that a message may be FAILED: see `failed-hints.ts`. */
export function isHint({ PK }: Item): boolean {
  return String(PK).startsWith('FAILED#');
}

/** The rows that a write touches. */
export function keysOf(actions: readonly (Write | TransactAction)[]): { PK: string; SK: string }[] {
  return actions.flatMap((action) => {
    const { kind, request } = soleAction(action);
    const item = kind === 'Put' ? request.Item : request.Key;
    return item === undefined ? [] : [{ PK: String(item.PK), SK: String(item.SK) }];
  });
}
