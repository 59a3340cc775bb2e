import { setImmediate } from 'node:timers/promises';
import { EventBridgeClient, ListRulesCommand } from '@aws-sdk/client-eventbridge';
import { expect, onTestFinished, test, vi } from 'vitest';
import { sharedRules } from '../../../cli/deployment/shared-rules.ts';

const ruleNamed = (Name: string) => ({ Name, State: 'DISABLED', EventPattern: '{}' });

/** @param listed - the rules of every bus, or the code of an error */
function reading(listed: readonly string[] | string, more: object = {}) {
  const operations: string[] = [];
  const client = new EventBridgeClient({ region: 'eu-west-1' });
  vi.spyOn(client, 'send').mockImplementation(async (command: unknown) => {
    const isList = command instanceof ListRulesCommand;
    operations.push(isList ? 'ListRules' : 'DescribeRule');
    if (!isList) return { State: 'ENABLED' };
    if (typeof listed === 'string') throw Object.assign(new Error(), { name: listed });
    return { Rules: listed.map(ruleNamed), ...more };
  });
  return { read: sharedRules(client), operations };
}

test('the rules of a bus are read with one list, and again by a later read', async () => {
  const { read, operations } = reading(['stock', 'payments']);
  const found = await Promise.all([read('bus', 'stock'), read('bus', 'payments'), read('other', 'stock')]);
  expect(found.map(({ State }) => State)).toEqual(['DISABLED', 'DISABLED', 'DISABLED']);
  expect(operations).toEqual(['ListRules', 'ListRules']);
  await read('bus', 'stock');
  expect(operations).toHaveLength(3);
});

test.each([
  ['that the list does not have', ['stock'], {}],
  ['of a bus with more than a page of rules', ['mailer'], { NextToken: 'more' }],
  ['of a bus that does not exist', 'ResourceNotFoundException', {}],
  ['that may not be listed', 'AccessDeniedException', {}],
])('a rule %s is read alone', async (_which, listed, more) => {
  const { read, operations } = reading(listed, more);
  expect(await read('bus', 'mailer')).toMatchObject({ State: 'ENABLED' });
  expect(operations).toEqual(['ListRules', 'DescribeRule']);
});

test('a rule of the default bus, which has those of other applications, is read alone', async () => {
  const { read, operations } = reading(['sweep']);
  await read('default', 'sweep');
  expect(operations).toEqual(['DescribeRule']);
});

test('a list that fails fails each read that shares it, and no other promise', async () => {
  const { read, operations } = reading('InternalException');
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  onTestFinished(() => {
    process.off('unhandledRejection', unhandled);
  });
  const reads = await Promise.allSettled([read('bus', 'stock'), read('bus', 'payments')]);
  expect(reads.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(operations).toEqual(['ListRules']);
  await setImmediate();
  expect(unhandled).not.toHaveBeenCalled();
});
