import { PassThrough, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { columnsOf } from '../../../cli/terminal/prose.ts';
import { estimatedUsd, planText, requireConsent } from '../../../verify/plan.ts';

const AWS = { account: '111122223333', region: 'eu-west-1', profile: 'my sandbox' };
const LOCAL = { account: '000000000000', region: 'us-east-1', endpoint: 'http://127.0.0.1:4566' };
const name = 'verify-x7k2q9mt';
const plan = { name, orders: 20, rate: 5, destroyOnly: false };

describe('the plan', () => {
  test('names the account, region, stacks and price, and how to destroy what a killed run left', () => {
    expect(planText({ ...plan, target: AWS })).toMatchInlineSnapshot(`
      "Deploys 8 stacks, mailroom-verify-x7k2q9mt*: account 111122223333, region
        eu-west-1, profile my sandbox.
      Takes about 45 minutes, and costs about 0.15 USD an hour (list prices of
        us-east-1, without free tiers).
      Places 20 orders, 5 a second, and runs the tests. Then it destroys the stacks,
        also if a test fails or you press Ctrl-C.
      If this process is killed, destroy them with:
        npm run verify -- --profile 'my sandbox' --region eu-west-1 --destroy verify-x7k2q9mt --yes"
    `);
  });

  test('of a local engine has no price', () => {
    expect(planText({ ...plan, target: LOCAL })).toMatchInlineSnapshot(`
      "Deploys 8 stacks, mailroom-verify-x7k2q9mt*: local engine at
        http://127.0.0.1:4566.
      Places 20 orders, 5 a second, and runs the tests. Then it destroys the stacks,
        also if a test fails or you press Ctrl-C.
      If this process is killed, destroy them with:
        AWS_ENDPOINT_URL=http://127.0.0.1:4566 npm run verify -- --local --destroy verify-x7k2q9mt"
    `);
    expect(planText({ ...plan, target: { ...LOCAL, ends: true } })).not.toContain('--destroy');
  });

  test('of destroying an earlier run deploys nothing', () => {
    expect(planText({ ...plan, target: AWS, destroyOnly: true })).toMatch(/^Destroys 8 stacks/);
  });

  test('has no line of prose beyond 80 columns', () => {
    const lines = planText({ ...plan, target: AWS }).split('\n');
    for (const line of lines.filter((line) => !line.includes('npm run'))) {
      expect(columnsOf(line)).toBeLessThanOrEqual(80);
    }
  });
});

describe('the price', () => {
  test('is for each hour or part of one, and stays below 50 cents for an ordinary run', () => {
    expect(estimatedUsd(20, 60)).toBe(estimatedUsd(20, 3_600));
    expect(estimatedUsd(20, 3_601)).toBeGreaterThan(1.9 * estimatedUsd(20, 3_600));
    expect(estimatedUsd(20, 1_800)).toBeLessThan(0.5);
    expect(estimatedUsd(1_000, 1_800)).toBeGreaterThan(estimatedUsd(20, 1_800));
  });
});

describe('consent', () => {
  const nowhere = () => new Writable({ write: (_chunk, _encoding, done) => done() });
  const typing = (text: string, isTTY = true) =>
    Object.assign(new PassThrough(), { isTTY }).end(`${text}\n`) as PassThrough & { isTTY: boolean };
  const ask = (target: typeof AWS | typeof LOCAL, yes: boolean, input: ReturnType<typeof typing>) =>
    requireConsent({ target, name }, yes, { input, output: nowhere() });

  test('is --yes, or the name typed at a terminal', async () => {
    await ask(AWS, true, typing('', false));
    await ask(AWS, false, typing(name));
  });

  test('is not any other answer', async () => {
    for (const answer of ['y', 'yes', '', 'verify-', `${name}2`])
      await expect(ask(AWS, false, typing(answer))).rejects.toThrow('Nothing was changed');
  });

  test('is not the end of the input, nor Ctrl-C, which closes it', async () => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    input.end();
    await expect(ask(AWS, false, input as ReturnType<typeof typing>)).rejects.toThrow('Nothing was changed');
  });

  test('cannot be typed without a terminal, so that needs --yes', async () => {
    await expect(ask(AWS, false, typing(name, false))).rejects.toThrow(
      'To deploy to account 111122223333, repeat the command with --yes',
    );
  });

  test('is not needed for a local engine', async () => {
    await ask(LOCAL, false, typing('', false));
  });
});
