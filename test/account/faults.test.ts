import { DescribeRuleCommand, DisableRuleCommand, EnableRuleCommand } from '@aws-sdk/client-eventbridge';
import {
  GetEventSourceMappingCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import {
  GetQueueAttributesCommand,
  ListMessageMoveTasksCommand,
  StartMessageMoveTaskCommand,
} from '@aws-sdk/client-sqs';
import { expect, inject, test } from 'vitest';
import { errorMessage } from '../../lambdas/runtime/base/errors.ts';
import { RULE_DELAY_MS } from '../../lambdas/runtime/operations/audit/audit-declaration.ts';
import { consumerOf, directory, seeing } from '../local/support/dead-letters.ts';
import { eventually } from '../local/support/eventually.ts';
import { mailroom } from '../local/support/mailroom.ts';
import {
  charges,
  emails,
  eventsWith,
  message,
  only,
  placeOrder,
  settled,
  shownOrder,
} from '../local/support/order-system.ts';
import { deadLetters, waiting } from '../local/support/queues.ts';
import { eventBridgeClient, sqsClient } from '../support/aws.ts';

const endpoint = inject('endpoint');
const lambda = new LambdaClient({});
const events = eventBridgeClient(endpoint);
const sqs = sqsClient(endpoint);

/** The id of the event of a type that an order caused, once it is written. */
async function eventOf(orderId: string, type: string): Promise<string> {
  return eventually(async () => only(await eventsWith(orderId), type).envelope.eventId);
}

// The SQS console redrives with this task.
test("SQS's own move task: a dead letter is processed once its cause is gone", async ({ skip }) => {
  // The bank fails as often as payments tries, and has recovered when it is called again.
  const { orderId } = await placeOrder({ customerId: 'fail-5' });
  const eventId = await eventOf(orderId, 'OrderPlaced');
  await eventually(async () => {
    expect(await message('payments', eventId)).toMatchObject({ status: 'REJECTED' });
    expect(await deadLetters('payments')).not.toEqual([]);
  });
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: consumerOf('payments').deadLetterQueue,
      AttributeNames: ['QueueArn'],
    }),
  );
  const SourceArn = Attributes?.QueueArn;
  const refusal = await sqs.send(new StartMessageMoveTaskCommand({ SourceArn })).then(
    () => undefined,
    (error) => {
      if (endpoint === '') throw error;
      return `the engine has no move task: ${errorMessage(error)}`;
    },
  );
  if (refusal === undefined) {
    await eventually(async () => {
      const { Results: [task] = [] } = await sqs.send(new ListMessageMoveTasksCommand({ SourceArn }));
      expect(task).toMatchObject({ Status: 'COMPLETED' });
    });
  } else {
    const reason = ['--apply', '--reason', 'the bank has recovered'];
    await seeing('dlq', 'redrive', 'consumer:payments', eventId, ...reason);
  }
  await settled(orderId);
  expect(await charges(orderId)).toHaveLength(1);
  expect(await shownOrder(orderId)).toMatchObject({ status: 'confirmed' });
  skip(refusal !== undefined, refusal);
});

test("a consumer's mapping is off: its messages wait, status reports it; on again: processed once", async () => {
  const { EventSourceMappings: [mapping] = [] } = await lambda.send(
    new ListEventSourceMappingsCommand({ FunctionName: consumerOf('notifications').function }),
  );
  const UUID = mapping?.UUID;
  const setMapping = async (Enabled: boolean): Promise<void> => {
    await lambda.send(new UpdateEventSourceMappingCommand({ UUID, Enabled }));
    await eventually(async () => {
      const { State } = await lambda.send(new GetEventSourceMappingCommand({ UUID }));
      expect(State).toBe(Enabled ? 'Enabled' : 'Disabled');
    });
  };
  const orderIds: string[] = [];
  await setMapping(false);
  try {
    for (let n = 0; n < 2; n += 1) orderIds.push((await placeOrder()).orderId);
    for (const orderId of orderIds) await eventOf(orderId, 'PaymentCaptured');
    await eventually(async () => expect(await waiting('notifications')).toBeGreaterThanOrEqual(2));
    for (const orderId of orderIds) expect(await emails(orderId)).toEqual([]);
    await eventually(async () => {
      expect(await mailroom('status')).toMatchObject({ code: 1, out: expect.stringMatching(/mapping/i) });
    });
  } finally {
    await setMapping(true);
  }
  for (const orderId of orderIds) {
    await settled(orderId);
    expect(await charges(orderId)).toHaveLength(1);
    expect(await emails(orderId)).toHaveLength(1);
  }
});

/** EventBridge may match events for a while after a rule was disabled. */
const TRIES = 20;

/** Looks at an empty queue before an event counts as lost: SQS counts messages approximately. */
const LOOKS = 5;

/** Places an order. @returns whether notifications, whose rule is disabled, received its payment */
async function placeUnheard(): Promise<{ orderId: string; eventId: string; received: boolean }> {
  const { orderId } = await placeOrder();
  const eventId = await eventOf(orderId, 'PaymentCaptured');
  let empty = 0;
  return eventually(async () => {
    expect(await message('order-status', eventId)).toMatchObject({ status: 'PROCESSED' });
    const received = (await message('notifications', eventId)) !== undefined;
    if ((await waiting('notifications')) === 0) empty += 1;
    expect(received || empty >= LOOKS).toBe(true);
    return { orderId, eventId, received };
  });
}

test("a consumer's rule is off: the audit finds the lost event, and its repair delivers it once", async ({
  annotate,
}) => {
  const { rule: Name, changedAt = 0 } = consumerOf('notifications');
  const rule = { Name, EventBusName: directory.mailroom.bus };
  const setRule = async (state: 'ENABLED' | 'DISABLED'): Promise<void> => {
    const command = state === 'ENABLED' ? new EnableRuleCommand(rule) : new DisableRuleCommand(rule);
    await events.send(command);
    await eventually(async () => {
      expect((await events.send(new DescribeRuleCommand(rule))).State).toBe(state);
    });
  };
  // The audit expects no event of the minute after a rule was deployed.
  await eventually(async () => {
    expect(Date.now()).toBeGreaterThan(changedAt + RULE_DELAY_MS);
  }, RULE_DELAY_MS);
  await setRule('DISABLED');
  let lost: Awaited<ReturnType<typeof placeUnheard>>;
  try {
    let tries = 0;
    do lost = await placeUnheard();
    while (lost.received && ++tries < TRIES);
    expect(lost.received, `notifications received ${TRIES} events although its rule is off`).toBe(false);
  } finally {
    await setRule('ENABLED');
  }
  const { orderId, eventId } = lost;
  const audit = ['audit', '--since', '1h', '--grace', '1s', '--repair', '--apply'];
  await eventually(async () => {
    const { out, json } = await mailroom(...audit, '--reason', 'its rule was disabled', '--json');
    const repaired = expect.objectContaining({ eventId, outcome: 'sent' });
    expect(json().repair?.events, out).toContainEqual(repaired);
  }, RULE_DELAY_MS);
  await settled(orderId);
  expect(await emails(orderId)).toHaveLength(1);
  await annotate(`event ${eventId} was sent again to notifications alone`);
});

test('mailroom status: nothing requires action once every fault is repaired', async ({ annotate }) => {
  const { out } = await eventually(async () => {
    const run = await mailroom('status');
    expect(run.code, `${run.out}${run.err}`).toBe(0);
    return run;
  });
  await annotate(out.trim().split('\n')[0] ?? '');
});
