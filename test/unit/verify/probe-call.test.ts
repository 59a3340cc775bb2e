import { expect, test } from 'vitest';
import { acceptedEntries, outcomeOf } from '../../account/probe.handler.ts';

const failing = (name: string) => async () => {
  throw Object.assign(new Error('no'), { name });
};

test('a call is denied only by an error of IAM, and allowed only if the service admitted the caller', async () => {
  expect(await outcomeOf(async () => ({}))).toEqual({ kind: 'allowed' });
  expect(await outcomeOf(failing('ConditionalCheckFailedException'))).toMatchObject({ kind: 'allowed' });
  expect(await outcomeOf(failing('AccessDeniedException'))).toEqual({
    kind: 'denied',
    error: 'AccessDeniedException: no',
  });
  expect(await outcomeOf(failing('AccessDenied'))).toMatchObject({ kind: 'denied' });
  for (const other of [
    'ThrottlingException',
    'ResourceNotFoundException',
    'TimeoutError',
    'ValidationException',
  ])
    expect(await outcomeOf(failing(other))).toMatchObject({ kind: 'unknown' });
});

test('an entry that the bus refuses counts as refused, although the call succeeded', async () => {
  const answer = (ErrorCode?: string) => async () =>
    acceptedEntries({ Entries: [{ EventId: '1' }, ErrorCode === undefined ? {} : { ErrorCode }] });
  expect(await outcomeOf(answer())).toEqual({ kind: 'allowed' });
  expect(await outcomeOf(answer('NotAuthorizedForSourceException'))).toMatchObject({ kind: 'denied' });
  expect(await outcomeOf(answer('InternalFailure'))).toMatchObject({ kind: 'unknown' });
});
