import { InvokeCommand, LambdaClient, paginateListFunctions } from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import { expect, test } from 'vitest';
import { CONSUMERS_OF, type Consumer } from '../../../demo/readings.ts';
import type { AuditSummary } from '../../../lambdas/runtime/operations/audit/audit-handler.ts';
import { readEntryVersions } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import { declaredSince } from '../../../lambdas/runtime/operations/subscribed-events.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { eventually } from '../support/eventually.ts';
import { message, only, placeOrder, put, settled, tableName } from '../support/order-system.ts';

const lambda = new LambdaClient({});

test('the deployed audit accounts for an order placed a while ago, and emits its findings', async () => {
  const consumers = await orderedAgo(10 * 60_000);

  const FunctionName = await auditFunction();
  // The engine waits 50 ms for the first line of an invocation's log, and hands out what came later with the next one.
  await eventually(async () => {
    const run = await lambda.send(new InvokeCommand({ FunctionName, LogType: 'Tail' }));
    const log = Buffer.from(run.LogResult ?? '', 'base64').toString();
    expect(run.FunctionError, log).toBeUndefined();
    const answer = JSON.parse(Buffer.from(run.Payload ?? []).toString()) as AuditSummary;
    for (const name of consumers) expect(answer.consumers[name]?.processed).toBeGreaterThan(0);
    // The tail of a log is its last 4 KB; the metrics are printed last.
    expect(log.split('\n').flatMap(parsed)).toContainEqual(
      expect.objectContaining({
        EventsMissing: expect.any(Number),
        EventsDuplicated: expect.any(Number),
        table: tableName,
      }),
    );
  });
});

test('the versions of a consumer’s directory entry date its subscriptions', async () => {
  const versions = await readEntryVersions(new SSMClient({}), tableName, 'payments');
  const declared = (type: string) => declaredSince(versions, { source: 'orders', type, data: () => ({}) });
  expect(declared('OrderPlaced')).toBeGreaterThan(Date.now() - 86_400_000);
  expect(declared('OrderPlaced')).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(declared('OrderCancelled')).toBeUndefined();
});

async function auditFunction(): Promise<string | undefined> {
  const names: (string | undefined)[] = [];
  for await (const { Functions = [] } of paginateListFunctions({ client: lambda }, {})) {
    const audits = Functions.filter(
      ({ Environment }) => Environment?.Variables?.POWERTOOLS_SERVICE_NAME === 'mailroom-audit',
    );
    names.push(...audits.map(({ FunctionName }) => FunctionName));
  }
  expect(names).toHaveLength(1);
  return names[0];
}

/**
 * Places an order, waits until it is settled, and copies its first event to where it would be, had it been placed earlier: a run
 * leaves the last minutes alone.
 *
 * @returns who has processed it
 */
async function orderedAgo(agoMs: number): Promise<readonly Consumer[]> {
  const { orderId } = await placeOrder();
  const { row, envelope } = only((await settled(orderId)).events, 'OrderPlaced');
  const consumers = CONSUMERS_OF[envelope.type] ?? [];
  const eventId = mintEventId(Date.now() - agoMs, 8);
  for (const consumer of consumers)
    await put({ ...(await message(consumer, envelope.eventId)), ...inboxKey(consumer, eventId) });
  const publishedAt = Date.now() - agoMs;
  await put({
    ...row,
    ...outboxKeyOf(eventId),
    publishedAt,
    envelope: JSON.stringify({ ...envelope, eventId }),
  });
  return consumers;
}

// biome-ignore lint/suspicious/noExplicitAny: what is logged has many shapes
function parsed(line: string): any[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return []; // the engine's own words, or a line that the tail has cut
  }
}
