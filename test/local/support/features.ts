import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { expect, inject } from 'vitest';
import { required } from '../../../demo/readings.ts';
import type { Item, Key } from '../../../lambdas/runtime/index.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';

/** Clients of the system `features`. They take the engine from the environment. */
export const lambda = new LambdaClient({});
export const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));

/** An output of the system `features`. */
export const output = (name: string): string => required(inject('outputs'), name);

/** What is deployed, as the directory says. */
export const deployed = (): Promise<Directory> => readDirectory(new SSMClient({}), output('TableName'));

/** Reads a row of its table. */
export async function read(key: Key): Promise<Item | undefined> {
  const command = new GetCommand({ TableName: output('TableName'), Key: { ...key }, ConsistentRead: true });
  return (await documents.send(command)).Item;
}

/** Invokes a function. @returns what it returned */
export async function invoke(FunctionName: string, payload: unknown, Qualifier?: string): Promise<unknown> {
  const Payload = JSON.stringify(payload);
  const answer = await lambda.send(new InvokeCommand({ FunctionName, Payload, Qualifier }));
  const text = Buffer.from(answer.Payload ?? []).toString();
  expect(answer.FunctionError, text).toBeUndefined();
  return text === '' ? undefined : JSON.parse(text);
}
