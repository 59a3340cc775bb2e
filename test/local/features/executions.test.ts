import { randomUUID } from 'node:crypto';
import { ExecutionAlreadyExists, SFN } from '@aws-sdk/client-sfn';
import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { eventually } from '../support/eventually.ts';
import { invoke, output, read } from '../support/features.ts';
import { mailroom } from '../support/mailroom.ts';

const sfn = new SFN({});
const queues = new SQSClient({});
const rowOf = (eventId: string) => read(inboxKey('packing', eventId));
const executionArnOf = (eventId: string) =>
  `${output('StateMachineArn').replace(':stateMachine:', ':execution:')}:packing_${eventId}`;

/** What waits at the desk, by event id. */
const atDesk = new Map<string, { readonly token: string; readonly attempt: number }[]>();

const requested = async (data: { crash?: boolean } = {}) =>
  (await invoke(output('PackedFunction'), {
    request: { parcel: randomUUID(), crash: false, ...data },
  })) as string;

const processed = (eventId: string) =>
  eventually(async () => {
    const row = await rowOf(eventId);
    expect(row).toMatchObject({ status: 'PROCESSED' });
    return row;
  });

/** Takes what is at the desk. @returns the tokens of an event's executions */
async function tokensOf(eventId: string) {
  return eventually(async () => {
    const QueueUrl = output('DeskUrl');
    const { Messages = [] } = await queues.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
    );
    for (const { Body = '', ReceiptHandle } of Messages) {
      const { eventId: of, ...task } = JSON.parse(Body);
      atDesk.set(of, [...(atDesk.get(of) ?? []), task]);
      await queues.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    }
    const found = atDesk.get(eventId) ?? [];
    expect(found).not.toEqual([]);
    return found;
  });
}

const statusOf = async (eventId: string) =>
  (await sfn.describeExecution({ executionArn: executionArnOf(eventId) })).status;

/** Ends the execution of an event. */
async function end(eventId: string, status: 'SUCCEEDED' | 'FAILED') {
  const [{ token: taskToken } = { token: '' }] = await tokensOf(eventId);
  if (status === 'SUCCEEDED') await sfn.sendTaskSuccess({ taskToken, output: '{}' });
  else await sfn.sendTaskFailure({ taskToken, error: 'Lost', cause: 'The parcel is lost.' });
  await eventually(async () => expect(await statusOf(eventId)).toBe(status));
}

test('Step Functions attaches to a running execution of the same name and input, and refuses each other use of a name', async () => {
  const stateMachineArn = output('StateMachineArn');
  const [name, input] = [randomUUID(), JSON.stringify({ eventId: randomUUID(), attempt: 1 })];
  const { executionArn = '' } = await sfn.startExecution({ stateMachineArn, name, input });
  expect(await sfn.startExecution({ stateMachineArn, name, input })).toMatchObject({ executionArn });
  const otherInput = sfn.startExecution({ stateMachineArn, name, input: '{}' });
  await expect(otherInput).rejects.toBeInstanceOf(ExecutionAlreadyExists);
  await sfn.stopExecution({ executionArn });
  const closed = sfn.startExecution({ stateMachineArn, name, input });
  await expect(closed).rejects.toBeInstanceOf(ExecutionAlreadyExists);
});

test('an event starts one execution, whose last step commits its result once although it is tried twice', async () => {
  const eventId = await requested();
  const row = await processed(eventId);
  expect(JSON.parse(row?.effects.execution.result)).toEqual({
    executionName: `packing_${eventId}`,
    executionArn: executionArnOf(eventId),
  });
  expect(await statusOf(eventId)).toBe('RUNNING');
  await end(eventId, 'SUCCEEDED');
  expect(await tokensOf(eventId)).toHaveLength(1);
  const { events: history } = await sfn.getExecutionHistory({ executionArn: executionArnOf(eventId) });
  expect(history?.filter(({ type = '' }) => /^(LambdaFunction|Task)Failed$/.test(type))).toHaveLength(1);
  const { events, executions } = (await mailroom('why', eventId, '--json')).json();
  const [, result] = events;
  expect(result).toMatchObject({
    type: 'Packed',
    correlationId: events[0].correlationId,
    causationId: eventId,
  });
  expect(events).toMatchObject([{ type: 'PackingRequested', caused: [result.eventId] }, {}]);
  expect(events).toHaveLength(2);
  expect(executions).toMatchObject([
    {
      eventId,
      consumer: 'packing',
      executionArn: executionArnOf(eventId),
      status: 'SUCCEEDED',
      unread: null,
    },
  ]);
  expect(unwrapped((await mailroom('why', eventId)).out)).toContain(
    `packing started the execution packing_${eventId}: SUCCEEDED at `,
  );
});

test.each(['SUCCEEDED', 'FAILED'] as const)(
  'an execution that %s before its crashed start is repeated is found, and not started again',
  async (status) => {
    const eventId = await requested({ crash: true });
    await end(eventId, status);
    expect((await rowOf(eventId))?.effects.execution).toMatchObject({ status: 'IN_PROGRESS' });
    const row = await processed(eventId);
    expect(JSON.parse(row?.effects.execution.result)).toMatchObject({
      executionArn: executionArnOf(eventId),
    });
    expect(await tokensOf(eventId)).toHaveLength(1);
    const ended = status === 'FAILED' ? { error: 'Lost', cause: 'The parcel is lost.' } : { error: null };
    expect((await mailroom('why', eventId, '--json')).json().executions).toMatchObject([
      { status, ...ended },
    ]);
  },
);

test('an execution that runs when its crashed start is repeated with another input keeps its own', async () => {
  const eventId = await requested({ crash: true });
  expect((await processed(eventId))?.attempts).toBeGreaterThan(1);
  expect(await tokensOf(eventId)).toMatchObject([{ attempt: 1 }]);
  await end(eventId, 'SUCCEEDED');
});
