import { CfnOutput, type Stack } from 'aws-cdk-lib';
import type { InboxConsumer } from '../inbox-consumer.ts';

/** Outputs the URLs of a consumer's queues: `<name>QueueUrl` and `<name>DlqUrl`. */
export function consumerOutputs(stack: Stack, name: string, consumer: InboxConsumer): void {
  new CfnOutput(stack, `${name}QueueUrl`, { value: consumer.queue.queueUrl });
  new CfnOutput(stack, `${name}DlqUrl`, { value: consumer.deadLetterQueue.queueUrl });
}
