import { Stack } from 'aws-cdk-lib';
import { describe, expect, test } from 'vitest';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { InboxConsumer, Mailroom, MailroomBus } from '../../lib/index.ts';
import { lambdaEntry } from '../../lib/service-function.ts';
import { ACCOUNT, type DeployedPart, deployedParts, REGION } from './access/deployed-parts.ts';
import { askOf, type Principal } from './access/permissions.ts';
import { testApp } from './synth.ts';

// Attacks of another team in the same account, with its own stack and no permission on the bus.

const entry = lambdaEntry('example/bank/handler');

function partOf(parts: readonly DeployedPart[], stack: string, type: string, id = ''): DeployedPart {
  const found = parts.find((part) => part.stack === stack && part.type === type && part.id.includes(id));
  if (found === undefined) throw new Error(`${stack} deploys no ${type} ${id}`);
  return found;
}

describe('a rule that another team adds to the shared bus', () => {
  const app = testApp();
  const bus = new MailroomBus(new Stack(app, 'Bus'), 'Bus', { eventBusName: 'shop' });
  const stack = new Stack(app, 'Payments');
  const mailroom = new Mailroom(stack, 'Mailroom', { bus });
  new InboxConsumer(stack, 'Payments', {
    mailroom,
    name: 'payments',
    service: 'payments',
    events: [OrderPlaced],
    entry,
  });
  const parts = deployedParts(app);
  const ask = askOf(parts);
  const rule = (arn: string): Principal => ({ name: 'a rule', arn, policies: [], service: 'events.amazonaws.com' });
  const send = (arn: string, queue: string) =>
    ask(rule(arn), {
      action: 'sqs:SendMessage',
      resource: partOf(parts, 'Payments', 'AWS::SQS::Queue', queue).arn,
    });

  test.each(['PaymentsQueue', 'PaymentsUndelivered'])('may not send its own messages to %s', async (queue) => {
    const foreign = `arn:aws:events:${REGION}:${ACCOUNT}:rule/shop/hostile`;
    expect(await send(foreign, queue)).toBe('-');
    expect(await send(`${foreign}-events`, queue)).toBe('-');
    expect(await send(partOf(parts, 'Payments', 'AWS::Events::Rule', 'PaymentsRule').arn, queue)).toBe('allow');
  });
});
