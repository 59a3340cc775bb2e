import type { Attributes } from '../../testing/attribute-values.ts';
import { parseCondition } from '../../testing/condition.ts';
import type { ParsedCondition } from '../../testing/condition-functions.ts';
import { Placeholders } from '../../testing/expression-reader.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { readUnits } from './billing.ts';
import { type MeteredTable, storedBytes, type TableView } from './metered-table.ts';
import { known, type Metered, type Wire } from './wire.ts';

/** The maximum number of bytes that one page reads: 1 MB (DynamoDB API reference, Query and Scan). */
const PAGE_BYTES_MAX = 1024 * 1024;

/** Members of a query; a scan has no key condition and no direction. */
interface QueryInput extends Wire {
  readonly IndexName?: string;
  readonly KeyConditionExpression?: string;
  readonly FilterExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Attributes;
  readonly ConsistentRead?: boolean;
  readonly Limit?: number;
  readonly ExclusiveStartKey?: Attributes;
  readonly ScanIndexForward?: boolean;
}

const SCAN_MEMBERS = [
  'TableName',
  'IndexName',
  'FilterExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ConsistentRead',
  'Limit',
  'ExclusiveStartKey',
];

/** Reads a page of one partition of a table or an index, or of all partitions. */
export function readPage(operation: 'Query' | 'Scan', table: MeteredTable, input: QueryInput): Metered {
  const isQuery = operation === 'Query';
  known(operation, input, [
    ...SCAN_MEMBERS,
    ...(isQuery ? ['KeyConditionExpression', 'ScanIndexForward'] : []),
  ]);
  const { Limit, ConsistentRead = false, IndexName, ExclusiveStartKey: from } = input;
  if (Limit !== undefined && Limit < 1) throw new ValidationException(`Limit ${Limit} must be at least 1`);
  if (ConsistentRead && IndexName !== undefined)
    throw new ValidationException('Consistent reads are not supported on global secondary indexes');
  const view = table.view(IndexName);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const found = isQuery ? queried(view, input, placeholders) : view.entries();
  const filter = filterOf(view, input, placeholders);
  const sign = input.ScanIndexForward === false ? -1 : 1;
  const items = from === undefined ? found : found.filter((item) => sign * view.compare(item, from) > 0);
  let [read, bytes] = [0, 0];
  let last: Attributes | undefined;
  while (read < items.length && last === undefined) {
    const item = items[read] as Attributes;
    read += 1;
    bytes += storedBytes(item);
    if (read === Limit || bytes >= PAGE_BYTES_MAX) last = item;
  }
  const Items = items.slice(0, read).filter(filter);
  return {
    answer: { Items, Count: Items.length, ScannedCount: read, LastEvaluatedKey: last && view.cursor(last) },
    // A page is billed by what it reads, before the filter.
    readUnits: readUnits(bytes, ConsistentRead ? 'strong' : 'eventual'),
  };
}

/** The entries of a query's partition that meet its key condition, in its direction. */
function queried(
  view: TableView,
  { KeyConditionExpression = '', ExpressionAttributeNames = {}, ...input }: QueryInput,
  placeholders: Placeholders,
): readonly Attributes[] {
  const inRange = parseCondition(KeyConditionExpression, placeholders);
  const equals = [...KeyConditionExpression.matchAll(/([#\w]+) *= *(:\w+)/g)];
  const value = equals.find(
    ([, name = '']) => (ExpressionAttributeNames[name] ?? name) === view.partitionName,
  )?.[2];
  const partition = input.ExpressionAttributeValues?.[value ?? '']?.S;
  if (!partition)
    throw new ValidationException(
      `One or more parameter values are not valid: ${view.partitionName} is missing or empty`,
    );
  const found = view.entries(partition).filter(inRange);
  return input.ScanIndexForward === false ? found.reverse() : found;
}

/** Without a filter, every item passes. */
function filterOf(
  view: TableView,
  { FilterExpression, ExpressionAttributeNames = {} }: QueryInput,
  placeholders: Placeholders,
): ParsedCondition {
  const filter = FilterExpression === undefined ? () => true : parseCondition(FilterExpression, placeholders);
  placeholders.assertUsed();
  const words = FilterExpression?.match(/(?<![:\w])#?\w+/g) ?? [];
  const key = words
    .map((word) => ExpressionAttributeNames[word] ?? word)
    .find((name) => view.keyNames.includes(name));
  if (key === undefined) return filter;
  throw new ValidationException(
    `Filter Expression can only contain non-primary key attributes: Primary key attribute: ${key}`,
  );
}
