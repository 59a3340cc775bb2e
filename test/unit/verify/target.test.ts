import { describe, expect, test } from 'vitest';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { randomName, readName } from '../../../verify/system-name.ts';
import { checkTarget, localTarget, type TargetOptions } from '../../../verify/target.ts';

/** The code of the refusal; undefined if there is none. */
function refusal(options: TargetOptions, env: Record<string, string> = {}): string | undefined {
  try {
    checkTarget(options, env);
    return undefined;
  } catch (error) {
    if (error instanceof MailroomError) return error.code;
    throw error;
  }
}

describe('the target', () => {
  test('is an explicit profile or a local engine, and nothing is taken from the environment', () => {
    expect(refusal({}, { AWS_PROFILE: 'prod' })).toBe('WHICH_TARGET');
    expect(refusal({ local: false })).toBe('WHICH_TARGET');
    expect(refusal({ profile: 'sandbox', local: true })).toBe('WHICH_TARGET');
    expect(refusal({ profile: 'sandbox', region: 'eu-west-1' })).toBeUndefined();
    expect(refusal({ local: true })).toBeUndefined();
  });

  test('is not a profile while a variable redirects AWS to another endpoint', () => {
    expect(refusal({ profile: 'sandbox' }, { AWS_ENDPOINT_URL_SQS: 'http://127.0.0.1:4566' })).toBe(
      'OTHER_ENDPOINT',
    );
    expect(refusal({ local: true }, { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' })).toBeUndefined();
  });

  test('on a local engine has no region to choose', () => {
    expect(refusal({ local: true, region: 'eu-west-1' })).toBe('WHICH_TARGET');
  });

  test('on a local engine leaves no credentials of an account in the environment', () => {
    const env: Record<string, string | undefined> = {
      AWS_PROFILE: 'prod',
      AWS_ACCESS_KEY_ID: 'AKIA',
      AWS_SESSION_TOKEN: 'token',
    };
    localTarget({ endpoint: 'http://127.0.0.1:4566', startedHere: true }, env);
    expect(env).not.toHaveProperty('AWS_PROFILE');
    expect(env).not.toHaveProperty('AWS_SESSION_TOKEN');
    expect(env).toMatchObject({ AWS_ACCESS_KEY_ID: 'test', AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' });
  });
});

describe('the name of a deployment', () => {
  test('is random, and the only kind of name that is deployed or destroyed', () => {
    const names = Array.from({ length: 100 }, randomName);
    expect(new Set(names).size).toBe(100);
    for (const name of names) expect(readName(name)).toBe(name);
    for (const other of [
      'prod',
      'dev',
      'verify-',
      'verify-X7K2Q9MT',
      'verify-x7k2q9mt-orders',
      '',
      undefined,
    ])
      expect(() => readName(other)).toThrow('must be one that npm run verify has printed');
  });
});
