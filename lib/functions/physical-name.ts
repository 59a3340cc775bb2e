import { Aws, Fn, Names, Stack } from 'aws-cdk-lib';
import { type IQueue, Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct, IConstruct } from 'constructs';

/**
 * A physical name for the few resources that cannot have a generated one. It is derived from stack and path, and ends in a part
 * of the stack's id: resources that `cdk destroy` kept do not block the next `cdk deploy`, which creates a stack with a new id.
 *
 * @param maxLength - the longest name that the service takes
 */
export function physicalName(scope: IConstruct, maxLength: number): string {
  const named = Names.uniqueResourceName(scope, {
    maxLength: maxLength - '-01234567'.length,
    separator: '-',
    allowedSpecialCharacters: '-',
  });
  // arn:aws:cloudformation:<region>:<account>:stack/<name>/<uuid> (CloudFormation user guide, "Pseudo parameters reference")
  const uuid = Fn.select(2, Fn.split('/', Aws.STACK_ID));
  return `${named}-${Fn.select(0, Fn.split('-', uuid))}`;
}

/**
 * The name of a consumer's queue. The queue and its dead-letter queue name each other (redrive and redrive-allow policy), which
 * CloudFormation cannot resolve from two references; so the name is fixed, and the dead-letter queue refers to it.
 */
export function sourceQueueName(consumer: Construct): string {
  return physicalName(consumer, 80);
}

/** A queue of the same stack by its name alone. */
export function queueByName(consumer: Construct, queueName: string): IQueue {
  const arn = Stack.of(consumer).formatArn({ service: 'sqs', resource: queueName });
  return Queue.fromQueueArn(consumer, 'Source', arn);
}
