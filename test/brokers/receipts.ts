import type { TestContext } from 'vitest';

/** The annotation that carries a receipt to the reporter: receipt-reporter.ts. */
export const RECEIPT = 'receipt';

/** What was sent through a broker in one scenario, and what arrived. */
export interface Receipt {
  /** For example `Kafka`. */
  readonly broker: string;
  readonly scenario: string;
  /** Distinct messages that were sent. */
  readonly sent: number;
  /** Messages that arrived, with duplicates. */
  readonly received: number;
  /** Distinct messages that arrived. */
  readonly distinct: number;
  /** Messages that arrived after one that was sent later with the same key. A duplicate does not count. */
  readonly outOfOrder: number;
  /** Messages that were sent and did not arrive. */
  readonly lost: number;
  /** Other measurements of the scenario, with their units in their names; only in JSON. */
  readonly figures?: Readonly<Record<string, number>> | undefined;
}

/** A message by its id, and the key in whose order it belongs. */
export interface Counted {
  readonly id: string;
  /** @default all messages have the same key */
  readonly key?: string | undefined;
}

/** Messages without a key. */
export function idsOf(...ids: readonly string[]): Counted[] {
  return ids.map((id) => ({ id }));
}

/**
 * Compares what was sent with what arrived.
 *
 * @param sent - in the order in which they were sent
 * @param received - in the order in which they arrived
 */
export function receiptOf(
  { broker, scenario }: Pick<Receipt, 'broker' | 'scenario'>,
  sent: readonly Counted[],
  received: readonly Counted[],
): Receipt {
  const turn = new Map(sent.map(({ id }, index) => [id, index]));
  const arrived = new Set<string>();
  const last = new Map<string | undefined, number>();
  let outOfOrder = 0;
  for (const { id, key } of received) {
    const index = turn.get(id);
    if (index === undefined || arrived.has(id)) continue;
    arrived.add(id);
    if (index < (last.get(key) ?? -1)) outOfOrder += 1;
    else last.set(key, index);
  }
  return {
    broker,
    scenario,
    sent: turn.size,
    received: received.length,
    distinct: new Set(received.map(({ id }) => id)).size,
    outOfOrder,
    lost: turn.size - arrived.size,
  };
}

/**
 * Adds the receipt of a scenario to the table that is printed after all tests.
 *
 * @returns the receipt, for the test to judge
 */
export async function report(
  { annotate }: Pick<TestContext, 'annotate'>,
  of: Pick<Receipt, 'broker' | 'scenario' | 'figures'>,
  ...messages: readonly [sent: readonly Counted[], received: readonly Counted[]]
): Promise<Receipt> {
  const { figures } = of;
  const receipt = { ...receiptOf(of, ...messages), ...(figures !== undefined && { figures }) };
  await annotate(JSON.stringify(receipt), RECEIPT);
  return receipt;
}
