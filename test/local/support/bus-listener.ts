import { randomUUID } from 'node:crypto';
import {
  DeleteRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs';
import { inject } from 'vitest';
import { required } from '../../../demo/readings.ts';
import { encodeRulePattern } from '../../../lambdas/runtime/bus/rule-pattern.ts';
import type { Envelope, EventRef } from '../../../lambdas/runtime/events/event.ts';
import { eventBridgeClient, sqsClient } from '../../support/aws.ts';

/** Receives every event of one type that the deployed bus carries, through its own rule and queue. */
export interface BusListener {
  /** The envelopes of all deliveries so far, a repeated one as often as it came. */
  heard(): Promise<readonly Envelope[]>;
  /** Removes the rule and the queue. */
  remove(): Promise<void>;
}

/** Begins to listen to an event: by the rule that is deployed for it with the probes of `npm run verify`, or by its own. */
export async function listenTo(event: EventRef): Promise<BusListener> {
  const deployed = inject('outputs')[`Listener${event.source}${event.type}Url`];
  if (deployed !== undefined) return { heard: heardBy(deployed), remove: async () => {} };
  const [events, sqs] = [eventBridgeClient(inject('endpoint')), sqsClient(inject('endpoint'))];
  const name = `listener-${randomUUID()}`;
  const rule = { Name: name, EventBusName: required(inject('outputs'), 'EventBusName') };
  const target = { Rule: name, EventBusName: rule.EventBusName };
  const { QueueUrl = '' } = await sqs.send(new CreateQueueCommand({ QueueName: name }));
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
  );
  await events.send(
    new PutRuleCommand({ ...rule, EventPattern: JSON.stringify(encodeRulePattern([event])) }),
  );
  await events.send(
    new PutTargetsCommand({ ...target, Targets: [{ Id: 'queue', Arn: Attributes?.QueueArn }] }),
  );

  return {
    heard: heardBy(QueueUrl),
    remove: async () => {
      await events.send(new RemoveTargetsCommand({ ...target, Ids: ['queue'] }));
      await events.send(new DeleteRuleCommand(rule));
      await sqs.send(new DeleteQueueCommand({ QueueUrl }));
    },
  };
}

function heardBy(QueueUrl: string): BusListener['heard'] {
  const sqs = sqsClient(inject('endpoint'));
  const heard: Envelope[] = [];
  return async () => {
    for (;;) {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
      );
      if (Messages.length === 0) return heard;
      heard.push(...Messages.map(({ Body = '' }) => JSON.parse(Body).detail as Envelope));
      const Entries = Messages.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle }));
      await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
    }
  };
}
