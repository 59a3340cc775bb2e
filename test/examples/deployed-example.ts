import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { expect } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { LOCAL_REGION } from '../../localstack/workspace.ts';
import { eventually } from '../local/support/eventually.ts';

/** The parts of a deployed example that a caller needs. */
export interface DeployedExample {
  readonly table: string;
  readonly placeOrder: string;
}

/** Places an order, waits for its receipt, and looks at the deployment with the command. */
export async function placedOrderIsReceipted(endpoint: string, example: DeployedExample): Promise<void> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const settings = { endpoint, region: LOCAL_REGION, credentials };
  const orderId = randomUUID();
  const { Payload, FunctionError } = await new LambdaClient(settings).send(
    new InvokeCommand({
      FunctionName: example.placeOrder,
      Payload: JSON.stringify({ orderId, totalCents: 1_200 }),
    }),
  );
  expect(FunctionError, Buffer.from(Payload ?? []).toString()).toBeUndefined();
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient(settings));
  await eventually(async () => {
    const Key = { PK: `RECEIPT#${orderId}`, SK: 'RECEIPT' };
    const { Item } = await documents.send(new GetCommand({ TableName: example.table, Key }));
    expect(Item).toMatchObject({ totalCents: 1_200 });
  });
  const why = await eventually(async () => {
    const printed = await mailroom(endpoint, 'why', orderId, '--json');
    expect(printed).toContain('"PROCESSED"');
    return printed;
  });
  expect(why).toContain('"receipts"');
  const status = JSON.parse(await mailroom(endpoint, 'status', '--json'));
  expect(status).toMatchObject({
    ok: true,
    consumers: expect.anything(),
    wiring: { notChecked: [], problems: [] },
  });
}

async function mailroom(endpoint: string, ...argv: readonly string[]): Promise<string> {
  let printed = '';
  await runMailroom([...argv, '--endpoint', endpoint], {
    env: { AWS_REGION: LOCAL_REGION, AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' },
    out: (text) => {
      printed += text;
    },
    err: (text) => {
      printed += text;
    },
    outIsTerminal: false,
    outSize: () => undefined,
    errIsTerminal: false,
    signal: new AbortController().signal,
    exitCode: 0,
  });
  return printed;
}
