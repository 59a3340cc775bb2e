import { randomUUID } from 'node:crypto';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { App, LegacyStackSynthesizer, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { expect, inject, test } from 'vitest';
import { inboxNamePath } from '../../../lambdas/runtime/operations/directory.ts';
import { pinName } from '../../../lib/consumer/fixed-name.ts';
import { eventually } from '../support/eventually.ts';

const endpoint = inject('endpoint');
const table = `names-${randomUUID()}`;
const stackName = table;

test('CloudFormation refuses to rename a consumer, rolls back, and takes a move that is stated', async () => {
  expect(await deploy('CreateStack', ['payments'])).toBe('CREATE_COMPLETE');
  expect(await nameOf(0)).toBe('payments');

  expect(await deploy('UpdateStack', ['billing'])).toBe('UPDATE_ROLLBACK_COMPLETE');
  expect(await nameOf(0)).toBe('payments');

  expect(await deploy('UpdateStack', ['payments', 'billing'])).toBe('UPDATE_COMPLETE');
  expect([await nameOf(0), await nameOf(1)]).toEqual(['payments', 'billing']);

  expect(await deploy('UpdateStack', ['payments', 'charging'])).toBe('UPDATE_ROLLBACK_COMPLETE');
  expect(await nameOf(1)).toBe('billing');
  await cloudFormation({ Action: 'DeleteStack', StackName: stackName });
});

/** Deploys the parameters of a consumer's names alone. @returns the status in which that ends */
async function deploy(Action: 'CreateStack' | 'UpdateStack', names: readonly string[]): Promise<string> {
  const stack = new Stack(new App(), 'Names', { synthesizer: new LegacyStackSynthesizer() });
  pinName(stack, table, 'queue', names);
  const TemplateBody = JSON.stringify(Template.fromStack(stack).toJSON());
  await cloudFormation({ Action, StackName: stackName, TemplateBody });
  return eventually(async () => {
    const described = await cloudFormation({ Action: 'DescribeStacks', StackName: stackName });
    const status = /<StackStatus>(\w+)<\/StackStatus>/.exec(described)?.[1] ?? '';
    expect(status).toMatch(/_(COMPLETE|FAILED)$/);
    expect(status).not.toMatch(/CLEANUP/);
    return status;
  });
}

async function nameOf(index: number): Promise<string | undefined> {
  const Name = inboxNamePath(table, 'queue', index);
  return (await new SSMClient({}).send(new GetParameterCommand({ Name }))).Parameter?.Value;
}

/** One call of CloudFormation, which the project has no client of. A local engine checks no signature. */
async function cloudFormation(parameters: Record<string, string>): Promise<string> {
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: {
      authorization:
        'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/cloudformation/aws4_request, SignedHeaders=host, Signature=0',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ ...parameters, Version: '2010-05-15' }),
  });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return text;
}
