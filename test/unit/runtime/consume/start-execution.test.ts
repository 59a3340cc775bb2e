import { Readable } from 'node:stream';
import { Lambda } from '@aws-sdk/client-lambda';
import { SFN } from '@aws-sdk/client-sfn';
import { beforeAll, describe, expect, test } from 'vitest';
import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import type { LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import { startExecution } from '../../../../lambdas/runtime/consume/start-execution.ts';
import {
  STUB_CONFIGURATION,
  type StubAnswer,
  stubHandler,
  triesAtOnce,
} from '../../../support/stub-client.ts';
import { CONSUMER, oneMessage } from './consumer-rig.ts';

const MACHINE = 'arn:aws:states:eu-central-1:123456789012:stateMachine:fulfil';
const FUNCTION = 'arn:aws:lambda:eu-central-1:123456789012:function:fulfil:live';
const INPUT = { orderId: '42' };

/** An `SFN` without a network. */
function stateMachine(answer: (request: number) => StubAnswer, tries = 1) {
  const requestHandler = stubHandler(answer);
  return {
    client: new SFN({ ...STUB_CONFIGURATION, retryStrategy: triesAtOnce(tries), requestHandler }),
    requests: requestHandler.requests as { name: string; input: string }[],
  };
}

const started = (executionArn: string): StubAnswer => ({ status: 200, body: { executionArn, startDate: 1 } });
const refused = (name: string, status = 400): StubAnswer => ({
  status,
  body: { __type: name, message: `${name} of a test` },
  headers: { 'x-amzn-errortype': name },
});
const arnOf = (eventId: string, effect = '') =>
  `arn:aws:states:eu-central-1:123456789012:execution:fulfil:${CONSUMER}_${eventId}${effect}`;

/** Starts one execution in the handler of one message. */
async function startedFor(
  answer: (request: number, eventId: string) => StubAnswer,
  change: { readonly name?: string; readonly stateMachineArn?: string; readonly input?: unknown } = {},
  { tries = 1, consumer = CONSUMER } = {},
) {
  const one = oneMessage();
  const sfn = stateMachine((request) => answer(request, one.event.eventId), tries);
  const outcomes: unknown[] = [];
  const handle = async (ctx: LeasedContext) => {
    const execution = { client: sfn.client, stateMachineArn: MACHINE, input: INPUT, ...change };
    const result = await startExecution(ctx, execution).catch((error: unknown) => {
      outcomes.push(errorCode(error));
      throw error;
    });
    outcomes.push(result);
  };
  await one.deliver(handle, { consumer });
  return { ...one, ...sfn, outcomes, handle, effect: () => one.effect(change.name ?? 'execution') };
}

// The first call of a client loads modules, during which the manual clock would use up the time of the function.
beforeAll(() =>
  stateMachine(() => started(MACHINE)).client.startExecution({ stateMachineArn: MACHINE, input: '{}' }),
);

describe('an execution of Step Functions', () => {
  test('is named by its consumer and its event, and its ARN is stored', async () => {
    const { outcomes, requests, event, row, effect } = await startedFor((_, eventId) =>
      started(arnOf(eventId)),
    );
    const executionName = `${CONSUMER}_${event.eventId}`;
    const execution = { executionName, executionArn: arnOf(event.eventId) };
    expect(requests).toEqual([
      { stateMachineArn: MACHINE, name: executionName, input: JSON.stringify(INPUT) },
    ]);
    expect(outcomes).toEqual([execution]);
    expect(effect()).toMatchObject({ status: 'COMPLETED', result: JSON.stringify(execution) });
    expect(row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('of another effect has its name at the end', async () => {
    const { requests, event } = await startedFor((_, eventId) => started(arnOf(eventId)), { name: 'refund' });
    expect(requests.map(({ name }) => name)).toEqual([`${CONSUMER}_${event.eventId}_refund`]);
  });

  test.each([MACHINE, `${MACHINE}:live`, `${MACHINE}:7`])(
    'that exists is the one of an earlier attempt: %s',
    async (stateMachineArn) => {
      const { outcomes, event, row } = await startedFor(() => refused('ExecutionAlreadyExists'), {
        stateMachineArn,
      });
      const executionName = `${CONSUMER}_${event.eventId}`;
      expect(outcomes).toEqual([{ executionName, executionArn: arnOf(event.eventId) }]);
      expect(row()).toMatchObject({ status: 'PROCESSED' });
    },
  );

  test('is not looked for again once its result is stored, whatever its input is by then', async () => {
    const one = oneMessage();
    const sfn = stateMachine(() => started(arnOf(one.event.eventId)));
    await one.drain(async (ctx) => {
      const input = { attempt: ctx.attempt };
      await startExecution(ctx, { client: sfn.client, stateMachineArn: MACHINE, input });
      if (ctx.attempt === 1) throw new Error('later step failed');
    });
    expect(sfn.requests).toHaveLength(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });

  test('whose start has an unknown outcome is started again under its name', async () => {
    const { requests, drain, handle, effect, row } = await startedFor((request, eventId) =>
      request === 1 ? { error: new Error('socket hang up') } : started(arnOf(eventId)),
    );
    expect(effect()).toMatchObject({ status: 'RELEASED' });
    expect(effect()).not.toHaveProperty('nothingHappened');
    await drain(handle);
    expect(new Set(requests.map(({ name }) => name)).size).toBe(1);
    expect(requests).toHaveLength(2);
    expect(row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('of the type Express is refused: its message is rejected, and its effect has happened', async () => {
    const express = 'arn:aws:states:eu-central-1:123456789012:express:fulfil:worker_1:0a1b';
    const { outcomes, requests, row, effect } = await startedFor(() => started(express));
    expect(outcomes).toEqual(['EXPRESS_EXECUTION']);
    expect(requests).toHaveLength(1);
    expect(row()).toMatchObject({ status: 'REJECTED', reason: 'EXPRESS_EXECUTION' });
    expect(effect()).toMatchObject({ status: 'RELEASED' });
    expect(effect()).not.toHaveProperty('nothingHappened');
  });
});

describe('a start that is refused', () => {
  test.each([
    ['InvalidExecutionInput', 400, 'BAD_EXECUTION_INPUT', 'REJECTED', 1],
    ['AccessDeniedException', 400, 'AccessDeniedException', 'FAILED', 1],
    ['StateMachineDoesNotExist', 400, 'StateMachineDoesNotExist', 'FAILED', 1],
    ['KmsAccessDeniedException', 400, 'KmsAccessDeniedException', 'FAILED', 1],
    ['ThrottlingException', 400, 'RETRY_LATER', 'FAILED', 0],
    ['ExecutionLimitExceeded', 400, 'RETRY_LATER', 'FAILED', 0],
  ])('with %s has started nothing: %s', async (name, status, code, inboxStatus, attempts) => {
    const { outcomes, row, effect } = await startedFor(() => refused(name, status));
    expect(outcomes).toEqual([code]);
    expect(row()).toMatchObject({ status: inboxStatus, attempts });
    expect(effect()).toMatchObject({ status: 'RELEASED', nothingHappened: true });
  });

  test('with a failure of the service may have started it', async () => {
    const { effect } = await startedFor(() => refused('InternalFailure', 500));
    expect(effect()).not.toHaveProperty('nothingHappened');
  });

  test("after a first try of the client's own may have started it", async () => {
    const { outcomes, requests, effect } = await startedFor(
      (request) => (request === 1 ? refused('ServiceUnavailable', 503) : refused('AccessDeniedException')),
      {},
      { tries: 2 },
    );
    expect(requests).toHaveLength(2);
    expect(outcomes).toEqual(['AccessDeniedException']);
    expect(effect()).not.toHaveProperty('nothingHappened');
  });

  test('waits without counting an attempt while it is throttled', async () => {
    const { drain, handle, row } = await startedFor((request, eventId) =>
      request <= 5 ? refused('ThrottlingException') : started(arnOf(eventId)),
    );
    await drain(handle);
    expect(row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

describe('an execution that cannot be started', () => {
  const [LONGEST, LONGER] = ['c'.repeat(43), 'c'.repeat(44)];
  test.each([
    ['a missing ARN', { stateMachineArn: undefined as never }, CONSUMER, 'BAD_ARGUMENT'],
    ['the ARN of an execution', { stateMachineArn: arnOf('1') }, CONSUMER, 'BAD_ARGUMENT'],
    ['a distributed map', { stateMachineArn: `${MACHINE}/map` }, CONSUMER, 'BAD_ARGUMENT'],
    ['no input', { input: undefined }, CONSUMER, 'BAD_ARGUMENT'],
    ['a name of 81 characters', {}, LONGER, 'BAD_EXECUTION_NAME'],
    ['a name of 81 characters with its effect', { name: 'a' }, `${LONGEST.slice(1)}`, 'BAD_EXECUTION_NAME'],
    ['a name with a space', {}, 'my worker', 'BAD_EXECUTION_NAME'],
    ['an input of more than 256 KiB', { input: 'x'.repeat(256 * 1024) }, CONSUMER, 'BAD_EXECUTION_INPUT'],
    ['an input that JSON would empty', { input: new Map() }, CONSUMER, 'BAD_EXECUTION_INPUT'],
  ])('is refused before any call: %s', async (_what, change, consumer, code) => {
    const { outcomes, requests } = await startedFor((_, eventId) => started(arnOf(eventId)), change, {
      consumer,
    });
    expect(outcomes).toEqual([code]);
    expect(requests).toEqual([]);
  });

  test('has a name of up to 80 characters', async () => {
    const { requests } = await startedFor((_, eventId) => started(arnOf(eventId)), {}, { consumer: LONGEST });
    expect(requests.map(({ name }) => name.length)).toEqual([80]);
  });

  test('fails its message although the handler did not await it', async () => {
    const one = oneMessage();
    const { client } = stateMachine(() => started('arn'));
    await one.deliver(async (ctx) => {
      void startExecution(ctx, { client, stateMachineArn: 'fulfil', input: INPUT }).catch(() => {});
      await ctx.commit({});
    });
    expect(one.row()?.status).not.toBe('PROCESSED');
  });
});

describe('an execution of a durable function', () => {
  const EXECUTION = `${FUNCTION.replace('live', '3')}/durable-execution/name/id`;

  /** A `Lambda` without a network, which records what names the execution. */
  function durable(answer: (request: number) => { status: number; headers?: Record<string, string> }) {
    const requests: object[] = [];
    const requestHandler = {
      handle: async (request: { path: string; headers: Record<string, string>; body?: unknown }) => {
        const { path, headers, body } = request;
        const name = headers['x-amz-durable-execution-name'];
        const type = headers['x-amz-invocation-type'];
        requests.push({ path, name, type, body: Buffer.from(body as Uint8Array).toString() });
        const { status, headers: own } = answer(requests.length);
        const body_ = Readable.from([status < 300 ? '' : '{"message":"refused"}']);
        return { response: { statusCode: status, headers: { ...own }, body: body_ } };
      },
    };
    return { client: new Lambda({ ...STUB_CONFIGURATION, maxAttempts: 1, requestHandler }), requests };
  }

  test('is started by an invocation of the type Event, named by its event', async () => {
    const one = oneMessage();
    const { client, requests } = durable(() => ({
      status: 202,
      headers: { 'x-amz-durable-execution-arn': EXECUTION },
    }));
    await one.deliver((ctx) => startExecution(ctx, { client, functionArn: FUNCTION, input: INPUT }));
    const executionName = `${CONSUMER}_${one.event.eventId}`;
    const path = `/2015-03-31/functions/${encodeURIComponent(FUNCTION)}/invocations`;
    expect(requests).toEqual([{ path, name: executionName, type: 'Event', body: JSON.stringify(INPUT) }]);
    expect(JSON.parse(one.effect('execution')?.result ?? '')).toEqual({
      executionName,
      executionArn: EXECUTION,
    });
  });

  test('that was started with another input is the one of an earlier attempt', async () => {
    const one = oneMessage();
    const { client } = durable(() => ({
      status: 409,
      headers: { 'x-amzn-errortype': 'DurableExecutionAlreadyStartedException' },
    }));
    await one.deliver((ctx) => startExecution(ctx, { client, functionArn: FUNCTION, input: INPUT }));
    expect(JSON.parse(one.effect('execution')?.result ?? '')).toEqual({
      executionName: `${CONSUMER}_${one.event.eventId}`,
      executionArn: null,
    });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each([
    ['TooManyRequestsException', 429, 'RETRY_LATER'],
    ['ResourceNotFoundException', 404, 'ResourceNotFoundException'],
    ['InvalidRequestContentException', 400, 'BAD_EXECUTION_INPUT'],
  ])('that is refused with %s has not started', async (name, status, code) => {
    const one = oneMessage();
    const { client } = durable(() => ({ status, headers: { 'x-amzn-errortype': name } }));
    const codes: string[] = [];
    await one.deliver((ctx) =>
      startExecution(ctx, { client, functionArn: FUNCTION, input: INPUT }).catch((error: unknown) => {
        codes.push(errorCode(error));
        throw error;
      }),
    );
    expect(codes).toEqual([code]);
    expect(one.effect('execution')).toMatchObject({ nothingHappened: true });
  });

  test.each([
    [
      'without a version or an alias',
      { functionArn: FUNCTION.replace(':live', '') },
      CONSUMER,
      'BAD_ARGUMENT',
    ],
    [
      'of the version $LATEST',
      { functionArn: FUNCTION.replace('live', '$LATEST') },
      CONSUMER,
      'BAD_ARGUMENT',
    ],
    ['with a name of 65 characters', {}, 'c'.repeat(28), 'BAD_EXECUTION_NAME'],
    ['with a dot in its name', { name: 'a.b' }, 'c', 'BAD_EXECUTION_NAME'],
  ])('is refused before any call: %s', async (_what, change, consumer, code) => {
    const one = oneMessage();
    const { client, requests } = durable(() => ({ status: 202 }));
    const codes: string[] = [];
    const execution = { client, functionArn: FUNCTION, input: INPUT, ...change };
    await one.deliver(
      (ctx) =>
        startExecution(ctx, execution).catch((error: unknown) => {
          codes.push(errorCode(error));
          throw error;
        }),
      { consumer },
    );
    expect(codes).toEqual([code]);
    expect(requests).toEqual([]);
  });
});
