import type { Item, Key, TransactAction } from '../../runtime/index.ts';
import type { OrderItem } from '../events.ts';

/** The version of the stock row's shape. */
const STOCK_SCHEMA = 1;

/** Makes the key of the row with a SKU's available quantity. */
export function stockKey(sku: string): Key {
  return { PK: `STOCK#${sku}`, SK: 'STOCK' };
}

/**
 * Makes the stock row of a SKU. No service of this example receives goods: put these rows into the table before you run it.
 *
 * @example
 * ```ts
 * await documents.send(new PutCommand({ TableName, Item: stockRow('coffee', 100) }));
 * ```
 */
export function stockRow(sku: string, available: number): Item {
  return { ...stockKey(sku), schema: STOCK_SCHEMA, available };
}

/** Returns the available pieces in a stock row; 0 if the row does not exist. */
export function availableIn(row: Item | undefined): number {
  return (row as { available: number } | undefined)?.available ?? 0;
}

/** Takes pieces from a SKU's stock, if enough are available. */
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

/** Returns pieces to a SKU's stock. */
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

/** Returns an order's quantity per SKU. A transaction accepts one action per item, so lines are added up. */
export function quantityBySku(items: readonly OrderItem[]): ReadonlyMap<string, number> {
  const quantities = new Map<string, number>();
  for (const { sku, quantity } of items) quantities.set(sku, (quantities.get(sku) ?? 0) + quantity);
  return quantities;
}
