import { randomUUID } from 'node:crypto';
import {
  DeleteParameterCommand,
  GetParameterCommand,
  PutParameterCommand,
  SSMClient,
} from '@aws-sdk/client-ssm';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod/mini';
import { asDelivered } from '../../../demo/shop.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { defineEvent } from '../../../lambdas/runtime/index.ts';
import { consumerEntryName } from '../../../lambdas/runtime/operations/directory.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { awsLines, runAwsLine } from '../support/aws-line.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { documents, message, put, tableName } from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { send } from '../support/queues.ts';
import { outboxOf, unpublishedOrder } from '../support/unpublished-order.ts';

const ssm = new SSMClient({
  endpoint: inject('endpoint'),
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

test('a deleted directory entry is found by status, doctor, why and the audit, with the command that names its stack', async () => {
  const Name = consumerEntryName(tableName, 'notifications');
  const { Parameter } = await ssm.send(new GetParameterCommand({ Name }));
  const Value = Parameter?.Value ?? '';
  const { stack } = JSON.parse(Value) as { readonly stack: string };
  const restore = () => ssm.send(new PutParameterCommand({ Name, Type: 'String', Value, Overwrite: true }));
  onTestFinished(async () => {
    await restore();
  });
  const { envelope, row } = await unpublishedOrder();
  await put({ ...row, status: 'PUBLISHED', publishedAt: Date.now() });
  const consumers = ['inventory', 'notifications', 'order-status', 'payments'] as const;
  for (const consumer of consumers) await send(consumer, [asDelivered('orders', envelope)]);
  await eventually(async () => {
    for (const consumer of consumers)
      expect(await message(consumer, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
  });
  const before = (await mailroom('doctor', '--json')).json();
  await ssm.send(new DeleteParameterCommand({ Name }));

  const after = (await mailroom('doctor', '--json')).json();
  expect(after.problems).toMatchObject([...before.problems, { part: 'notifications', problem: 'no-entry' }]);
  const { out, code } = await mailroom('status');
  expect(code).toBe(1);
  const [line = ''] = awsLines(out).filter((one) => one.includes('describe-stack-resources'));
  expect(await runAwsLine(line)).toBe(stack);
  const { verdict } = (await mailroom('why', envelope.eventId, '--json')).json();
  expect(verdict).toMatchObject({ state: 'unproven', next: line.trim() });
  const { incomplete } = (await mailroom('audit', '--json')).json();
  expect(incomplete).toContainEqual(expect.stringContaining('no entry of notifications'));

  // As the deployment of its stack does.
  await restore();
  expect((await mailroom('doctor', '--json')).json().problems).toEqual(before.problems);
  const { verdict: again } = (await mailroom('why', envelope.eventId, '--json')).json();
  expect(again).toMatchObject({ state: 'processed' });
});

test('an event of an undeclared source has its own finding, whose command shows it and what to do', async () => {
  const Forged = defineEvent({
    source: 'bank',
    type: `Forged-${randomUUID()}`,
    version: 1,
    aggregateType: 'Parcel',
    schema: z.object({}),
  });
  const [envelope] = await outboxOf('bank').commit({
    events: [Forged.create({ aggregateId: 'a', data: {} })],
  });
  const eventId = envelope?.eventId ?? '';
  const remove = () => documents.send(new DeleteCommand({ TableName: tableName, Key: outboxKeyOf(eventId) }));
  onTestFinished(async () => {
    await remove();
  });
  const run = await mailroom('status');
  expect(run.code).toBe(1);
  expect(unwrapped(run.out)).toContain(
    '1 event pending with a source that no producer of this Mailroom declares',
  );
  const why = await runPrinted(printedCommand(run, 'why', eventId, '--payload'));
  expect(unwrapped(why.out)).toMatch(
    /no producer of this Mailroom declares its source "bank".*declare the source and deploy/,
  );
  // Neither sends the operator back to the other.
  expect(why.out).not.toContain('cdk-mailroom status');
  await remove();
  expect((await mailroom('status', '--json')).json().outbox).toMatchObject({ undeclared: 0 });
});

test('an outbox row of an unknown status is found, and the printed audit names it', async () => {
  const eventId = mintEventId(Date.now() - 5 * MINUTE_MS, 1);
  const { row } = await unpublishedOrder();
  const remove = () => documents.send(new DeleteCommand({ TableName: tableName, Key: outboxKeyOf(eventId) }));
  onTestFinished(async () => {
    await remove();
  });
  const unreadable = async () => (await mailroom('status', '--json')).json().outbox.unreadable;
  expect(await unreadable()).toBe(0);
  await put({ ...row, ...outboxKeyOf(eventId), status: 'PARKED' });
  expect(await unreadable()).toBe(1);
  const run = await mailroom('status');
  expect(run.code).toBe(1);
  const audit = await runPrinted(printedCommand(run, 'audit --since 24h'));
  expect(unwrapped(audit.out)).toContain(`${eventId}, outbox: its "status" is "PARKED"`);
  await remove();
  expect(await unreadable()).toBe(0);
});
