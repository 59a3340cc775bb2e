import type { DynamoDBRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../lambdas/runtime/base/clock.ts';
import { ConditionFailed, MailroomError, TransactionCancelled } from '../lambdas/runtime/base/errors.ts';
import {
  type Action,
  assertEachUpdates,
  checkedAction,
  checkedActions,
} from '../lambdas/runtime/store/dynamo/table-checks.ts';
import { itemBytes } from '../lambdas/runtime/store/item-size.ts';
import type {
  EachResult,
  EachUpdate,
  Item,
  Key,
  Page,
  Query,
  Table,
  TransactAction,
  Write,
} from '../lambdas/runtime/store/table.ts';
import { type Attributes, byteOrder, equal } from './attribute-values.ts';
import { type Authorize, accessTo } from './memory-access.ts';
import { type ActionOutcome, assertItemBytes, judge, type Prepared, prepare } from './memory-action.ts';
import { createStore, type KeyNames, type Store, toAttributes, toItem } from './memory-store.ts';
import { createStream } from './memory-stream.ts';
import { createTokens, fingerprint, judgeOne, prepareAll } from './memory-transaction.ts';
import { ValidationException } from './validation-exception.ts';

/** The maximum number of bytes that one page of a query reads: 1 MB (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

/** Options of {@link memoryTable}. */
export interface MemoryTableOptions {
  /** The name of the Mailroom table. @default 'Mailroom' */
  readonly name?: string | undefined;
  /** The clock for stream records, TTL and transaction tokens. @default the system clock */
  readonly clock?: Clock | undefined;
  /**
   * Other tables of the service that its transactions write to: the names of their key attributes, by table name, e.g. `{ Orders:
   * ['orderId'] }`. @default none
   */
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
  /**
   * The `domainKeys` of the constructs whose code the test runs, e.g. `['ORDER#*']`. Any other partition key but those of Mailroom's
   * own rows is refused, and so is deleting or replacing an inbox row, as IAM does in AWS. @default every key is allowed
   */
  readonly domainKeys?: readonly string[] | undefined;
}

/** An in-memory {@link Table}, with accessors for tests. */
export interface MemoryTable extends Table {
  /** Copies of all items, in the order of their keys. @param tableName - @default the Mailroom table */
  items(tableName?: string): Item[];
  /** A copy of one item of the Mailroom table; `undefined` if it does not exist. */
  item(key: Key): Item | undefined;
  /** Every change of the Mailroom table since its creation, as the stream records that a Lambda function receives. */
  stream(): DynamoDBRecord[];
  /** Runs TTL immediately: deletes the items whose `expiresAt` has passed. @returns their number */
  expire(): number;
}

/**
 * Creates an in-memory DynamoDB behind the same port as `dynamoTable`: it evaluates the real expressions, refuses what DynamoDB
 * refuses, and stores copies. Both pass the same contract tests.
 *
 * @example
 * ```ts
 * const table = memoryTable();
 * const outbox = createOutbox({ config, table });
 * await outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data })] });
 * expect(table.items()).toHaveLength(1);
 * ```
 */
export function memoryTable(options: MemoryTableOptions = {}): MemoryTable {
  const { name = 'Mailroom', clock = systemClock, otherTables = {}, domainKeys } = options;
  const store = createStore(name, ['PK', 'SK'], true);
  const others = Object.entries(otherTables).map(
    ([other, keyNames]) => [other, createStore(other, keyNames, false)] as const,
  );
  const memory: Memory = {
    authorize: accessTo(domainKeys),
    clock,
    store,
    stores: new Map([[name, store], ...others]),
    stream: createStream(),
    tokens: createTokens(clock),
  };
  const created = clock.now();
  return {
    name,
    get: async (key) => get(memory, key),
    getEach: async (keys) => keys.map((key) => get(memory, key)),
    query: async (asked) => query(memory, asked),
    write: async (action) => write(memory, action),
    transact: async (actions, token) => transact(memory, actions, token),
    updateEach: async (updates) => updateEach(memory, updates),
    createdAt: async () => created,
    items: (tableName) => {
      const found = storeOf(memory, tableName);
      return found
        .all()
        .map((item) => ({ id: found.id(item), item }))
        .sort((a, b) => byteOrder(a.id, b.id))
        .map(({ item }) => toItem(item));
    },
    item: (key) => {
      const item = store.get(toAttributes({ ...key }));
      return item && toItem(item);
    },
    stream: () => structuredClone([...memory.stream.records]),
    expire: () => expire(memory),
  };
}

/** The stored state: the Mailroom table, the other tables, the stream, and the transaction tokens. */
interface Memory {
  readonly authorize: Authorize;
  readonly clock: Clock;
  readonly store: Store;
  readonly stores: ReadonlyMap<string, Store>;
  readonly stream: ReturnType<typeof createStream>;
  readonly tokens: ReturnType<typeof createTokens>;
}

function storeOf({ store, stores }: Memory, tableName?: string): Store {
  const found = tableName === undefined ? store : stores.get(tableName);
  if (found) return found;
  throw new ValidationException(
    `Requested resource not found: Table: ${tableName} not found. To add the table, list the names of its key attributes in the option ` +
      `otherTables of explore or memoryTable: { ${tableName}: ['id'] }.`,
    'ResourceNotFoundException',
  );
}

/** Without a `TableName`, or with this table's, the partition key must be one that the test may use. */
function authorizeAction(memory: Memory, kind: Action['kind'], { store, key }: Prepared): void {
  const action = kind === 'ConditionCheck' ? 'ConditionCheckItem' : `${kind}Item`;
  if (store === memory.store) memory.authorize(action, key.PK?.S);
}

function apply(memory: Memory, to: Store, key: Attributes, outcome: ActionOutcome): void {
  if (outcome.refused || outcome.before === outcome.after) return;
  const { before, after } = outcome;
  if (after) to.put(after);
  else to.delete(key);
  if (to === memory.store) memory.stream.add({ store: memory.store, before, after, now: memory.clock.now() });
}

function get(memory: Memory, key: Key): Item | undefined {
  memory.authorize('GetItem', key.PK);
  const attributes = toAttributes({ ...key });
  memory.store.assertKeyBytes(attributes);
  const fault = memory.store.keyFault(attributes);
  if (fault) throw fault;
  const item = memory.store.get(attributes);
  return item && toItem(item);
}

function query(
  memory: Memory,
  { pk, skPrefix = '', where = {}, containing = {}, limit, cursor }: Query,
): Page {
  memory.authorize('Query', pk);
  const filter = Object.entries(filterOf(where));
  const texts = Object.entries(containing);
  const isWanted = (attributes: Attributes) =>
    filter.every(([name, value]) => equal(attributes[name], value)) &&
    texts.every(([name, text]) => attributes[name]?.S?.includes(text) ?? true);
  if (pk === '' || (limit !== undefined && limit < 1)) {
    throw new ValidationException(
      `Query: pk "${pk}" must not be empty, and limit ${limit} must be at least 1`,
    );
  }
  const after = cursor === undefined ? undefined : String(cursor.SK);
  const items: Item[] = [];
  let [count, bytes] = [0, 0];
  for (const attributes of memory.store.partition(pk)) {
    const sk = attributes.SK?.S ?? '';
    if (!sk.startsWith(skPrefix) || (after !== undefined && byteOrder(sk, after) <= 0)) continue;
    const item = toItem(attributes);
    if (isWanted(attributes)) items.push(item);
    count += 1;
    bytes += itemBytes(item);
    if (count === limit || bytes >= PAGE_BYTES_MAX) return { items, cursor: { PK: pk, SK: sk } };
  }
  return { items };
}

function write(memory: Memory, action: Write): Item | undefined {
  const { kind } = checkedAction(action);
  if (kind === 'ConditionCheck') {
    throw new MailroomError('BAD_WRITE', 'A ConditionCheck writes nothing; it belongs in a transaction.');
  }
  const prepared = prepare(action, (tableName) => storeOf(memory, tableName));
  authorizeAction(memory, kind, prepared);
  const outcome = judge(prepared);
  if (outcome.refused) {
    throw new ConditionFailed(
      (prepared.returnsOld ?? true) ? outcome.before && toItem(outcome.before) : undefined,
    );
  }
  apply(memory, prepared.store, prepared.key, outcome);
  return kind === 'Update' && outcome.after ? toItem(outcome.after) : undefined;
}

function transact(memory: Memory, actions: readonly TransactAction[], token?: string): void {
  const checked = checkedActions(actions);
  const prepared = prepareAll(actions, (tableName) => storeOf(memory, tableName));
  for (const [index, action] of prepared.entries())
    authorizeAction(memory, checked[index]?.kind ?? 'Put', action);
  const request = token === undefined ? '' : fingerprint(actions);
  if (token !== undefined && memory.tokens.isReplay(token, request)) return;
  const judged = prepared.map(judgeOne);
  if (judged.some(({ reason }) => reason.code !== 'None')) {
    throw new TransactionCancelled(judged.map(({ reason }) => reason));
  }
  judged.forEach(({ outcome }, index) => {
    const action = prepared[index];
    if (outcome && action) apply(memory, action.store, action.key, outcome);
  });
  if (token !== undefined) memory.tokens.add(token, request);
}

function updateEach(memory: Memory, updates: readonly EachUpdate[]): EachResult[] {
  assertEachUpdates(updates);
  for (const { key } of updates) memory.authorize('PartiQLUpdate', key.PK);
  return updates.map(({ key, set, remove = [], when }): EachResult => {
    const attributes = toAttributes({ ...key });
    const before = memory.store.get(attributes);
    const matches = Object.entries(toAttributes(when)).every(([name, value]) => equal(before?.[name], value));
    if (!before || !matches) return { ok: false, refused: true, ...(before && { item: toItem(before) }) };
    const kept = Object.entries(before).filter(([name]) => !remove.includes(name));
    const after = { ...structuredClone(Object.fromEntries(kept)), ...toAttributes(set) };
    try {
      assertItemBytes(after, 'Item size to update has exceeded the maximum allowed size');
    } catch (error) {
      return { ok: false, refused: false, code: 'ValidationError', message: (error as Error).message };
    }
    apply(memory, memory.store, attributes, { refused: false, before, after });
    return { ok: true };
  });
}

function expire(memory: Memory): number {
  const now = memory.clock.now();
  const expired = memory.store
    .all()
    .filter(({ expiresAt }) => expiresAt?.N !== undefined && Number(expiresAt.N) * 1000 < now);
  for (const item of expired) {
    memory.store.delete(memory.store.keyOf(item));
    memory.stream.add({ store: memory.store, before: item, after: undefined, now, expired: true });
  }
  return expired.length;
}

function filterOf(where: Item): Attributes {
  for (const [name, value] of Object.entries(where)) {
    if (value === undefined) throw new MailroomError('BAD_QUERY', `"where" compares ${name} with undefined.`);
    if (name === 'PK' || name === 'SK') {
      throw new ValidationException(
        `Filter Expression can only contain non-primary key attributes: Primary key attribute: ${name}`,
      );
    }
  }
  return toAttributes(where);
}
