import { randomUUID } from 'node:crypto';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { DeleteCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { expect, inject, test } from 'vitest';
import {
  type ExternalIdValue,
  externalEventId,
  externalIdText,
} from '../../../lambdas/runtime/store/external-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { LOCAL_REGION } from '../../../localstack/workspace.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { documents, output, read } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';
import { Charged, ObjectCreated } from './external-events.ts';

const events = new EventBridgeClient({});
const queues = new SQSClient({});

const runsOf = (externalId: string) => read({ PK: `RUNS#${externalId}`, SK: 'RUNS' });
const rowOf = (consumer: string, definition: typeof Charged | typeof ObjectCreated, id: ExternalIdValue[]) =>
  read(inboxKey(consumer, externalEventId(definition, id)));

/** Puts an event on the account's default bus, as an AWS service does: with a new id each time. */
async function publish(key: string): Promise<void> {
  const detail = { bucket: { name: 'photos' }, object: { key, sequencer: '0065' } };
  const { source: Source, type: DetailType } = ObjectCreated;
  const { FailedEntryCount } = await events.send(
    new PutEventsCommand({ Entries: [{ Source, DetailType, Detail: JSON.stringify(detail) }] }),
  );
  expect(FailedEntryCount).toBe(0);
}

async function send(body: unknown): Promise<void> {
  const MessageBody = JSON.stringify(body);
  await queues.send(new SendMessageCommand({ QueueUrl: output('QueueUrl'), MessageBody }));
}

/** Publishes to the topic, whose client is not installed. */
async function notify(message: unknown): Promise<void> {
  const credential = `Credential=test/20260101/${LOCAL_REGION}/sns/aws4_request`;
  const answer = await fetch(inject('endpoint'), {
    method: 'POST',
    headers: { authorization: `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=host, Signature=0` },
    body: new URLSearchParams({
      Action: 'Publish',
      Version: '2010-03-31',
      TopicArn: output('TopicArn'),
      Message: JSON.stringify(message),
    }),
  });
  expect(answer.status, await answer.text()).toBe(200);
}

test('an event on the default bus takes effect once, although it was published twice', async () => {
  const key = randomUUID();
  const id = ['photos', key, '0065'];
  await publish(key);
  await eventually(async () =>
    expect(await rowOf('thumbnails', ObjectCreated, id)).toMatchObject({ status: 'PROCESSED' }),
  );
  await publish(key);
  const after = randomUUID();
  await publish(after);
  await eventually(async () =>
    expect(await runsOf(externalIdText(['photos', after, '0065']))).toMatchObject({ runs: 1 }),
  );
  expect(await runsOf(externalIdText(id))).toMatchObject({ runs: 1 });
});

test('a message of an existing queue takes effect once, and has the time of its field', async () => {
  const id = randomUUID();
  await send({ id, amount: 5, created: 1_767_225_600 });
  await eventually(async () =>
    expect(await runsOf(id)).toMatchObject({ runs: 1, occurredAt: Date.UTC(2026, 0, 1) }),
  );
  await send({ id, amount: 5, created: 1_767_225_600 });
  const after = randomUUID();
  await send({ id: after, amount: 5, created: '2026-01-01T00:00:00Z' });
  await eventually(async () => expect(await runsOf(after)).toMatchObject({ runs: 1 }));
  expect(await runsOf(id)).toMatchObject({ runs: 1 });
});

test('a notification of a topic is read like a message of the queue', async () => {
  const id = randomUUID();
  await notify({ id, amount: 5, created: 0 });
  await eventually(async () => expect(await runsOf(id)).toMatchObject({ runs: 1 }));
});

test('a rejected message is found by its own id, and is processed when it is redriven', async () => {
  const id = randomUUID();
  const TableName = output('TableName');
  const hold = { PK: 'RUNS#hold', SK: 'RUNS' };
  await documents.send(new PutCommand({ TableName, Item: hold }));
  await send({ id, amount: 13, created: 0 });
  await eventually(async () => {
    expect(await rowOf('charges', Charged, [id])).toMatchObject({
      status: 'REJECTED',
      reason: 'POISON_MESSAGE',
    });
  });
  const why = await eventually(async () => {
    const found = await mailroom('why', id);
    expect(found.out).toContain('dlq redrive consumer:charges');
    return found;
  });
  expect(why.code).toBe(1);
  expect(unwrapped(why.out)).toContain('the amount 13 is refused');
  await documents.send(new DeleteCommand({ TableName, Key: hold }));
  const redrive = [
    'dlq',
    'redrive',
    'consumer:charges',
    externalEventId(Charged, [id]),
    '--apply',
    '--reason',
    'fixed',
  ];
  const redriven = await mailroom(...redrive);
  expect(redriven.code, redriven.out + redriven.err).toBe(0);
  await eventually(async () => expect(await runsOf(id)).toMatchObject({ runs: 1 }));
  const after = await mailroom('why', id);
  expect(unwrapped(after.out)).toContain('processed by charges. Mailroom does not know');
  expect(after.code).toBe(0);
});

test('status and doctor find nothing wrong with a consumer that has no rule', async () => {
  const status = await mailroom('status', '--json');
  expect(JSON.parse(status.out).wiring.problems, status.out).toEqual([]);
  const doctor = await mailroom('doctor', '--json');
  const problems = JSON.parse(doctor.out).problems.filter(({ part }: { part: string }) =>
    ['charges', 'thumbnails'].includes(part),
  );
  expect(problems, doctor.out).toEqual([]);
});
