import '../../localstack/quiet-sdk.ts';
import { ListTablesCommand } from '@aws-sdk/client-dynamodb';
import type { TestProject } from 'vitest/node';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { dynamoClient } from './aws.ts';

let started: Engine | undefined;

/**
 * Before the tests: takes the DynamoDB that the variables of the SDK name, or starts MiniStack.
 *
 * @throws Error if it does not answer
 */
export async function setup({ provide }: TestProject): Promise<void> {
  const { AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB = AWS_ENDPOINT_URL } = process.env;
  if (!AWS_ENDPOINT_URL_DYNAMODB) started = await startEngine({ env: {}, port: await freePort() });
  const endpoint = started?.endpoint ?? AWS_ENDPOINT_URL_DYNAMODB ?? '';
  const client = dynamoClient(endpoint);
  await client.send(new ListTablesCommand({ Limit: 1 })).catch((cause) => {
    throw new Error(`No DynamoDB answers at ${endpoint}: start it, or unset AWS_ENDPOINT_URL_DYNAMODB.`, {
      cause,
    });
  });
  client.destroy();
  provide('endpoint', endpoint);
}

/** After the tests: stops the engine if it was started for them. */
export async function teardown(): Promise<void> {
  await started?.stop();
}
