import type { Item, Key, TransactAction } from '../../runtime/index.ts';
import type { OrderItem } from '../events.ts';

/** The version of the stock row's shape. */
const STOCK_SCHEMA = 1;

/** The key of the row that counts what is available of a SKU. */
export function stockKey(sku: string): Key {
  return { PK: `STOCK#${sku}`, SK: 'STOCK' };
}

/**
 * The stock row of a SKU. No service of this example takes goods in: whoever runs it puts these rows into the
 * table first.
 *
 * @example
 * ```ts
 * await documents.send(new PutCommand({ TableName, Item: stockRow('coffee', 100) }));
 * ```
 */
export function stockRow(sku: string, available: number): Item {
  return { ...stockKey(sku), schema: STOCK_SCHEMA, available };
}

/** How many pieces a stock row has; none when there is no row. */
export function availableIn(row: Item | undefined): number {
  return (row as { available: number } | undefined)?.available ?? 0;
}

/** Takes pieces out of a SKU's stock, if there are that many. */
export function takeStock(sku: string, quantity: number): TransactAction {
  return {
    Update: {
      Key: { ...stockKey(sku) },
      UpdateExpression: 'SET available = available - :quantity',
      ConditionExpression: 'available >= :quantity',
      ExpressionAttributeValues: { ':quantity': quantity },
    },
  };
}

/** Puts pieces back into a SKU's stock. */
export function returnStock(sku: string, quantity: number): TransactAction {
  return {
    Update: {
      Key: { ...stockKey(sku) },
      UpdateExpression: 'SET available = available + :quantity',
      ConditionExpression: 'attribute_exists(PK)',
      ExpressionAttributeValues: { ':quantity': quantity },
    },
  };
}

/** How many pieces an order needs of each SKU. A transaction takes one action an item, so lines are added up. */
export function quantityBySku(items: readonly OrderItem[]): ReadonlyMap<string, number> {
  const quantities = new Map<string, number>();
  for (const { sku, quantity } of items) quantities.set(sku, (quantities.get(sku) ?? 0) + quantity);
  return quantities;
}
