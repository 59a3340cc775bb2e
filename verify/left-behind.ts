import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeEventBusCommand, EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { GetFunctionCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { pause } from '../demo/shop.ts';
import type { Outputs } from '../localstack/cdk-process.ts';

/** SQS shows a deleted queue for up to a minute (SQS API reference, DeleteQueue). */
const SHOWN_AT_MOST_MS = 120_000;

/** Errors by which the services say that a thing does not exist. */
const GONE = ['ResourceNotFoundException', 'QueueDoesNotExist', 'NotFoundException'];

/**
 * Looks for the tables, buses, queues and functions that the outputs of a destroyed deployment name.
 *
 * @returns those that still exist
 * @throws the error of a service that cannot say
 */
export async function leftBehind(outputs: Outputs): Promise<string[]> {
  const dynamo = new DynamoDBClient({});
  const events = new EventBridgeClient({});
  const lambda = new LambdaClient({});
  const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });
  const look = (output: string, value: string): Promise<unknown> | undefined => {
    if (output.endsWith('TableName')) return dynamo.send(new DescribeTableCommand({ TableName: value }));
    if (output.endsWith('BusName')) return events.send(new DescribeEventBusCommand({ Name: value }));
    if (output.endsWith('Url') && output !== 'OrdersUrl')
      return sqs.send(new GetQueueAttributesCommand({ QueueUrl: value }));
    if (output.startsWith('Probe')) return lambda.send(new GetFunctionCommand({ FunctionName: value }));
    return undefined;
  };
  const found = await Promise.all(
    Object.entries(outputs).map(async ([output, value]) => {
      const looked = look(output, value);
      return looked === undefined || (await isGone(looked)) ? [] : [value];
    }),
  );
  return found.flat();
}

/** Waits until {@link leftBehind} finds nothing. @returns what still exists after two minutes */
export async function leftForGood(outputs: Outputs): Promise<string[]> {
  for (const end = Date.now() + SHOWN_AT_MOST_MS; ; await pause(1_000)) {
    const left = await leftBehind(outputs);
    if (left.length === 0 || Date.now() >= end) return left;
  }
}

async function isGone(looked: Promise<unknown>): Promise<boolean> {
  try {
    await looked;
    return false;
  } catch (error) {
    if (GONE.includes((error as Error).name)) return true;
    throw error;
  }
}
