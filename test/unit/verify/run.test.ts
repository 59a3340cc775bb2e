import { describe, expect, test } from 'vitest';
import { columnsOf } from '../../../cli/terminal/prose.ts';
import { printVerifyReceipt, type VerifyResult } from '../../../verify/receipt.ts';
import { verify } from '../../../verify/run.ts';

const AWS = { account: '111122223333', region: 'eu-west-1', profile: 'sandbox' };
const plan = { target: AWS, name: 'verify-x7k2q9mt', orders: 20, rate: 5, destroyOnly: false };
const COMMAND = 'npm run verify -- --profile sandbox --region eu-west-1 --destroy verify-x7k2q9mt --yes';

const result = (check: string, outcome: VerifyResult['outcome'], detail = ''): VerifyResult => ({
  check,
  outcome,
  detail,
  seconds: 1,
});
const good = result('orders are charged once', 'passed', '20 orders');
const hidden = result('IAM denies', 'not-shown', 'the engine enforces no IAM');
const bad = result('a redrive works', 'failed', 'The message did not return');

/** A run whose stacks only record what is asked of them, and whose tests have these results. */
function rig({
  results = [good],
  testsFail = false,
  deployFails = false,
  destroyFails = false,
  left = [] as string[],
} = {}) {
  const stop = new AbortController();
  const calls: string[] = [];
  const deps = {
    signal: stop.signal,
    steps: { step: () => {} },
    stacks: {
      deploy: async () => {
        calls.push('deploy');
        if (deployFails) throw new Error('CREATE_FAILED');
        return { TableName: 'table' };
      },
      destroy: async () => {
        calls.push('destroy');
        if (destroyFails) throw new Error('DELETE_FAILED');
      },
    },
    test: async (_outputs: object, onResult: (found: VerifyResult) => void) => {
      calls.push('test');
      for (const found of results) onResult(found);
      if (testsFail) throw new Error('vitest ended with 1');
    },
    leftBehind: async () => left,
  };
  return { deps, calls, stop };
}

const outcomes = (checks: readonly { readonly outcome: string }[]) => checks.map(({ outcome }) => outcome);

describe('a run', () => {
  test('deploys, tests and destroys; what cannot be shown here is not a failure', async () => {
    const { deps, calls } = rig({ results: [good, hidden] });
    const receipt = await verify(plan, deps);
    expect(calls).toEqual(['deploy', 'test', 'destroy']);
    expect(receipt).toMatchObject({
      verdict: 'passed',
      destroyed: true,
      target: 'aws',
      ...{ region: 'eu-west-1' },
    });
    expect(outcomes(receipt.checks)).toEqual(['passed', 'passed', 'not-shown', 'passed', 'passed']);
    expect(receipt.destroyCommand).toBeUndefined();
  });

  test('destroys after a failed test, and names it', async () => {
    const { deps, calls } = rig({ results: [bad, good] });
    const receipt = await verify(plan, deps);
    expect(calls).toEqual(['deploy', 'test', 'destroy']);
    expect(receipt).toMatchObject({ verdict: 'failed', destroyed: true });
    expect(receipt.checks).toContainEqual(bad);
  });

  test('has failed if its tests do not run to their end', async () => {
    const { deps } = rig({ testsFail: true });
    const receipt = await verify(plan, deps);
    expect(receipt).toMatchObject({ verdict: 'failed', destroyed: true });
    expect(receipt.checks).toContainEqual(
      expect.objectContaining({ outcome: 'failed', detail: 'vitest ended with 1' }),
    );
  });

  test('destroys after a failed deployment, and tests nothing', async () => {
    const { deps, calls } = rig({ deployFails: true });
    const receipt = await verify(plan, deps);
    expect(calls).toEqual(['deploy', 'destroy']);
    expect(receipt.verdict).toBe('failed');
    expect(receipt.checks.map(({ detail }) => detail)).toEqual(['CREATE_FAILED', 'its stacks are gone']);
  });

  test.each([
    ['not what the stop caused', [], 'stopped'],
    ['what failed before', [bad], 'failed'],
  ] as const)('destroys when it is stopped; of failures, the receipt has %s', async (_, before, verdict) => {
    const { deps, calls, stop } = rig();
    const run = async (_outputs: object, onResult: (found: VerifyResult) => void) => {
      for (const found of [good, ...before]) onResult(found);
      stop.abort();
      onResult(result('is stopped', 'failed', 'The wait was aborted'));
      throw new Error('killed');
    };
    const receipt = await verify(plan, { ...deps, test: run });
    expect(calls).toEqual(['deploy', 'destroy']);
    expect(receipt).toMatchObject({ verdict, destroyed: true });
    expect(receipt.checks.slice(1, -1)).toEqual([good, ...before]);
  });

  test.each([
    ['fails', { destroyFails: true }, 'DELETE_FAILED'],
    ['leaves something', { left: ['table'] }, 'These still exist: table'],
  ])(
    'has failed if destroying %s, and prints the command that destroys the rest',
    async (_, faults, detail) => {
      const { deps } = rig(faults);
      const receipt = await verify(plan, deps);
      expect(receipt).toMatchObject({ verdict: 'failed', destroyed: false, destroyCommand: COMMAND });
      expect(receipt.checks.at(-1)).toMatchObject({ outcome: 'failed', detail });
      expect(printVerifyReceipt(receipt, AWS)).toContain(`\n  ${COMMAND}`);
    },
  );

  test('of --destroy deploys and tests nothing', async () => {
    const { deps, calls } = rig();
    const receipt = await verify({ ...plan, destroyOnly: true }, deps);
    expect(calls).toEqual(['destroy']);
    expect(receipt).toMatchObject({ verdict: 'passed', destroyed: true });
  });
});

describe('the receipt', () => {
  const receipt = {
    name: plan.name,
    account: AWS.account,
    region: AWS.region,
    target: 'aws',
    verdict: 'failed',
    seconds: 1_312,
    estimatedUsd: 0.12,
    destroyed: true,
    checks: [
      {
        check: 'orders, repeats and duplicates: nothing lost, nothing duplicated',
        outcome: 'passed',
        seconds: 41,
        detail: '20 orders',
      },
      {
        check: "SQS's own move task: a dead letter is processed once its cause is gone",
        outcome: 'failed',
        seconds: 600,
        detail: 'Not seen within 10 minutes: the move task is completed.',
      },
      { check: 'IAM denies', outcome: 'not-shown', seconds: 1, detail: 'the engine enforces no IAM' },
      { check: 'a slow bank charges an order once', outcome: 'passed', seconds: 9, detail: '' },
    ],
  } as const;

  test('says the verdict first, then each check, then what is left', () => {
    const text = printVerifyReceipt(receipt, AWS);
    expect(text).toMatchInlineSnapshot(`
      "FAILED: verify-x7k2q9mt, account 111122223333, region eu-west-1: 2 passed, 1
        failed, 1 cannot be shown here. 22 min, about 0.12 USD (list prices of
        us-east-1).

        passed    orders, repeats and duplicates: nothing lost, nothing duplicated  41
                  s
                  20 orders
        FAILED    SQS's own move task: a dead letter is processed once its cause is
                  gone  600 s
                  Not seen within 10 minutes: the move task is completed.
        not shown IAM denies  1 s
                  the engine enforces no IAM
        passed    a slow bank charges an order once  9 s

      Everything was destroyed. What CloudFormation cannot remove: the alarms' KMS key
      is deleted after 30 days, free of charge, and the functions' code stays in the
      CDK's bucket until \`npx cdk gc\`."
    `);
    for (const line of text.split('\n')) expect(columnsOf(line)).toBeLessThanOrEqual(80);
  });

  test('of an engine that ends with the run names no command', () => {
    const local = { ...AWS, endpoint: 'http://127.0.0.1:1', ends: true };
    const text = printVerifyReceipt({ ...receipt, target: 'local', destroyed: false }, local);
    expect(text).toContain('The rest ends with the local engine.');
    expect(text).not.toContain('npm run verify');
  });
});
