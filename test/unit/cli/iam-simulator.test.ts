import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { iamSimulator } from '../../../cli/reports/checks/iam-simulator.ts';
import { STUB_CONFIGURATION } from '../../support/stub-client.ts';

const ROLE = 'arn:aws:iam::111122223333:role/payments';
const TABLE = 'arn:aws:dynamodb:eu-west-1:111122223333:table/Mailroom';

/** Answers as IAM does, written by hand after the API reference of SimulatePrincipalPolicy, and keeps the requests. */
function answering(status: number, body: string) {
  const requests: URLSearchParams[] = [];
  return {
    requests,
    handle: async ({ body: sent }: { readonly body?: string }) => {
      requests.push(new URLSearchParams(sent));
      const headers = { 'content-type': 'text/xml' };
      return { response: { statusCode: status, headers, body: Readable.from([body]) } };
    },
  };
}

const result = (action: string, decision: string) =>
  `<member><EvalActionName>${action}</EvalActionName><EvalResourceName>${TABLE}</EvalResourceName><EvalDecision>${decision}</EvalDecision></member>`;

const answerOf = (...results: readonly string[]) =>
  '<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult>' +
  `<IsTruncated>false</IsTruncated><EvaluationResults>${results.join('')}</EvaluationResults>` +
  '</SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>';

async function simulatorOf(requestHandler: ReturnType<typeof answering>) {
  return await iamSimulator({ ...STUB_CONFIGURATION, requestHandler, maxAttempts: 1 });
}

test('an action is denied unless IAM allows it, explicitly or not, or says nothing about it', async () => {
  const { requests, ...handler } = answering(
    200,
    answerOf(
      result('dynamodb:GetItem', 'allowed'),
      result('dynamodb:PutItem', 'implicitDeny'),
      result('dynamodb:DeleteItem', 'explicitDeny'),
    ),
  );
  const simulator = await simulatorOf({ requests, ...handler });
  const actions = ['GetItem', 'PutItem', 'DeleteItem', 'UpdateItem'].map((action) => `dynamodb:${action}`);
  const context = { key: 'dynamodb:LeadingKeys', values: ['INBOX#payments#any'] };
  expect(await simulator.denied(ROLE, { actions, resource: TABLE, context })).toEqual([
    'dynamodb:PutItem',
    'dynamodb:DeleteItem',
    'dynamodb:UpdateItem',
  ]);
  expect(Object.fromEntries(requests[0] ?? [])).toMatchObject({
    Action: 'SimulatePrincipalPolicy',
    PolicySourceArn: ROLE,
    'ActionNames.member.1': 'dynamodb:GetItem',
    'ResourceArns.member.1': TABLE,
    'ContextEntries.member.1.ContextKeyName': 'dynamodb:LeadingKeys',
    'ContextEntries.member.1.ContextKeyType': 'stringList',
    'ContextEntries.member.1.ContextKeyValues.member.1': 'INBOX#payments#any',
  });
});

test('a caller who may not simulate gets the error of IAM, which the doctor reports as not checked', async () => {
  const denied =
    '<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>' +
    '<Message>User: me is not authorized to perform: iam:SimulatePrincipalPolicy</Message></Error></ErrorResponse>';
  const simulator = await simulatorOf(answering(403, denied));
  const need = { actions: ['dynamodb:GetItem'], resource: TABLE };
  await expect(simulator.denied(ROLE, need)).rejects.toMatchObject({ name: 'AccessDenied' });
});
