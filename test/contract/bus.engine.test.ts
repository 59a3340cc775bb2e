import { randomUUID } from 'node:crypto';
import {
  CreateEventBusCommand,
  DeleteEventBusCommand,
  DeleteRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs';
import { inject } from 'vitest';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { eventBridgeClient, isMiniStack, sqsClient } from '../support/aws.ts';
import { type BusSubject, describeBus } from './bus-contract.ts';
import { type Differences, differing, type Subject } from './cases.ts';

/** Where MiniStack 1.5.33 does otherwise than EventBridge is documented to do. */
const MINISTACK: Differences = {
  ...differing('it does not look at an entry', [
    'an invalid entry fails alone',
    'an entry without a source or a detail type fails alone',
  ]),
  ...differing('it has no limits but the number of entries', [
    'a call without entries is refused',
    'a call above 1 MB is refused',
  ]),
};

const endpoint = inject('endpoint');

async function make(): Promise<Subject<BusSubject>> {
  const [events, queues] = [eventBridgeClient(endpoint), sqsClient(endpoint)];
  const name = `contract-${randomUUID()}`;
  const rule = { Name: name, EventBusName: name };

  const { QueueUrl = '' } = await queues.send(new CreateQueueCommand({ QueueName: name }));
  const { Attributes } = await queues.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
  );
  await events.send(new CreateEventBusCommand({ Name: name }));
  await events.send(
    new PutRuleCommand({ ...rule, EventPattern: JSON.stringify({ account: [{ exists: true }] }) }),
  );
  await events.send(
    new PutTargetsCommand({
      Rule: name,
      EventBusName: name,
      Targets: [{ Id: 'queue', Arn: Attributes?.QueueArn }],
    }),
  );

  const bodies: string[] = [];
  async function drain(): Promise<readonly string[]> {
    const { Messages = [] } = await queues.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
    );
    for (const { Body = '', ReceiptHandle } of Messages) {
      bodies.push(Body);
      await queues.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    }
    return bodies;
  }

  return {
    subject: { bus: eventBridgeBus({ client: events, busName: name }), bodies: drain },
    remove: async () => {
      await events.send(new RemoveTargetsCommand({ Rule: name, EventBusName: name, Ids: ['queue'] }));
      await events.send(new DeleteRuleCommand(rule));
      await events.send(new DeleteEventBusCommand({ Name: name }));
      await queues.send(new DeleteQueueCommand({ QueueUrl }));
    },
  };
}

describeBus('the bus on EventBridge', make, (await isMiniStack(endpoint)) ? MINISTACK : {});
