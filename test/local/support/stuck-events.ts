import { inject } from 'vitest';
import { required } from '../../../demo/readings.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import { pendingRow } from '../../../lambdas/runtime/outbox/pending-row.ts';
import { relayContext } from '../../../lambdas/runtime/relay/relay-context.ts';
import { dynamoTable } from '../../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { failEvent } from '../../../lambdas/runtime/store/dynamo/outbox-writes.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { relayConfig } from '../../../testing/default-config.ts';
import { memoryBus, memoryTelemetry } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { get, put } from './order-system.ts';
import { unpublishedOrder } from './unpublished-order.ts';

const table = dynamoTable({
  client: dynamoClient(inject('endpoint')),
  tableName: required(inject('outputs'), 'TableName'),
});

/**
 * The `OrderPlaced` of a paper order, minted some time ago, that is PENDING and that no publisher knows of: the stream saw no
 * new row, because it was written as something else first.
 *
 * @param ageMs - between two of the sweep's ages, so that no ordinary pass finds it
 */
export async function forgottenEvent(ageMs: number): Promise<Envelope> {
  const paper = await unpublishedOrder();
  const eventId = mintEventId(Date.now() - ageMs, 8);
  const envelope = { ...paper.envelope, eventId };
  const key = outboxKeyOf(eventId);
  const leaseUntil = Date.now() - ageMs;
  await put({ ...paper.row, ...key, envelope: JSON.stringify(envelope), leaseUntil, status: 'UNSEEN' });
  await table.updateEach([{ key, set: { status: 'PENDING' }, when: { status: 'UNSEEN' } }]);
  return envelope;
}

/** Such an event, DEAD by the relay's own transition: the bus has refused it. */
export async function deadEvent(message = 'The entry is malformed.'): Promise<Envelope> {
  const envelope = await forgottenEvent(0);
  const row = pendingRow((await get(outboxKeyOf(envelope.eventId))) ?? {});
  if (row === undefined) throw new Error(`Event ${envelope.eventId} is not PENDING`);
  const deps = {
    config: relayConfig({ tableName: table.name }),
    table,
    bus: memoryBus(),
    telemetry: memoryTelemetry(),
  };
  await failEvent(relayContext(deps, 'sweep', 1), row, new MailroomError('MalformedDetail', message), true);
  return envelope;
}
