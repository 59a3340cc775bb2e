import { randomUUID } from 'node:crypto';
import { DisableRuleCommand, EnableRuleCommand } from '@aws-sdk/client-eventbridge';
import {
  DeleteFunctionConcurrencyCommand,
  InvokeCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
  PutFunctionConcurrencyCommand,
  UpdateEventSourceMappingCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { z } from 'zod/mini';
import { required } from '../../../demo/readings.ts';
import { asDelivered } from '../../../demo/shop.ts';
import { defineEvent, type Envelope, leased } from '../../../lambdas/runtime/index.ts';
import { deliveredIdentity } from '../../../lambdas/runtime/operations/delivered-event.ts';
import { readDirectory } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { TRANSACTION_ACTIONS_MAX } from '../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { eventBridgeClient } from '../../support/aws.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { awsLines, cloudTrailLines, runAwsLine } from '../support/aws-line.ts';
import { eventually } from '../support/eventually.ts';
import { handmadeMailroom, SMALL_SOURCE, type SmallConsumer } from '../support/handmade-mailroom.ts';
import { mailroom } from '../support/mailroom.ts';
import { get, message } from '../support/order-system.ts';
import { printedCommand, runPrinted } from '../support/printed-command.ts';
import { send } from '../support/queues.ts';
import { smallFunction } from '../support/small-function.ts';
import { outboxOf, unpublishedOrder } from '../support/unpublished-order.ts';

const endpoint = inject('endpoint');
const settings = {
  endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
};

const OrderNoted = defineEvent({
  source: 'orders',
  type: 'OrderNoted',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({}),
});

/** The problems of the wiring that the status finds. */
async function problems(...where: string[]): Promise<{ part: string; problem: string }[]> {
  const { json } = await mailroom('status', '--json', ...where);
  expect(json().wiring.notChecked).toEqual([]);
  return json().wiring.problems;
}

describe('the status of the order system', () => {
  const lambda = new LambdaClient(settings);
  const deployed = () => readDirectory(new SSMClient(settings), required(inject('outputs'), 'TableName'));

  /** Commits events that no consumer receives. */
  async function commitNoted(count: number): Promise<readonly Envelope[]> {
    const drafts = Array.from({ length: count }, (_, index) =>
      OrderNoted.create({ aggregateId: `order-${index}`, data: {} }),
    );
    const outbox = outboxOf('orders');
    const committed: Envelope[] = [];
    while (committed.length < count) {
      const events = drafts.slice(committed.length, committed.length + TRANSACTION_ACTIONS_MAX);
      committed.push(...(await outbox.commit({ events })));
    }
    return committed;
  }

  async function disableMapping(FunctionName: string): Promise<string> {
    const { EventSourceMappings: [mapping] = [] } = await lambda.send(
      new ListEventSourceMappingsCommand({ FunctionName }),
    );
    const UUID = mapping?.UUID ?? '';
    onTestFinished(async () => {
      await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled: true }));
    });
    await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled: false }));
    return UUID;
  }

  test('finds no problem of its wiring, and checks all of it', async () => {
    expect(await problems()).toEqual([]);
  });

  test('names a mapping that is off while messages queue, and the command that lets them through', async () => {
    const { consumers } = await deployed();
    const notifications = consumers.find(({ name }) => name === 'notifications');
    const uuid = await disableMapping(notifications?.function ?? '');
    const { envelope } = await unpublishedOrder();
    await send('notifications', [asDelivered('orders', envelope)]);

    const { code, out } = await mailroom('status');
    expect(code).toBe(1);
    expect(unwrapped(out)).toMatch(
      /notifications receives no messages: the event source mapping of .* disabled/,
    );
    expect(out).not.toContain('nothing visible is broken');
    const fix = awsLines(out);
    expect(fix).toEqual([expect.stringContaining(`--uuid ${uuid} --enabled`)]);
    expect(cloudTrailLines(out)).toEqual([expect.stringContaining('=UpdateEventSourceMapping20150331 ')]);
    for (const line of fix) await runAwsLine(line);

    expect(await problems()).toEqual([]);
    await eventually(async () => {
      expect(await message('notifications', envelope.eventId)).toBeDefined();
    });
  });

  test('names the stream relay and the sweep if both are off, and the commands after which 500 pending events are published', async () => {
    const { mailroom: entry } = await deployed();
    const { sweepRule: Name = '', streamFunction } = entry;
    await disableMapping(streamFunction);
    const bridge = eventBridgeClient(endpoint);
    onTestFinished(async () => {
      await bridge.send(new EnableRuleCommand({ Name }));
    });
    await bridge.send(new DisableRuleCommand({ Name }));
    const pending = await commitNoted(500);

    const found = await problems();
    expect(found.map(({ part, problem }) => [part, problem])).toEqual([
      ['stream relay', 'mapping-disabled'],
      ['sweep', 'rule-disabled'],
    ]);
    const { out, code } = await mailroom('status');
    expect(code).toBe(1);
    expect(out).not.toContain('nothing visible is broken');
    const fix = awsLines(out);
    expect(fix).toHaveLength(2);
    for (const line of fix) await runAwsLine(line);
    expect(await problems()).toEqual([]);

    await eventually(async () => {
      const rows = await Promise.all(pending.map(({ eventId }) => get(outboxKeyOf(eventId))));
      expect(rows.filter((row) => row?.status !== 'PUBLISHED')).toEqual([]);
    });
  });

  test('names a reserved concurrency of 0, and the command after which the consumer goes on', async () => {
    const { consumers } = await deployed();
    const name = 'notifications';
    const FunctionName = consumers.find((consumer) => consumer.name === name)?.function ?? '';
    const none = { FunctionName, ReservedConcurrentExecutions: 0 };
    onTestFinished(async () => {
      await lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName }));
    });
    await lambda.send(new PutFunctionConcurrencyCommand(none));
    const { envelope } = await unpublishedOrder();
    await send(name, [asDelivered('orders', envelope)]);
    expect(await problems()).toMatchObject([{ part: name, problem: 'concurrency-zero' }]);
    const { out } = await mailroom('status');
    for (const line of awsLines(out)) await runAwsLine(line);
    expect(await problems()).toEqual([]);
    await eventually(async () => {
      expect(await message(name, envelope.eventId)).toBeDefined();
    });
  });

  test('names a function that does not start while its messages are received, and the command for its log', async () => {
    const { consumers } = await deployed();
    const name = 'notifications';
    const FunctionName = consumers.find((consumer) => consumer.name === name)?.function ?? '';
    const invoke = () =>
      lambda.send(new InvokeCommand({ FunctionName, Payload: JSON.stringify({ Records: [] }) }));
    const exported = (Handler: string) =>
      lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Handler }));
    onTestFinished(async () => {
      await exported('index.handler');
      // One that succeeds, so that its failures are not all that there is.
      await eventually(async () => expect((await invoke()).FunctionError).toBeUndefined());
    });
    await exported('index.misspelled');
    const { envelope } = await unpublishedOrder();
    await send(name, [asDelivered('orders', envelope)]);
    await eventually(async () => expect((await invoke()).FunctionError).toBeDefined());
    await eventually(async () => {
      await invoke();
      expect(await problems()).toMatchObject([{ part: name, problem: 'invocations-fail' }]);
    });
    // Its message moves between its queue and the function meanwhile.
    const status = await eventually(async () => {
      const found = await mailroom('status');
      expect(unwrapped(found.out)).toMatch(
        /notifications processes nothing: its function \S+ failed at each of its \d+ invocations in the last \d+ min/,
      );
      return found;
    });
    expect(status.code).toBe(1);
    const logs = await runPrinted(printedCommand(status, 'logs notifications'));
    expect(logs).toMatchObject({ code: 0, out: expect.stringContaining('logs filter-log-events') });
  });
});

describe('the status of a Mailroom', () => {
  const REGION = 'ap-northeast-1';
  const Sold = defineEvent({
    source: SMALL_SOURCE,
    type: 'Sold',
    version: 1,
    aggregateType: 'Sale',
    schema: z.object({ sale: z.string() }),
  });
  let small: Awaited<ReturnType<typeof handmadeMailroom>>;
  let ledger: SmallConsumer;
  let where: string[];

  beforeAll(async () => {
    small = await handmadeMailroom(endpoint, REGION, ['ledger'], ['Sold']);
    const [first] = small.consumers;
    if (first === undefined) throw new Error('There are no consumers');
    ledger = first;
    where = ['--region', REGION, '--stack', small.stack];
  });

  afterAll(() => small.remove());

  /** Its problems, except that it has no functions. */
  const found = async () =>
    (await problems(...where))
      .filter(({ problem }) => /rule|bus|target|pattern/.test(problem))
      .map(({ part, problem }) => [part, problem]);

  const aSale = () => Sold.create({ aggregateId: 'sale', data: { sale: randomUUID() } });

  const idsOf = (envelopes: readonly Envelope[]) => envelopes.map(({ eventId }) => eventId);

  /** The ids of the events in the queue of the ledger. */
  async function received(): Promise<string[]> {
    const { Records } = await ledger.take();
    return Records.map(({ body }) => deliveredIdentity(body)?.eventId ?? '');
  }

  /**
   * Waits until the audit finds these events missing; then runs it, the plan that it prints and the change that the plan prints, as
   * printed but for the reason. Each command reads the time from the Date of an answer, which is known to a second, so the
   * grace is longer while it waits: whatever looks next finds the events missing, too.
   */
  async function repairedByAudit(lost: readonly Envelope[], reason: string): Promise<void> {
    const audit = (...options: string[]) => mailroom('audit', '--earlier', ...options, ...where);
    await eventually(async () => {
      const { missing } = (await audit('--grace', '3s', '--json')).json();
      const ids = missing.map(({ eventId }: { eventId: string }) => eventId);
      expect(ids).toEqual(expect.arrayContaining(idsOf(lost)));
    });
    const plan = await runPrinted(printedCommand(await audit('--grace', '1s'), '--repair'));
    const sent = await runPrinted(printedCommand(plan, '--apply'), reason);
    expect(sent).toMatchObject({ code: 0, out: expect.stringContaining('Sent ') });
  }

  test('names a rule that is disabled, and the command that enables it; the audit sends what it missed', async () => {
    expect(await found()).toEqual([]);
    await ledger.disableRule();
    const sold = await small.publish(aSale());
    expect(await found()).toEqual([['ledger', 'rule-disabled']]);
    const { out, code } = await mailroom('status', ...where);
    expect(code).toBe(1);
    for (const line of awsLines(out)) await runAwsLine(line);
    expect(await found()).toEqual([]);
    await repairedByAudit(sold, 'the rule was disabled');
    expect(await received()).toEqual(idsOf(sold));
  });

  test('names a consumer whose every attempt fails, until one succeeds', async () => {
    const bank = { closed: true };
    const handler = smallFunction(
      small,
      ledger,
      [
        leased(Sold, async () => {
          if (bank.closed) throw new Error('the bank is closed');
        }),
      ],
      { maxAttempts: 50, retryFirstMs: 1, retryLongestMs: 1 },
    );
    const sales = Array.from({ length: 10 }, () => randomUUID());
    await small.publish(...sales.map((sale) => Sold.create({ aggregateId: sale, data: { sale } })));
    const event = await eventually(async () => {
      const taken = await ledger.take();
      expect(taken.Records).toHaveLength(10);
      return taken;
    });
    await handler(event, lambdaContext());

    const looks = async () => (await mailroom('status', '--json', ...where)).json().looks;
    expect(await looks()).toMatchObject([{ consumer: 'ledger', look: 'failing', messages: 10 }]);
    const { out, code } = await mailroom('status', ...where);
    expect(code).toBe(1);
    expect(unwrapped(out)).toMatch(
      /ledger fails at every message: 10 failed, and .*; newest error: .*the bank is closed/,
    );
    const next = out.split('\n').find((line) => line.includes('--by cause'));
    const words = next?.trim().split(' ').slice(2) ?? [];
    expect((await mailroom(...words)).out).toContain('the bank is closed');

    bank.closed = false;
    await handler(event, lambdaContext());
    // What the test before has taken out of the queue is missing indeed.
    expect(await looks()).not.toContainEqual(expect.objectContaining({ look: 'failing' }));
  });

  test('names a bus that was deleted once, and not the rules that were on it', async () => {
    await small.deleteBus();
    expect(await found()).toEqual([['bus', 'no-bus']]);
    const lost = await small.publish(aSale(), aSale());
    const { out } = await mailroom('status', ...where);
    expect(out).toContain(`npx cdk deploy ${small.stack} --revert-drift`);
    // A Mailroom that was made by hand has no stack to deploy.
    await small.deployBus();
    expect(await found()).toEqual([]);
    await repairedByAudit(lost, 'the bus was deleted');
    expect(await received()).toEqual(expect.arrayContaining(idsOf(lost)));
  });
});
