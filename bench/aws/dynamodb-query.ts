import type { Attributes } from '../../testing/attribute-values.ts';
import { parseCondition } from '../../testing/condition.ts';
import type { ParsedCondition as Condition } from '../../testing/condition-functions.ts';
import { ExpressionReader, Placeholders } from '../../testing/expression-reader.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { readUnits } from './billing.ts';
import type { Metered } from './dynamodb-write.ts';
import type { MeteredTable } from './metered-table.ts';
import { type OrderedView, storedBytes } from './ordered-view.ts';
import { known, type Wire } from './wire.ts';

/** The maximum number of bytes that one page reads: 1 MB (DynamoDB API reference, Query and Scan). */
const PAGE_BYTES_MAX = 1024 * 1024;

const READ_MEMBERS = [
  'TableName',
  'IndexName',
  'FilterExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ConsistentRead',
  'Limit',
  'ExclusiveStartKey',
];

/** Members of both reads. */
export interface ScanInput extends Wire {
  readonly IndexName?: string;
  readonly FilterExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
  readonly ConsistentRead?: boolean;
  readonly Limit?: number;
  readonly ExclusiveStartKey?: Attributes;
}

/** Members of a query. */
export interface QueryInput extends ScanInput {
  readonly KeyConditionExpression?: string;
  readonly ScanIndexForward?: boolean;
}

/** Reads a page of one partition of a table or an index. */
export function query(table: MeteredTable, input: QueryInput): Metered {
  known('Query', input, [...READ_MEMBERS, 'KeyConditionExpression', 'ScanIndexForward']);
  const view = table.view(input.IndexName);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const text = input.KeyConditionExpression ?? '';
  const partition = partitionOf(text, view, placeholders);
  const inRange = parseCondition(text, placeholders);
  const filter = filterOf(input, view, placeholders);
  const forward = view.partition(partition).filter(inRange);
  const backward = input.ScanIndexForward === false;
  const from = input.ExclusiveStartKey;
  const isAfter = (item: Attributes) =>
    from === undefined || (backward ? view.compare(item, from) < 0 : view.compare(item, from) > 0);
  return page(view, input, backward ? forward.toReversed() : forward, isAfter, filter);
}

/** Reads a page of a whole table or index. */
export function scan(table: MeteredTable, input: ScanInput): Metered {
  known('Scan', input, READ_MEMBERS);
  const view = table.view(input.IndexName);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const filter = filterOf(input, view, placeholders);
  const [name = ''] = view.keyNames;
  const from = input.ExclusiveStartKey;
  const isAfter = (item: Attributes) => {
    const [at = '', start = ''] = [item[name]?.S, from?.[name]?.S];
    return from === undefined || at > start || (at === start && view.compare(item, from) > 0);
  };
  return page(view, input, view.all(), isAfter, filter);
}

/** Continues after the end of the previous page. A page is billed by the bytes it reads, before the filter. */
function page(
  view: OrderedView,
  { ConsistentRead = false, Limit, IndexName }: ScanInput,
  items: readonly Attributes[],
  isAfter: (item: Attributes) => boolean,
  filter: Condition,
): Metered {
  if (Limit !== undefined && Limit < 1) throw new ValidationException(`Limit ${Limit} must be at least 1`);
  if (ConsistentRead && IndexName !== undefined) {
    throw new ValidationException('Consistent reads are not supported on global secondary indexes');
  }
  let bytes = 0;
  let end = firstAfter(items, isAfter);
  const begin = end;
  let last: Attributes | undefined;
  while (end < items.length && last === undefined) {
    const item = items[end] as Attributes;
    end += 1;
    bytes += storedBytes(item);
    if (end - begin === Limit || bytes >= PAGE_BYTES_MAX) last = item;
  }
  const Items = items.slice(begin, end).filter(filter);
  return {
    answer: {
      Items,
      Count: Items.length,
      ScannedCount: end - begin,
      LastEvaluatedKey: last && view.cursor(last),
    },
    readUnits: readUnits(bytes, ConsistentRead ? 'strong' : 'eventual'),
  };
}

/** The items are sorted, so a binary search works. */
function firstAfter(items: readonly Attributes[], isAfter: (item: Attributes) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(items[middle] as Attributes)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The partition in a key condition of the form `partition = :value`, with or without one condition on the sort key. */
function partitionOf(text: string, view: OrderedView, placeholders: Placeholders): string {
  const [partitionName, sortName] = view.keyNames;
  const reader = new ExpressionReader('KeyConditionExpression', text, placeholders);
  let value: string | undefined;
  do {
    const wrapped = reader.accept('(');
    if (reader.atFunction('begins_with')) {
      reader.take();
      reader.expect('(');
      sortPath(reader, sortName);
      reader.expect(',');
      reader.value();
      reader.expect(')');
    } else {
      const [name] = reader.path();
      const operator = reader.take().toUpperCase();
      const bound = reader.value();
      if (name === partitionName && operator === '=') value = bound.S;
      else if (name !== sortName)
        throw reader.error(`Query condition missed key schema element: ${partitionName}`);
      if (operator === 'BETWEEN') {
        reader.expect('AND');
        reader.value();
      }
    }
    if (wrapped) reader.expect(')');
  } while (reader.accept('AND'));
  reader.end();
  if (value) return value;
  throw reader.error(`One or more parameter values are not valid: ${partitionName} is missing or empty`);
}

function sortPath(reader: ExpressionReader, sortName: string | undefined): void {
  const [name] = reader.path();
  if (name !== sortName) throw reader.error(`Query key condition not supported on ${name}`);
}

/** Without a filter, every item passes. */
function filterOf(
  { FilterExpression, ExpressionAttributeNames = {} }: ScanInput,
  view: OrderedView,
  placeholders: Placeholders,
): Condition {
  const filter = FilterExpression === undefined ? () => true : parseCondition(FilterExpression, placeholders);
  placeholders.assertUsed();
  const named = (FilterExpression?.match(/(?<![:\w])#?\w+/g) ?? []).map(
    (word) => ExpressionAttributeNames[word] ?? word,
  );
  const key = named.find((name) => view.keyNames.includes(name));
  if (key === undefined) return filter;
  throw new ValidationException(
    `Filter Expression can only contain non-primary key attributes: Primary key attribute: ${key}`,
  );
}
