import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { afterAll, expect, inject, test } from 'vitest';
import { OrderCancelled, PaymentCaptured } from '../../lambdas/example/events.ts';
import { InboxConsumer } from '../../lib/inbox-consumer.ts';
import { Mailroom } from '../../lib/mailroom.ts';
import { localEnvironment } from '../../localstack/workspace.ts';
import { runCdk } from './support/cdk-command.ts';

const folders: string[] = [];

afterAll(async () => {
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

test('an app that was destroyed can be deployed again, although its table, queues and bus were kept', async () => {
  const assembly = await mkdtemp(join(tmpdir(), 'mailroom-destroy-'));
  folders.push(assembly);
  const app = new App({ outdir: assembly, analyticsReporting: false });
  const stack = new Stack(app, 'destroyed-and-deployed-again');
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['orders', 'payments'] });
  new InboxConsumer(stack, 'Notifications', {
    mailroom,
    name: 'notifications',
    service: 'notifications',
    events: [PaymentCaptured, OrderCancelled],
    entry: 'lambdas/example/notifications/handler.ts',
  });
  app.synth();

  const environment = localEnvironment(inject('endpoint'));
  const cdklocal = async (...args: string[]) => {
    const { code, output } = await runCdk(
      'aws-cdk-local/bin/cdklocal',
      [...args, '--app', assembly],
      environment,
    );
    expect(code, output).toBe(0);
  };
  await cdklocal('deploy', '--require-approval', 'never');
  await cdklocal('destroy', '--force');
  await cdklocal('deploy', '--require-approval', 'never');
  await cdklocal('destroy', '--force');
});
