import type { DynamoDBRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../lambdas/runtime/clock.ts';
import { ConditionFailed, MailroomError, TransactionCancelled } from '../lambdas/runtime/errors.ts';
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
import { assertEachUpdates, checkedAction, checkedActions } from '../lambdas/runtime/store/table-checks.ts';
import { type Attributes, byteOrder, equal } from './attribute-values.ts';
import { assertItemBytes, judge, type Outcome, prepare } from './memory-action.ts';
import { createStore, type KeyNames, type Store, toAttributes, toItem } from './memory-store.ts';
import { createStream } from './memory-stream.ts';
import { fingerprint, judgeOne, prepareAll } from './memory-transaction.ts';
import { ValidationException } from './validation-exception.ts';

/** How long a transaction's token is remembered: 10 minutes (DynamoDB API reference, TransactWriteItems). */
const TOKEN_MS = 600_000;

/** The longest token of a transaction, in characters (DynamoDB API reference, TransactWriteItems). */
const TOKEN_CHARS_MAX = 36;

/** The most bytes that one page of a query reads: 1 MB (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

/** The settings of {@link memoryTable}. */
export interface MemoryTableOptions {
  /** The name of the Mailroom table. @default 'Mailroom' */
  readonly name?: string | undefined;
  /** Times the stream's records, TTL and the tokens of transactions. @default the machine's clock */
  readonly clock?: Clock | undefined;
  /**
   * Tables of the service's own that its transactions write to beside the Mailroom table: the names of their key
   * attributes, by table name, e.g. `{ Orders: ['orderId'] }`. @default none
   */
  readonly otherTables?: Readonly<Record<string, KeyNames>> | undefined;
}

/** A {@link Table} in memory, and what a test wants to see of it. */
export interface MemoryTable extends Table {
  /** All items, as copies, in the order of their keys. @param tableName - @default the Mailroom table */
  items(tableName?: string): Item[];
  /** One item of the Mailroom table, as a copy; `undefined` when there is none. */
  item(key: Key): Item | undefined;
  /** Every change of the Mailroom table since its creation, as the records that a Lambda function is handed. */
  stream(): DynamoDBRecord[];
  /** Does what TTL does, at once: deletes the items whose `expiresAt` has passed. @returns how many */
  expire(): number;
}

/**
 * DynamoDB in memory, behind the same port as `dynamoTable`: it evaluates the real expressions, refuses what
 * DynamoDB refuses, and keeps copies. Both pass the same suite of tests.
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
  const { name = 'Mailroom', clock = systemClock, otherTables = {} } = options;
  const store = createStore(name, ['PK', 'SK'], true);
  const stores = new Map([[name, store]]);
  for (const [other, keyNames] of Object.entries(otherTables))
    stores.set(other, createStore(other, keyNames, false));
  const stream = createStream();
  const created = clock.now();
  const tokens = new Map<string, { readonly request: string; readonly until: number }>();

  function storeOf(tableName = name): Store {
    const found = stores.get(tableName);
    if (found) return found;
    throw new ValidationException(
      `Requested resource not found: Table: ${tableName} not found. A table of your own is made known to ` +
        'memoryTable by its option "otherTables".',
      'ResourceNotFoundException',
    );
  }

  function apply(to: Store, key: Attributes, outcome: Outcome): void {
    if (outcome.refused || outcome.before === outcome.after) return;
    const { before, after } = outcome;
    if (after) to.put(after);
    else to.delete(key);
    if (to === store) stream.add({ store, before, after, now: clock.now() });
  }

  async function get(key: Key): Promise<Item | undefined> {
    const attributes = toAttributes({ ...key });
    store.assertKeyBytes(attributes);
    const fault = store.keyFault(attributes);
    if (fault) throw fault;
    const item = store.get(attributes);
    return item && toItem(item);
  }

  async function query({ pk, skPrefix = '', where = {}, limit, cursor }: Query): Promise<Page> {
    const filter = Object.entries(filterOf(where));
    if (pk === '' || (limit !== undefined && limit < 1)) {
      throw new ValidationException(
        `Query: pk "${pk}" must not be empty, and limit ${limit} must be at least 1`,
      );
    }
    const after = cursor === undefined ? undefined : String(cursor.SK);
    const items: Item[] = [];
    let [count, bytes] = [0, 0];
    for (const attributes of store.partition(pk)) {
      const sk = attributes.SK?.S ?? '';
      if (!sk.startsWith(skPrefix) || (after !== undefined && byteOrder(sk, after) <= 0)) continue;
      const item = toItem(attributes);
      if (filter.every(([name, value]) => equal(attributes[name], value))) items.push(item);
      count += 1;
      bytes += itemBytes(item);
      if (count === limit || bytes >= PAGE_BYTES_MAX) return { items, cursor: { PK: pk, SK: sk } };
    }
    return { items };
  }

  async function write(write: Write): Promise<Item | undefined> {
    const { kind } = checkedAction(write);
    if (kind === 'ConditionCheck') {
      throw new MailroomError('BAD_WRITE', 'A ConditionCheck writes nothing; it belongs in a transaction.');
    }
    const prepared = prepare(write, storeOf);
    const outcome = judge(prepared);
    if (outcome.refused) {
      throw new ConditionFailed(
        (prepared.returnsOld ?? true) ? outcome.before && toItem(outcome.before) : undefined,
      );
    }
    apply(prepared.store, prepared.key, outcome);
    return kind === 'Update' && outcome.after ? toItem(outcome.after) : undefined;
  }

  async function transact(actions: readonly TransactAction[], token?: string): Promise<void> {
    checkedActions(actions);
    const prepared = prepareAll(actions, storeOf);
    const request = token === undefined ? '' : fingerprint(actions);
    if (token !== undefined && isReplay(token, request)) return;
    const judged = prepared.map(judgeOne);
    if (judged.some(({ reason }) => reason.code !== 'None')) {
      throw new TransactionCancelled(judged.map(({ reason }) => reason));
    }
    judged.forEach(({ outcome }, index) => {
      const action = prepared[index];
      if (outcome && action) apply(action.store, action.key, outcome);
    });
    if (token !== undefined) tokens.set(token, { request, until: clock.now() + TOKEN_MS });
  }

  function isReplay(token: string, request: string): boolean {
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
  }

  async function updateEach(updates: readonly EachUpdate[]): Promise<EachResult[]> {
    assertEachUpdates(updates);
    return updates.map(({ key, set, remove = [], when }): EachResult => {
      const attributes = toAttributes({ ...key });
      const before = store.get(attributes);
      const matches = Object.entries(toAttributes(when)).every(([name, value]) =>
        equal(before?.[name], value),
      );
      if (!before || !matches) return { ok: false, refused: true, ...(before && { item: toItem(before) }) };
      const kept = Object.entries(before).filter(([name]) => !remove.includes(name));
      const after = { ...structuredClone(Object.fromEntries(kept)), ...toAttributes(set) };
      try {
        assertItemBytes(after, 'Item size to update has exceeded the maximum allowed size');
      } catch (error) {
        return { ok: false, refused: false, code: 'ValidationError', message: (error as Error).message };
      }
      apply(store, attributes, { refused: false, before, after });
      return { ok: true };
    });
  }

  function expire(): number {
    const now = clock.now();
    const expired = store
      .all()
      .filter(({ expiresAt }) => expiresAt?.N !== undefined && Number(expiresAt.N) * 1000 < now);
    for (const item of expired) {
      store.delete(store.keyOf(item));
      stream.add({ store, before: item, after: undefined, now, expired: true });
    }
    return expired.length;
  }

  return {
    name,
    get,
    query,
    write,
    transact,
    updateEach,
    createdAt: async () => created,
    items: (tableName) => {
      const found = storeOf(tableName);
      return found
        .all()
        .sort((a, b) => byteOrder(found.id(a), found.id(b)))
        .map(toItem);
    },
    item: (key) => {
      const item = store.get(toAttributes({ ...key }));
      return item && toItem(item);
    },
    stream: () => structuredClone([...stream.records]),
    expire,
  };
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
