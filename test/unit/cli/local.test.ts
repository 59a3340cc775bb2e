import { describe, expect, test } from 'vitest';
import { runMailroom } from '../../../cli/program.ts';
import { nextSteps, shellExports } from '../../../localstack/empty-engine.ts';
import { unwrapped } from '../../support/captured-io.ts';

async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const printed = { out: '', err: '' };
  const code = await runMailroom(argv, {
    env,
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    outIsTerminal: false,
    errIsTerminal: false,
    outSize: () => undefined,
    signal: new AbortController().signal,
    exitCode: 0,
  });
  return { code, out: printed.out, err: unwrapped(printed.err) };
}

describe('mailroom local', () => {
  test.each(['stage', 'stack', 'profile', 'region', 'endpoint'])(
    'refuses --%s, which selects something deployed, before it starts anything',
    async (name) => {
      for (const words of [['local'], ['local', 'stop']]) {
        const { code, out, err } = await run([...words, `--${name}`, 'elsewhere']);
        expect({ code, out }).toEqual({ code: 2, out: '' });
        expect(err).toContain(
          `--${name} is "elsewhere", but mailroom local only runs an engine on this machine.`,
        );
      }
    },
  );

  test('names the option and the variable of an invalid port', async () => {
    const sentence = 'must be a whole number from 1 to 65535. Correct --port or MAILROOM_PORT.';
    for (const { code, err } of [
      await run(['local', '--port', '70000']),
      await run(['local'], { MAILROOM_PORT: '70000' }),
    ]) {
      expect(code).toBe(2);
      expect(err).toContain(`The port is "70000", but ${sentence}`);
    }
  });

  test('stop reports that no engine is running, and succeeds', async () => {
    expect(await run(['local', 'stop', '--port', '1'])).toEqual({
      code: 0,
      out: '',
      err: expect.stringContaining('No engine that mailroom local started is running on port 1.'),
    });
    expect(await run(['local', 'stop', '--json'], { MAILROOM_PORT: '1' })).toEqual({
      code: 0,
      out: '{"port":1,"stopped":false}\n',
      err: '',
    });
  });
});

describe('the exports of a local engine', () => {
  const endpoint = 'http://127.0.0.1:4567';

  test('point a shell at it and at nothing else', () => {
    expect(shellExports(endpoint, {})).toEqual([
      `export AWS_ENDPOINT_URL=${endpoint}`,
      `export AWS_ENDPOINT_URL_S3=${endpoint}`,
      'export AWS_REGION=us-east-1',
      'export AWS_DEFAULT_REGION=us-east-1',
      'export AWS_ACCESS_KEY_ID=test',
      'export AWS_SECRET_ACCESS_KEY=test',
    ]);
  });

  test('unset what would lead back to an account', () => {
    const env = { AWS_PROFILE: 'prod', AWS_SESSION_TOKEN: 'secret', AWS_REGION: 'eu-west-1' };
    expect(shellExports(endpoint, env).at(-1)).toBe('unset AWS_PROFILE AWS_SESSION_TOKEN');
  });

  test('are set by the command that the text below them shows, with its port', async () => {
    const other = await nextSteps({ endpoint, port: 4567 }, 'command');
    expect(other).toContain('eval "$(npx cdk-mailroom local --port 4567)"');
    const script = await nextSteps({ endpoint, port: 4567 }, 'script');
    expect(script).toContain('eval "$(npm run --silent local -- --empty --port 4567)"');
    const usual = await nextSteps({ endpoint: 'http://127.0.0.1:4566', port: 4566 }, 'command');
    expect(usual).toContain('eval "$(npx cdk-mailroom local)"');
  });
});
