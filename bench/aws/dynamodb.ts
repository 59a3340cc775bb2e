import { createHash } from 'node:crypto';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { GET_EACH_REQUEST_MAX, type TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { Attributes } from '../../testing/attribute-values.ts';
import { Placeholders } from '../../testing/expression-reader.ts';
import { type ActionOutcome, judge, type Prepared, prepare } from '../../testing/memory-action.ts';
import { type Store, toAttributes, toItem } from '../../testing/memory-store.ts';
import { createTokens, judgeOne, prepareAll } from '../../testing/memory-transaction.ts';
import { parseUpdate } from '../../testing/update.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { readUnits, writeUnits } from './billing.ts';
import { readPage } from './dynamodb-query.ts';
import { readStatement, type Statement } from './dynamodb-statement.ts';
import { type MeteredTable, storedBytes } from './metered-table.ts';
import { known, type Metered, type Wire } from './wire.ts';

const WRITE_MEMBERS = [
  'TableName',
  'ConditionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ReturnValuesOnConditionCheckFailure',
];

interface UpdateInput extends Wire {
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
}

type StoreOf = (name: string | undefined) => Store;
/** Applies an accepted write. @returns its units and those of the indexes */
type Apply = (prepared: Prepared, outcome: ActionOutcome, isTransactional: boolean) => number;

/** DynamoDB's operations on in-memory tables, at the level of the wire format. */
export function createDynamoDb(tables: ReadonlyMap<string, MeteredTable>, clock: Clock) {
  const created = clock.now() / 1_000;

  function tableOf(name: unknown): MeteredTable {
    const found = tables.get(String(name));
    if (found) return found;
    const message = `Requested resource not found: Table: ${name} not found`;
    throw new ValidationException(message, 'ResourceNotFoundException');
  }

  const storeOf: StoreOf = (name) => tableOf(name).store;

  const apply: Apply = ({ store }, outcome, isTransactional) => {
    if (outcome.refused) return 0;
    const { before, after } = outcome;
    const bytes = { before: storedBytes(before), after: storedBytes(after) };
    const indexes = before === after ? 0 : tableOf(store.tableName).apply(before, after, clock.now());
    return writeUnits(bytes, isTransactional) + indexes;
  };

  function write(action: TransactAction) {
    const prepared = prepare(action, storeOf);
    const outcome = judge(prepared);
    const units = outcome.refused ? refusedUnits(prepared, false) : apply(prepared, outcome, false);
    return { prepared, outcome, units };
  }

  function single(kind: 'Put' | 'Update' | 'Delete', input: Wire): Metered {
    const own = kind === 'Put' ? ['Item'] : kind === 'Update' ? ['Key', 'UpdateExpression'] : ['Key'];
    known(`${kind}Item`, input, [...WRITE_MEMBERS, ...own, 'ReturnValues']);
    const { ReturnValues = 'NONE', ...request } = input;
    const { prepared, outcome, units } = write({ [kind]: native(request) } as TransactAction);
    if (!outcome.refused)
      return { answer: { Attributes: returned(ReturnValues, outcome, input) }, writeUnits: units };
    const Item = prepared.returnsOld ? outcome.before : undefined;
    return refusal('ConditionalCheckFailedException', { Item }, units);
  }

  /** Each statement is executed and billed as the equivalent write ("PartiQL for DynamoDB", and its pricing). */
  function batchExecuteStatement(input: Wire): Metered {
    known('BatchExecuteStatement', input, ['Statements']);
    let sum = 0;
    const Responses = (input.Statements as readonly Statement[]).map((statement) => {
      const { tableName, update } = readStatement(statement, (name) => storeOf(name).keyNames);
      try {
        const { outcome, units } = write({ Update: { ...native(update), TableName: tableName } } as never);
        sum += units;
        if (!outcome.refused) return { TableName: tableName };
        const Item = statement.ReturnValuesOnConditionCheckFailure === 'ALL_OLD' ? outcome.before : undefined;
        return {
          TableName: tableName,
          Error: { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed', Item },
        };
      } catch (error) {
        if (!(error instanceof ValidationException)) throw error;
        return { TableName: tableName, Error: { Code: 'ValidationError', Message: error.message } };
      }
    });
    return { answer: { Responses }, writeUnits: sum };
  }

  const operations: Readonly<Record<string, (input: Wire) => Metered>> = {
    GetItem: (input) => getItem(input, storeOf),
    BatchGetItem: (input) => batchGetItem(input, storeOf),
    PutItem: (input) => single('Put', input),
    UpdateItem: (input) => single('Update', input),
    DeleteItem: (input) => single('Delete', input),
    TransactWriteItems: createTransactions(clock, storeOf, apply),
    BatchExecuteStatement: batchExecuteStatement,
    Query: (input) => readPage('Query', tableOf(input.TableName), input),
    Scan: (input) => readPage('Scan', tableOf(input.TableName), input),
    DescribeTable: (input) => ({
      answer: { Table: { TableName: tableOf(input.TableName).store.tableName, CreationDateTime: created } },
    }),
  };
  return (operation: string, input: Wire): Metered => {
    const operate = operations[operation];
    if (operate !== undefined) return operate(input);
    throw new Error(
      `The metered AWS does not support ${operation} of DynamoDB; add it to ${import.meta.url}`,
    );
  };
}

/** Transactions, each stored under its token for a while. */
function createTransactions(clock: Clock, storeOf: StoreOf, apply: Apply): (input: Wire) => Metered {
  const tokens = createTokens(clock);
  return (input) => {
    known('TransactWriteItems', input, ['TransactItems', 'ClientRequestToken']);
    const actions = (input.TransactItems as Record<string, Wire>[]).map((action) =>
      Object.fromEntries(Object.entries(action).map(([kind, request]) => [kind, native(request)])),
    ) as TransactAction[];
    const prepared = prepareAll(actions, storeOf);
    const token = input.ClientRequestToken as string | undefined;
    const request = createHash('sha256').update(JSON.stringify(input.TransactItems)).digest('base64');
    if (token !== undefined && tokens.isReplay(token, request)) {
      // It writes nothing, and is billed as a read of its items (API reference, TransactWriteItems).
      const units = ({ store, key }: Prepared) => readUnits(storedBytes(store.get(key)), 'transactional');
      return { answer: {}, readUnits: sum(prepared, units) };
    }
    const judged = prepared.map((action) => ({ action, ...judgeOne(action) }));
    if (judged.some(({ reason }) => reason.code !== 'None')) {
      const codes = judged.map(({ reason }) => reason.code).join(', ');
      const CancellationReasons = judged.map(({ reason: { code, message, item } }) => ({
        Code: code,
        Message: message,
        Item: item && toAttributes(item),
      }));
      const Message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
      const units = sum(prepared, (action) => refusedUnits(action, true));
      return refusal('TransactionCanceledException', { Message, CancellationReasons }, units);
    }
    const units = sum(judged, ({ action, outcome }) => (outcome ? apply(action, outcome, true) : 0));
    if (token !== undefined) tokens.add(token, request);
    return { answer: {}, writeUnits: units };
  };
}

function getItem(input: Wire, storeOf: StoreOf): Metered {
  known('GetItem', input, ['TableName', 'Key', 'ConsistentRead']);
  const { TableName, Key, ConsistentRead } = input;
  const { item, units } = read(storeOf(TableName as string), Key as Attributes, ConsistentRead === true);
  return { answer: { Item: item }, readUnits: units };
}

/** Each key is billed as a GetItem of it ("DynamoDB read and write operations"). */
function batchGetItem(input: Wire, storeOf: StoreOf): Metered {
  known('BatchGetItem', input, ['RequestItems']);
  const requests = Object.entries(input.RequestItems as Record<string, Wire>);
  const keys = requests.flatMap(([, { Keys }]) => Keys as Attributes[]);
  if (keys.length < 1 || keys.length > GET_EACH_REQUEST_MAX)
    throw new ValidationException(`${keys.length} keys; a request must have 1 to ${GET_EACH_REQUEST_MAX}`);
  if (new Set(keys.map((key) => JSON.stringify(key))).size < keys.length)
    throw new ValidationException('Provided list of item keys contains duplicates');
  const found = requests.map(([tableName, request]) => {
    known('BatchGetItem', request, ['Keys', 'ConsistentRead']);
    const isConsistent = request.ConsistentRead === true;
    return (request.Keys as Attributes[]).map((key) => read(storeOf(tableName), key, isConsistent));
  });
  const Responses = Object.fromEntries(
    requests.map(([name], n) => [name, found[n]?.flatMap(({ item }) => (item === undefined ? [] : [item]))]),
  );
  return { answer: { Responses, UnprocessedKeys: {} }, readUnits: sum(found.flat(), ({ units }) => units) };
}

function read(store: Store, key: Attributes, isConsistent: boolean) {
  store.assertKeyBytes(key);
  const fault = store.keyFault(key);
  if (fault) throw fault;
  const item = store.get(key);
  return { item, units: readUnits(storedBytes(item), isConsistent ? 'strong' : 'eventual') };
}

/** The units of a refused write: those of the intended write, or of the existing item if it is larger. */
function refusedUnits({ store, key, after }: Prepared, isTransactional: boolean): number {
  const before = store.get(key);
  let wanted: Attributes | undefined;
  try {
    wanted = after(before);
  } catch {
    // The write is not possible on this item, so only the item counts.
  }
  return writeUnits({ before: storedBytes(before), after: storedBytes(wanted) }, isTransactional);
}

function refusal(error: string, members: Wire, units: number): Metered {
  return { error, answer: { message: 'The conditional request failed', ...members }, writeUnits: units };
}

/** The part of the item that an accepted write returns. */
function returned(option: unknown, outcome: ActionOutcome & { readonly refused: false }, input: UpdateInput) {
  const { after = {} } = outcome;
  if (option === 'NONE') return undefined;
  if (option === 'ALL_NEW') return after;
  if (option !== 'UPDATED_NEW')
    throw new Error(`The metered AWS does not support ReturnValues ${String(option)}`);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const { names } = parseUpdate(input.UpdateExpression ?? '', placeholders);
  return Object.fromEntries(Object.entries(after).filter(([name]) => names.includes(name)));
}

/** A write with its items in the form that the evaluators accept. */
function native(request: Wire): Wire {
  const items = ['Item', 'Key', 'ExpressionAttributeValues'].filter((name) => request[name] !== undefined);
  const converted = items.map((name) => [name, toItem(request[name] as Attributes)]);
  return { ...request, ...Object.fromEntries(converted) };
}

function sum<T>(values: readonly T[], units: (value: T) => number): number {
  return values.reduce((total, value) => total + units(value), 0);
}
