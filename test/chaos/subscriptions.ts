import {
  DisableRuleCommand,
  EnableRuleCommand,
  EventBridgeClient,
  ListRuleNamesByTargetCommand,
} from '@aws-sdk/client-eventbridge';
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { type Consumer, QUEUE_OUTPUTS, required } from '../../demo/readings.ts';
import type { OrderSystem } from './order-system.ts';

/**
 * Disables the rules that bring a consumer its events: what is published meanwhile never comes to it.
 *
 * @returns how to enable them again
 */
export async function unsubscribe(
  { endpoint, outputs, sqs }: OrderSystem,
  consumer: Consumer,
): Promise<() => Promise<void>> {
  const events = new EventBridgeClient({ endpoint });
  const EventBusName = required(outputs, 'EventBusName');
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: required(outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`),
      AttributeNames: ['QueueArn'],
    }),
  );
  const { RuleNames: names = [] } = await events.send(
    new ListRuleNamesByTargetCommand({ EventBusName, TargetArn: Attributes?.QueueArn }),
  );
  if (names.length === 0) throw new Error(`No rule brings events to ${consumer}`);
  for (const Name of names) await events.send(new DisableRuleCommand({ EventBusName, Name }));
  return async () => {
    for (const Name of names) await events.send(new EnableRuleCommand({ EventBusName, Name }));
  };
}
