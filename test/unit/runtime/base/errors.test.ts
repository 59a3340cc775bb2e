import { expect, test } from 'vitest';
import { errorHelp } from '../../../../lambdas/runtime/base/documentation.ts';
import {
  AlreadyProcessed,
  asMailroomError,
  ConditionFailed,
  errorCode,
  errorMessage,
  isMailroomError,
  MailroomError,
  PoisonMessage,
  RetryLater,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import { fingerprint } from '../../../../lambdas/runtime/base/fingerprint.ts';
import { poison } from '../../../../lambdas/runtime/base/poison.ts';

test.each([
  [new Error('order 42 not found'), 'Error: order # not found'],
  [new Error('order 43 not found'), 'Error: order # not found'],
  [
    new PoisonMessage('currency "ABC" of 01a1fba6-4458-7a41-9c37-3f5d2b8e1103'),
    'POISON_MESSAGE: currency # of #',
  ],
  [Object.assign(new Error('slow down'), { name: 'ThrottlingException' }), 'ThrottlingException: slow down'],
  [Object.assign(new Error('a\n  b'), { code: 'ECONNRESET' }), 'ECONNRESET: a b'],
  ['just a text', 'UNKNOWN: just a text'],
  [undefined, 'UNKNOWN: undefined'],
  [null, 'UNKNOWN: null'],
  [{ message: 'an object' }, 'UNKNOWN: an object'],
])('failures of one cause have one fingerprint: %j', (error, expected) => {
  expect(fingerprint(error)).toBe(expected);
});

test('what is stored of an error is bounded', () => {
  const error = new Error('x'.repeat(10_000));
  expect(errorMessage(error)).toHaveLength(1_000);
  expect(fingerprint(error).length).toBeLessThanOrEqual(240);
});

test('the code of an error is its code, else its name', () => {
  expect(errorCode(new PoisonMessage('x', { code: 'NO_STOCK' }))).toBe('NO_STOCK');
  expect(errorCode(new TypeError('x'))).toBe('TypeError');
  expect(errorCode(Object.assign(new Error('x'), { code: 7 }))).toBe('Error');
  // Data in the place of a code is not stored.
  for (const code of ['4111111111111111', 'card 4111', 'E'.repeat(101)])
    expect(errorCode(Object.assign(new Error('x'), { code }))).toBe('Error');
  expect(errorCode({ code: 'a b', name: '12' })).toBe('UNKNOWN');
});

test('an error links to the explanation of its code, unless a handler or AWS chose the code', () => {
  expect(new MailroomError('EVENT_TOO_LARGE', 'x').help).toMatch(/\/docs\/errors\.md#event_too_large$/);
  expect(new ConditionFailed(undefined).help).toBe(errorHelp('CONDITION_FAILED'));
  expect(new PoisonMessage('x').help).toBe(errorHelp('POISON_MESSAGE'));
  expect(poison('WRONG_TYPE', 'x')).toMatchObject({ name: 'PoisonMessage', help: errorHelp('WRONG_TYPE') });
  expect(new PoisonMessage('x', { code: 'NO_STOCK' }).help).toBeUndefined();
  expect(asMailroomError(new Error('slow down')).help).toBeUndefined();
});

test('a cancelled transaction names its refused actions, with the reasons', () => {
  const said = 'The conditional request failed';
  const reasons = [
    { code: 'None' },
    { code: 'ConditionalCheckFailed', message: said },
    { code: 'ValidationError', message: 'Missing the key PK in the item' },
  ];
  expect(new TransactionCancelled(reasons).message).toBe(
    'The transaction was cancelled, and nothing was written: action 2 of 3 failed with ConditionalCheckFailed, ' +
      'action 3 of 3 failed with ValidationError (Missing the key PK in the item).',
  );
  expect(new TransactionCancelled([]).message).toBe(
    'The transaction was cancelled, and nothing was written: DynamoDB gave no reason.',
  );
});

test('an error is recognized by its code, also when a table of your own throws it', () => {
  expect(isMailroomError(new ConditionFailed(undefined), 'CONDITION_FAILED')).toBe(true);
  expect(isMailroomError({ code: 'CONDITION_FAILED', item: {} }, 'CONDITION_FAILED')).toBe(true);
  expect(isMailroomError(new ConditionFailed(undefined), 'FENCE_LOST')).toBe(false);
  expect(isMailroomError(new ConditionFailed(undefined))).toBe(true);
  for (const other of [new Error('x'), { code: 'CONDITION_FAILED' }, undefined, null, 'text'])
    expect(isMailroomError(other)).toBe(false);
});

test('a message is processed or delayed only by the error that says so, whatever code another error carries', () => {
  expect(isMailroomError(new AlreadyProcessed('x'), 'ALREADY_PROCESSED')).toBe(true);
  expect(isMailroomError(new RetryLater(1_000), 'RETRY_LATER')).toBe(true);
  expect(isMailroomError(new PoisonMessage('x', { code: 'ALREADY_PROCESSED' }), 'ALREADY_PROCESSED')).toBe(
    false,
  );
  expect(isMailroomError(new MailroomError('ALREADY_PROCESSED', 'x'), 'ALREADY_PROCESSED')).toBe(false);
  expect(isMailroomError(new MailroomError('RETRY_LATER', 'x'), 'RETRY_LATER')).toBe(false);
  // Made by hand, it has no delay that was checked.
  const byHand = Object.assign(new Error('x'), { name: 'RetryLater', code: 'RETRY_LATER' });
  expect(isMailroomError(byHand, 'RETRY_LATER')).toBe(false);
});
