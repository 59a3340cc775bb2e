import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { afterAll, expect, inject, test } from 'vitest';
import { OrderCancelled, PaymentCaptured } from '../../../lambdas/example/events.ts';
import { InboxConsumer } from '../../../lib/inbox-consumer.ts';
import { Mailroom } from '../../../lib/mailroom.ts';
import { LOCAL_ACCOUNT, localEnvironment } from '../../../localstack/workspace.ts';
import { runCdk } from '../support/cdk-command.ts';
import { mailroomAt } from '../support/mailroom.ts';

/** No other test uses it: in the region of the other tests, their commands would find two Mailrooms and ask which one is meant. */
const REGION = 'eu-west-2';

const folders: string[] = [];

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

test('an app that was destroyed can be deployed again, although its table, queues and bus were kept', async () => {
  const assembly = await mkdtemp(join(tmpdir(), 'mailroom-destroy-'));
  folders.push(assembly);
  const app = new App({ outdir: assembly, analyticsReporting: false });
  const stack = new Stack(app, 'destroyed-and-deployed-again', {
    env: { account: LOCAL_ACCOUNT, region: REGION },
  });
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['orders', 'payments'] });
  new InboxConsumer(stack, 'Notifications', {
    mailroom,
    name: 'notifications',
    service: 'notifications',
    events: [PaymentCaptured, OrderCancelled],
    entry: 'lambdas/example/notifications/handler.ts',
  });
  app.synth();

  const environment = {
    ...localEnvironment(inject('endpoint')),
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
  };
  const cdklocal = async (...args: string[]) => {
    const { code, output } = await runCdk(
      'aws-cdk-local/bin/cdklocal',
      [...args, '--app', assembly],
      environment,
    );
    expect(code, output).toBe(0);
  };
  await cdklocal('bootstrap', `aws://${LOCAL_ACCOUNT}/${REGION}`);
  await cdklocal('deploy', '--require-approval', 'never');
  await cdklocal('destroy', '--force');
  await cdklocal('deploy', '--require-approval', 'never');
  const status = await mailroomAt(inject('endpoint'), 'status', '--region', REGION, '--json');
  expect(status.code, status.err).toBe(0);
  expect(status.json().stack).toBe('destroyed-and-deployed-again');
  await cdklocal('destroy', '--force');
});
