import { createHash } from 'node:crypto';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { TransactAction } from '../../lambdas/runtime/store/table.ts';
import { judge, type ActionOutcome as Outcome, type Prepared, prepare } from '../../testing/memory-action.ts';
import { type Store, toAttributes } from '../../testing/memory-store.ts';
import { judgeOne, prepareAll } from '../../testing/memory-transaction.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { readUnits, writeUnits } from './billing.ts';
import { type QueryInput, query, type ScanInput, scan } from './dynamodb-query.ts';
import { batchGetItem, getItem, type StoreOf } from './dynamodb-reads.ts';
import { readStatement, type Statement } from './dynamodb-statement.ts';
import { type Accepted, items, type Metered, refusal, refusedUnits, returned } from './dynamodb-write.ts';
import type { MeteredTable } from './metered-table.ts';
import { storedBytes } from './ordered-view.ts';
import { known, type Wire } from './wire.ts';

/** The lifetime of a transaction's token: 10 minutes (DynamoDB API reference, TransactWriteItems). */
const TOKEN_MS = 600_000;

/** Members of every write. */
const WRITE_MEMBERS = [
  'TableName',
  'ConditionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ReturnValuesOnConditionCheckFailure',
];

type Apply = (prepared: Prepared, outcome: Accepted, transactional: boolean) => number;
type MeteredWrite = (action: TransactAction) => { prepared: Prepared; outcome: Outcome; units: number };

/** DynamoDB's operations on in-memory tables, at the level of the wire format. */
export function createDynamoDbWire(tables: ReadonlyMap<string, MeteredTable>, clock: Clock) {
  const created = clock.now();

  function tableOf(name: string | undefined): MeteredTable {
    const found = tables.get(name ?? '');
    if (found) return found;
    throw new ValidationException(
      `Requested resource not found: Table: ${name} not found`,
      'ResourceNotFoundException',
    );
  }

  const storeOf = (name: string | undefined): Store => tableOf(name).store;

  function apply({ store }: Prepared, { before, after }: Accepted, transactional: boolean): number {
    const bytes = { before: storedBytes(before), after: storedBytes(after) };
    const indexes = before === after ? 0 : tableOf(store.tableName).apply(before, after, clock.now());
    return writeUnits(bytes, transactional) + indexes;
  }

  /** One write: its result, and its units. */
  function write(action: TransactAction): { prepared: Prepared; outcome: Outcome; units: number } {
    const prepared = prepare(action, storeOf);
    const outcome = judge(prepared);
    const units = outcome.refused ? refusedUnits(prepared, false) : apply(prepared, outcome, false);
    return { prepared, outcome, units };
  }

  function single(kind: 'Put' | 'Update' | 'Delete', input: Wire): Metered {
    const own = kind === 'Put' ? ['Item'] : kind === 'Update' ? ['Key', 'UpdateExpression'] : ['Key'];
    known(`${kind}Item`, input, [...WRITE_MEMBERS, ...own, 'ReturnValues']);
    const { ReturnValues = 'NONE', ...request } = input;
    const { prepared, outcome, units } = write({ [kind]: items(request) } as TransactAction);
    if (outcome.refused) {
      const Item = prepared.returnsOld ? outcome.before : undefined;
      return refusal('ConditionalCheckFailedException', { Item }, units);
    }
    return { answer: { Attributes: returned(ReturnValues, outcome, request) }, writeUnits: units };
  }

  const operations: Readonly<Record<string, (input: Wire) => Metered>> = {
    GetItem: (input) => getItem(input, storeOf),
    BatchGetItem: (input) => batchGetItem(input, storeOf),
    PutItem: (input) => single('Put', input),
    UpdateItem: (input) => single('Update', input),
    DeleteItem: (input) => single('Delete', input),
    TransactWriteItems: createTransactions(clock, storeOf, apply),
    BatchExecuteStatement: (input) => batchExecuteStatement(input, storeOf, write),
    Query: (input) => query(tableOf(input.TableName as string), input as QueryInput),
    Scan: (input) => scan(tableOf(input.TableName as string), input as ScanInput),
    DescribeTable: (input) => describeTable(storeOf(input.TableName as string), created),
  };
  return (operation: string, { ReturnConsumedCapacity, ...input }: Wire): Metered => {
    const operate = operations[operation];
    if (operate !== undefined) {
      const metered = operate(input);
      return ReturnConsumedCapacity === 'TOTAL' ? withCapacity(operation, metered) : metered;
    }
    throw new Error(
      `The metered AWS does not support ${operation} of DynamoDB; add it to ${import.meta.url}`,
    );
  };
}

/** Adds the consumed capacity to a response; BatchGetItem has a list with one for each table. */
function withCapacity(operation: string, metered: Metered): Metered {
  const capacity = { CapacityUnits: (metered.readUnits ?? 0) + (metered.writeUnits ?? 0) };
  const ConsumedCapacity = operation === 'BatchGetItem' ? [capacity] : capacity;
  return { ...metered, answer: { ...metered.answer, ConsumedCapacity } };
}

/** Each statement is executed and billed as the equivalent write ("PartiQL for DynamoDB", and its pricing). */
function batchExecuteStatement(input: Wire, storeOf: StoreOf, write: MeteredWrite): Metered {
  known('BatchExecuteStatement', input, ['Statements']);
  const statements = input.Statements as readonly Statement[];
  let units = 0;
  const Responses = statements.map((statement) => {
    const { tableName, update } = readStatement(statement, (name) => storeOf(name).keyNames);
    try {
      const { outcome, units: own } = write({
        Update: { ...items(update), TableName: tableName },
      } as never);
      units += own;
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
  return { answer: { Responses }, writeUnits: units };
}

function describeTable({ tableName }: Store, created: number): Metered {
  const Table = { TableName: tableName, TableStatus: 'ACTIVE', CreationDateTime: created / 1_000 };
  return { answer: { Table } };
}

/** Transactions, each stored under its token for a while. */
function createTransactions(clock: Clock, storeOf: StoreOf, apply: Apply): (input: Wire) => Metered {
  const tokens = new Map<string, { readonly request: string; readonly until: number }>();

  function isReplay(token: string, request: string): boolean {
    if (token.length < 1 || token.length > 36) {
      throw new ValidationException(`Value '${token}' at 'clientRequestToken' must have a length of 1 to 36`);
    }
    const found = tokens.get(token);
    if (found === undefined || found.until <= clock.now()) return false;
    if (found.request === request) return true;
    throw new ValidationException(
      'The token was used by another transaction within the last 10 minutes',
      'IdempotentParameterMismatchException',
    );
  }

  return (input) => {
    known('TransactWriteItems', input, ['TransactItems', 'ClientRequestToken']);
    const actions = (input.TransactItems as Record<string, Wire>[]).map((action) =>
      Object.fromEntries(Object.entries(action).map(([kind, request]) => [kind, items(request)])),
    ) as TransactAction[];
    const prepared = prepareAll(actions, storeOf);
    const token = input.ClientRequestToken as string | undefined;
    const request = createHash('sha256').update(JSON.stringify(input.TransactItems)).digest('base64');
    if (token !== undefined && isReplay(token, request)) {
      // It writes nothing, and is billed as a read of its items (API reference, TransactWriteItems).
      const bytes = prepared.map(({ store, key }) => storedBytes(store.get(key)));
      return { answer: {}, readUnits: sum(bytes, (each) => readUnits(each, 'transactional')) };
    }
    const judged = prepared.map((action) => ({ action, ...judgeOne(action) }));
    if (judged.some(({ reason }) => reason.code !== 'None')) {
      const codes = judged.map(({ reason }) => reason.code).join(', ');
      const CancellationReasons = judged.map(({ reason }) => ({
        Code: reason.code,
        Message: reason.message,
        Item: reason.item && toAttributes(reason.item),
      }));
      const Message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
      const units = sum(prepared, (action) => refusedUnits(action, true));
      return refusal('TransactionCanceledException', { Message, CancellationReasons }, units);
    }
    const units = sum(judged, ({ action, outcome }) =>
      outcome && !outcome.refused ? apply(action, outcome, true) : 0,
    );
    if (token !== undefined) tokens.set(token, { request, until: clock.now() + TOKEN_MS });
    return { answer: {}, writeUnits: units };
  };
}

function sum<T>(values: readonly T[], units: (value: T) => number): number {
  return values.reduce((total, value) => total + units(value), 0);
}
