import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { beforeAll, expect, inject, test } from 'vitest';
import { required } from '../../demo/readings.ts';
import { asDelivered } from '../../demo/shop.ts';
import { consumerOf, directory } from '../local/support/dead-letters.ts';
import { eventually } from '../local/support/eventually.ts';
import { only, placeOrder, settled } from '../local/support/order-system.ts';
import { type Attempts, PROBES } from './attempts.ts';
import { denialsOf } from './denials.ts';
import type { ProbeOutcome } from './probe.handler.ts';

const lambda = new LambdaClient({});
const outputs = inject('outputs');
let duplicate: string;

beforeAll(async () => {
  const { events } = await settled((await placeOrder()).orderId);
  duplicate = asDelivered('orders', only(events, 'OrderPlaced').envelope);
});

/** Makes calls with the role of a probe. */
async function invoke(output: string, attempts: Attempts['denied']): Promise<ProbeOutcome[]> {
  const { Payload, FunctionError } = await lambda.send(
    new InvokeCommand({
      FunctionName: required(outputs, output),
      Payload: JSON.stringify({ calls: attempts.map(({ call }) => call) }),
    }),
  );
  const answer = new TextDecoder().decode(Payload);
  expect(FunctionError, answer).toBeUndefined();
  return JSON.parse(answer);
}

// IAM and the policies of table, bus and queues; no local engine enforces them.
test.for(PROBES.map((probe) => [probe.role, probe] as const))(
  'IAM: %s is denied what it may not do',
  async ([, { output, attempts }], { annotate, skip }) => {
    const { table, bus } = directory.mailroom;
    const queue = (consumer: Parameters<typeof consumerOf>[0]) => consumerOf(consumer).queue;
    const { allowed, denied } = attempts({ table, bus, outputs, queue, duplicate });
    // A role that may do nothing would be denied everything: its rights must work, which IAM may take a minute to publish.
    await eventually(async () => {
      const refused = (await invoke(output, allowed)).filter(({ kind }) => kind !== 'allowed');
      expect(refused, `it may ${allowed.map(({ what }) => what).join(', ')}`).toEqual([]);
    });
    const { holes, notShown } = denialsOf(denied, await invoke(output, denied), inject('endpoint') !== '');
    expect(holes).toEqual([]);
    skip(notShown !== undefined, notShown);
    await annotate(`denied: ${denied.map(({ what }) => what).join('; ')}`);
  },
);
