import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  DeleteParameterCommand,
  GetParameterCommand,
  PutParameterCommand,
  SSMClient,
} from '@aws-sdk/client-ssm';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod/mini';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { defineEvent } from '../../../lambdas/runtime/index.ts';
import { consumerEntryName } from '../../../lambdas/runtime/operations/directory.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { awsLines } from '../support/aws-line.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import { documents, message, only, placeOrder, put, settled, tableName } from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
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
  const restore = () => ssm.send(new PutParameterCommand({ Name, Type: 'String', Value, Overwrite: true }));
  onTestFinished(async () => {
    await restore();
  });
  const { orderId } = await placeOrder();
  const { events } = await settled(orderId);
  const { eventId } = only(events, 'OrderPlaced').envelope;
  const before = (await mailroom('doctor', '--json')).json();
  await ssm.send(new DeleteParameterCommand({ Name }));

  const after = (await mailroom('doctor', '--json')).json();
  expect(after.problems).toMatchObject([...before.problems, { part: 'notifications', problem: 'no-entry' }]);
  const { out, code } = await mailroom('status');
  expect(code).toBe(1);
  const [line = ''] = awsLines(out).filter((one) => one.includes('describe-stack-resources'));
  // The engine finds a stack by its name only; AWS also by a resource, which is the one that reserves the consumer's name.
  const [, reservation] = /--physical-resource-id (\S+)/.exec(line) ?? [];
  const reserved = await ssm.send(new GetParameterCommand({ Name: reservation }));
  expect(reserved.Parameter?.Value).toBe('notifications');
  const { verdict } = (await mailroom('why', eventId, '--json')).json();
  expect(verdict).toMatchObject({ state: 'unproven', next: line.trim() });
  const { incomplete } = (await mailroom('audit', '--json')).json();
  expect(incomplete).toContainEqual(expect.stringContaining('no entry of notifications'));

  // As the deployment of its stack does.
  await restore();
  expect((await mailroom('doctor', '--json')).json().problems).toEqual(before.problems);
  const { verdict: again } = (await mailroom('why', eventId, '--json')).json();
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

test('events that reached no consumer stay a warning until a repair, with the printed commands, has sent them', async () => {
  const { envelope, row } = await unpublishedOrder();
  // A change of a consumer's entry excuses what was published in the minute after it.
  await put({ ...row, status: 'PUBLISHED', publishedAt: Date.now() + 2 * MINUTE_MS });
  const later = ['--endpoint', await laterEndpoint(12 * MINUTE_MS)];
  interface Look {
    readonly look: string;
    readonly consumer: string;
  }
  const missing = async () => {
    const { looks } = (await mailroom('status', '--json', ...later)).json();
    return looks.filter(({ look }: Look) => look === 'missing').map(({ consumer }: Look) => consumer);
  };
  expect(await missing()).toEqual(expect.arrayContaining(['inventory', 'payments']));
  const status = await mailroom('status', ...later);
  expect(status.code).toBe(1);
  expect(unwrapped(status.out)).toMatch(/did not reach payments, .* An audit is conclusive from/);
  const [line = ''] = /^ +(npx cdk-mailroom audit .*)$/m.exec(status.out)?.slice(1) ?? [];
  const audit = await runPrinted(line);
  const plan = await runPrinted(printedCommand(audit, '--repair'));
  const sent = await runPrinted(printedCommand(plan, '--apply'), 'the events were lost');
  expect(sent).toMatchObject({ code: 0, out: expect.stringContaining('Sent ') });
  await eventually(async () => {
    for (const consumer of ['inventory', 'payments'] as const)
      expect(await message(consumer, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
    expect(await missing()).toEqual([]);
  });
});

/** An endpoint of the engine whose answers carry a later time: the command goes by it, and nothing has to wait. */
async function laterEndpoint(byMs: number): Promise<string> {
  const engine = inject('endpoint');
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers;
    const answer = await fetch(`${engine}${request.url}`, {
      method: request.method ?? 'POST',
      headers: headers as Record<string, string>,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = Buffer.from(await answer.arrayBuffer());
    const date = new Date(Date.now() + byMs).toUTCString();
    const type = answer.headers.get('content-type') ?? 'application/json';
    response.writeHead(answer.status, { date, 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
