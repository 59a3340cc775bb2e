import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import { isNothingHappened } from '../../../../lambdas/runtime/base/nothing-happened.ts';
import { type ProviderResponse, throwForStatus } from '../../../../lambdas/runtime/consume/http-status.ts';

const NOW = Date.parse('2026-11-21T10:00:00Z');

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The error that a response becomes. */
function errorOf(response: ProviderResponse): Error {
  try {
    throwForStatus(response, 'The bank');
  } catch (error) {
    return error as Error;
  }
  throw new Error(`${response.status} is not an error`);
}

/** The outcome of a response: the value, or the name of the error, `!` if nothing has happened. */
function outcomeOf(status: number): string {
  try {
    return throwForStatus({ status });
  } catch (error) {
    return `${(error as Error).name}${isNothingHappened(error) ? '!' : ''}`;
  }
}

describe('the status of a provider’s response', () => {
  const retried = [401, 403, 407, 408, 409, 421, 423, 424, 425, 429];
  const unacceptable = [405, 411, 413, 414, 415, 417, 431];
  const expected = (status: number) => {
    if (status >= 200 && status < 300) return 'done';
    if (unacceptable.includes(status)) return 'PoisonMessage!';
    return status >= 400 && status < 500 && !retried.includes(status) ? 'PoisonMessage' : 'Error';
  };

  test('every status has the outcome of the table', () => {
    const all = Array.from({ length: 500 }, (_, i) => i + 100);
    expect(all.map((status) => [status, outcomeOf(status)])).toEqual(
      all.map((status) => [status, expected(status)]),
    );
  });

  test.each([
    [200, 'done'],
    [204, 'done'],
    [409, 'Error'],
    [301, 'Error'],
    [400, 'PoisonMessage'],
    [401, 'Error'],
    [404, 'PoisonMessage'],
    [413, 'PoisonMessage!'],
    [422, 'PoisonMessage'],
    [429, 'Error'],
    [500, 'Error'],
    [503, 'Error'],
  ])('%i is %s', (status, outcome) => {
    expect(outcomeOf(status)).toBe(outcome);
  });

  test('is in the message of the error, after the provider', () => {
    expect(errorOf({ status: 500 }).message).toBe('The bank answered 500.');
    expect(errorOf({ status: 422 }).message).toBe('The bank answered 422.');
    expect(() => throwForStatus({ status: 500 })).toThrow('The provider answered 500.');
  });

  test.each([Number.NaN, 0, 99, 600, 200.5, '200', undefined])('%s is refused as an argument', (status) => {
    expect(errorCode(errorOf({ status: status as number }))).toBe('BAD_ARGUMENT');
  });
});

describe('Retry-After', () => {
  const withHeader = (retryAfter: string, status = 503) =>
    errorOf({ status, headers: { 'Retry-After': retryAfter } });

  test.each([
    ['seconds', '30', 30_000],
    ['less than 30 seconds: raised to them', '1', 30_000],
    ['many seconds', '3600', 3_600_000],
    ['a date', 'Sat, 21 Nov 2026 10:02:00 GMT', 120_000],
    ['more than a message can wait: cut to 11 hours', '86400', 39_600_000],
    ['a number that is too large for anything', '9'.repeat(400), 39_600_000],
  ])('of %s replaces the delay of the schedule', (_, retryAfter, afterMs) => {
    expect(withHeader(retryAfter)).toMatchObject({
      name: 'RetryLater',
      retryAfterMs: afterMs,
      message: 'The bank answered 503.',
    });
  });

  test.each([
    ['0', '0'],
    ['the past', 'Sat, 21 Nov 2026 09:00:00 GMT'],
    ['a text that is neither', 'soon'],
    ['nothing', ''],
    ['a negative number', '-60'],
  ])('of %s leaves the delay to the schedule', (_, retryAfter) => {
    expect(withHeader(retryAfter).name).toBe('Error');
  });

  test.each([429, 408, 401, 302, 500])('is honored with %i', (status) => {
    expect(withHeader('60', status).name).toBe('RetryLater');
  });

  test.each([400, 404, 413, 422])('does not help with %i: the message is rejected', (status) => {
    expect(withHeader('60', status).name).toBe('PoisonMessage');
  });

  test('with 409 says that an earlier call is in progress: the message is retried', () => {
    expect(withHeader('60', 409)).toMatchObject({ name: 'RetryLater', retryAfterMs: 60_000 });
    expect(withHeader('soon', 409).name).toBe('Error');
  });

  test('with 409 is already done only by the option conflictIsDone, and without Retry-After', () => {
    const options = { conflictIsDone: true };
    expect(throwForStatus({ status: 409 }, 'The bank', options)).toBe('already-done');
    expect(() =>
      throwForStatus({ status: 409, headers: { 'retry-after': '1' } }, 'The bank', options),
    ).toThrow('The bank answered 409.');
    expect(throwForStatus({ status: 200 }, 'The bank', options)).toBe('done');
  });

  test.each<[string, ProviderResponse]>([
    ['a Response of fetch', new Response(null, { status: 429, headers: { 'retry-after': '60' } })],
    ['lowercase names', { status: 429, headers: { 'retry-after': '60' } }],
    ['a number', { status: 429, headers: { 'Retry-After': 60 } }],
    ['a list of one', { status: 429, headers: { 'RETRY-AFTER': ['60'] } }],
  ])('is read from %s', (_, response) => {
    expect(errorOf(response)).toMatchObject({ name: 'RetryLater', retryAfterMs: 60_000 });
  });

  test.each<[string, ProviderResponse]>([
    ['a Response without it', new Response(null, { status: 429 })],
    ['no headers', { status: 429 }],
    ['headers without a value', { status: 429, headers: { 'retry-after': undefined } }],
  ])('is absent in %s', (_, response) => {
    expect(errorOf(response).name).toBe('Error');
  });
});
