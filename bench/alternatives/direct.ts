import { PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import type { ReceivingHalf, SendingHalf } from './composed-system.ts';
import { DOMAIN, orderRow, storedEvent } from './workload.ts';

/** The number of attempts a handler makes to publish before it fails. */
const TRIES_MAX = 3;

/**
 * Publishing without an outbox, the floor: the handler writes its row, then calls PutEvents, again when the bus refuses. A crash
 * or a long outage between the two loses the event; this is the "dual write" that the AWS Compute Blog warns of ("Implementing
 * the transactional outbox pattern with Amazon EventBridge Pipes").
 */
export const direct: SendingHalf = {
  name: 'direct',
  publishes: 'may lose',
  tables: [],
  write: async ({ documents, publish, workload }, index) => {
    await documents.send(new PutCommand({ TableName: DOMAIN.name, Item: orderRow(index) }));
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const [published] = await publish([storedEvent(index, workload.payloadBytes)]);
      if (published) return;
    }
    throw new Error(`Order ${index} is written, but its event is not published`);
  },
};

/** A consumer without an inbox: a duplicate message is handled twice. */
export const plainConsumer: ReceivingHalf = {
  name: 'plain',
  effects: 'may double',
  tables: [],
  consumer: (run, name) => async (event) => {
    await run.documents.send(new UpdateCommand(run.handle(name, event)));
  },
};
