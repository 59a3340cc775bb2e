import { LambdaClient } from '@aws-sdk/client-lambda';
import { describe, expect, test } from 'vitest';
import type { Clients } from '../../../cli/deployment/clients.ts';
import { awsExecutions, type ExecutionState } from '../../../cli/deployment/executions.ts';
import { executionReports, executionTexts } from '../../../cli/reports/why/execution-words.ts';
import { readTrace } from '../../../cli/reports/why/trace-reader.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { startExecution } from '../../../lambdas/runtime/consume/start-execution.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { STUB_CONFIGURATION, type StubAnswer, stubHandler } from '../../support/stub-client.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { drained, fine } from './support/why-rig.ts';

const HEAD = 'arn:aws:states:eu-central-1:123456789012';
const DURABLE = 'arn:aws:lambda:eu-central-1:123456789012:function:pack:3/durable-execution/name/id';
const STARTED_AT = Date.UTC(2026, 0, 1);

/** Starts an execution of Step Functions and returns its ARN. */
const starts = leased(ThingHappened, async (_, ctx) => {
  const client = { startExecution: async () => ({}) };
  await startExecution(ctx, { client, stateMachineArn: `${HEAD}:stateMachine:pack`, input: {} });
});

/** An event whose effects have started executions, as `why` reads it. */
async function traced(handler = starts, execution?: (arn: string) => Promise<ExecutionState>) {
  const mailroom = mailroomInMemory([handler]);
  const eventId = await drained(mailroom);
  const { table, queues } = mailroom;
  const read = () => readTrace(withStored({ directory, table, queues, execution }), [eventId]);
  const executionName = `${worker.name}_${eventId}`;
  const executionArn = `${HEAD}:execution:pack:${executionName}`;
  return { ...mailroom, eventId, read, trace: await read(), executionName, executionArn };
}

describe('why, of an event that started an execution', () => {
  test('shows its state and how it ended', async () => {
    const read: string[] = [];
    const { trace, eventId, executionName, executionArn } = await traced(starts, async (arn) => {
      read.push(arn);
      const endedAt = STARTED_AT + 60_000;
      return { status: 'FAILED', startedAt: STARTED_AT, endedAt, error: 'Lost', cause: 'It is lost.' };
    });
    expect(read).toEqual([executionArn]);
    expect(executionReports(trace)).toEqual([
      {
        ...{ eventId, consumer: worker.name, effect: 'execution', executionName, executionArn },
        ...{ status: 'FAILED', startedAt: STARTED_AT, endedAt: STARTED_AT + 60_000 },
        ...{ error: 'Lost', cause: 'It is lost.', unread: null },
      },
    ]);
    expect(unwrapped(executionTexts(trace).join())).toMatch(
      `${worker.name} started the execution ${executionName}: FAILED at `,
    );
    expect(unwrapped(executionTexts(trace).join())).toContain(` (Lost: It is lost.). ${executionArn}`);
  });

  test('says so if it may not read its state', async () => {
    const { trace, executionName } = await traced(starts, async () => {
      throw Object.assign(new Error('not authorized'), { name: 'AccessDeniedException' });
    });
    expect(executionReports(trace)).toMatchObject([
      { executionName, status: null, unread: 'AccessDeniedException' },
    ]);
    expect(unwrapped(executionTexts(trace).join())).toContain(
      '; its state cannot be read (AccessDeniedException).',
    );
  });

  test('shows a durable execution, and one whose ARN is not known', async () => {
    const handler = leased(ThingHappened, async (_, ctx) => {
      const execution = { executionName: 'name', executionArn: DURABLE };
      await ctx.once('durable', async () => execution);
      await ctx.once('other', async () => ({ executionName: 'other', executionArn: null }));
    });
    const { trace } = await traced(handler, async () => ({ status: 'RUNNING', startedAt: STARTED_AT }));
    expect(executionReports(trace)).toMatchObject([
      { effect: 'durable', executionArn: DURABLE, status: 'RUNNING', endedAt: null },
      { effect: 'other', executionName: 'other', executionArn: null, status: null, unread: null },
    ]);
  });

  test('follows it to the event that its last step committed', async () => {
    let endedAt: number | undefined;
    const state = async () => ({ status: 'SUCCEEDED', startedAt: STARTED_AT, endedAt });
    const { clock, happened, outbox, eventId, read, trace } = await traced(starts, state);
    expect(trace.events).toHaveLength(1);
    await clock.advance(5 * 3_600_000);
    const [result] = await outbox.commit({ events: [{ ...happened(9), causationId: eventId }] });
    expect((await read()).events).toHaveLength(1);
    endedAt = clock.now() + 1_000;
    expect((await read()).events.map((event) => event.eventId)).toEqual([eventId, result?.eventId]);
    expect((await read()).events[0]?.caused).toEqual([result?.eventId]);
  });
});

test.each([
  ['no effect', fine],
  [
    'an effect with another result',
    leased(ThingHappened, async (_, ctx) => {
      await ctx.once('a', async () => ({ executionName: 'a', executionArn: 'arn:aws:sqs:eu:1:queue' }));
      await ctx.once('b', async () => ({ executionArn: `${HEAD}:execution:pack:name` }));
      await ctx.once('c', async () => 'arn');
      await ctx.once('d', async () => undefined);
    }),
  ],
])('why, of an event with %s, reads no execution', async (_what, handler) => {
  const { trace } = await traced(handler, () => expect.fail('an execution was read'));
  expect(executionReports(trace)).toEqual([]);
  expect(executionTexts(trace)).toEqual([]);
});

describe('the state of an execution', () => {
  const reader = (answer: StubAnswer) => {
    const settings = { ...STUB_CONFIGURATION, maxAttempts: 1, requestHandler: stubHandler(() => answer) };
    return awsExecutions({ settings, lambdaReads: new LambdaClient(settings) } as unknown as Clients);
  };
  const times = { startedAt: STARTED_AT, endedAt: STARTED_AT + 1_000 };

  test('is read from Step Functions', async () => {
    const [startDate, stopDate] = [STARTED_AT / 1_000, STARTED_AT / 1_000 + 1];
    const body = { status: 'FAILED', startDate, stopDate, error: 'Lost', cause: 'It is lost.' };
    expect(await reader({ status: 200, body })(`${HEAD}:execution:pack:name`)).toEqual({
      ...{ status: 'FAILED', error: 'Lost', cause: 'It is lost.' },
      ...times,
    });
  });

  test('is read from Lambda', async () => {
    const [StartTimestamp, EndTimestamp] = [STARTED_AT / 1_000, STARTED_AT / 1_000 + 1];
    const error = { ErrorType: 'Lost', ErrorMessage: 'It is lost.' };
    const state = { Status: 'TIMED_OUT', StartTimestamp, EndTimestamp, Error: error };
    const body = { DurableExecutionArn: DURABLE, ...state };
    expect(await reader({ status: 200, body })(DURABLE)).toEqual({
      ...{ status: 'TIMED_OUT', error: 'Lost', cause: 'It is lost.' },
      ...times,
    });
  });

  test('throws the error of the service', async () => {
    const refusal = { status: 400, body: { __type: 'ExecutionDoesNotExist', message: 'It expired.' } };
    await expect(reader(refusal)(`${HEAD}:execution:pack:name`)).rejects.toMatchObject({
      name: 'ExecutionDoesNotExist',
    });
  });
});
