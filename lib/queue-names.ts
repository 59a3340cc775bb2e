import { Names, Stack } from 'aws-cdk-lib';
import { type IQueue, Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

/**
 * The queue and its dead-letter queue reference each other (redrive and redrive-allow policy), which CloudFormation cannot
 * resolve. So the queue's name is derived from stack and path, and the dead-letter queue refers to that name.
 */
export function sourceQueueName(consumer: Construct): string {
  return Names.uniqueResourceName(consumer, { maxLength: 80, separator: '-', allowedSpecialCharacters: '-' });
}

/** A queue of the same stack, referenced by name only. */
export function queueByName(consumer: Construct, queueName: string): IQueue {
  const arn = Stack.of(consumer).formatArn({ service: 'sqs', resource: queueName });
  return Queue.fromQueueArn(consumer, 'Source', arn);
}
