import { randomUUID } from 'node:crypto';
import type { SQSEvent } from 'aws-lambda';
import { deliveredEvent } from '../../lambdas/runtime/operations/delivered-event.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import { envelopeJson } from '../../lambdas/runtime/store/stored-envelope.ts';
import { recordOf } from '../../test/brokers/targets/bridge-invocation.ts';
import { chunks } from '../alternatives/queue-delivery.ts';
import { OrderPlaced, tableOfOrders } from '../relay/measured-relay.ts';
import type { Outgoing } from './broker-link.ts';

/** The messages of an invocation: the default batch size of a consumer. */
export const TOGETHER = 10;

/** Envelopes of new events, each of another order, as a bridge sends them. */
export async function newOrders(count: number): Promise<Outgoing[]> {
  const rows = (await tableOfOrders(count, Date.now())).items();
  return rows
    .filter(({ PK }) => PK.startsWith(OUTBOX_PREFIX))
    .map((row) => {
      const stored = envelopeJson(row);
      if (stored.problem !== undefined) throw stored.problem;
      const { aggregateId } = JSON.parse(stored.json) as { readonly aggregateId: string };
      return { key: aggregateId, body: stored.json };
    });
}

/** The invocations by which SQS and Lambda deliver those events to a consumer. */
export function invocationsOf(orders: readonly Outgoing[]): SQSEvent[] {
  const { source, type } = OrderPlaced;
  const from = { account: '000000000000', region: 'us-east-1', time: Date.now() };
  const delivered = ({ body: envelope }: Outgoing) =>
    recordOf(deliveredEvent({ source, type, envelope }, { ...from, id: randomUUID() }), 1);
  return chunks(orders, TOGETHER).map((batch) => ({ Records: batch.map(delivered) }));
}
