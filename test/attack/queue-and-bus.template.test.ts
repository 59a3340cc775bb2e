import { Stack } from 'aws-cdk-lib';
import { Role } from 'aws-cdk-lib/aws-iam';
import { describe, expect, test } from 'vitest';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom } from '../../lib/index.ts';
import { ACCOUNT, type DeployedPart, deployedParts } from '../infra/access/deployed-parts.ts';
import { administrator, askOf, type Principal, rolesOf } from '../infra/access/permissions.ts';
import { synthStage, testApp } from '../infra/synth.ts';

/** The same role, with a policy of its own that allows everything. */
const escalated = (role: Principal): Principal => ({ ...role, policies: administrator().policies });

const ofType = (parts: readonly DeployedPart[], type: string) => parts.filter((part) => part.type === type);

describe('on the bus of a Mailroom', () => {
  const parts = deployedParts(synthStage('prod').app);
  const ask = askOf(parts);
  const [bus] = ofType(parts, 'AWS::Events::EventBus');

  test("only the relay may put an event, whatever other principals' policies allow", async () => {
    expect(bus).toBeDefined();
    const attackers = [administrator(), ...rolesOf(parts).map(escalated)];
    const allowed = await Promise.all(
      attackers.map(async (who) => {
        const verdict = await ask(who, { action: 'events:PutEvents', resource: bus?.arn ?? '' });
        return verdict === 'allow' ? [who.name] : [];
      }),
    );
    expect(allowed.flat()).toEqual(['Mailroom/MailroomRelayStreamRole', 'Mailroom/MailroomRelaySweepRole']);
  });
});

describe('to the queues of a consumer', () => {
  const parts = deployedParts(synthStage('prod').app);
  const ask = askOf(parts);
  const queues = ofType(parts, 'AWS::SQS::Queue').filter(({ id }) => !id.endsWith('RelayFailures'));

  test('no service, and no other part of the Mailroom, may send a message, whatever its own policies allow', async () => {
    expect(queues).toHaveLength(12);
    const services = rolesOf(parts).filter(({ name }) => !name.startsWith('Bank/'));
    expect(services).toHaveLength(9);
    for (const { arn } of queues) {
      for (const role of services)
        expect(await ask(escalated(role), { action: 'sqs:SendMessage', resource: arn })).toBe('DENY');
    }
  });

  test('an administrator may: operators redrive', async () => {
    for (const { arn } of queues)
      expect(await ask(administrator(), { action: 'sqs:SendMessage', resource: arn })).toBe('allow');
  });
});

describe('where the operators are named', () => {
  const app = testApp();
  const stack = new Stack(app, 'Core', { env: { account: ACCOUNT, region: 'eu-west-1' } });
  const operators = [Role.fromRoleName(stack, 'OnCall', 'on-call')];
  new InboxConsumer(stack, 'Payments', {
    mailroom: new Mailroom(stack, 'Mailroom', { operators }),
    name: 'payments',
    service: 'payments',
    events: [OrderPlaced],
    entry: lambdaEntry('example/payments/handler'),
  });
  const parts = deployedParts(app);
  const ask = askOf(parts);
  const queues = ofType(parts, 'AWS::SQS::Queue').filter(({ id }) => id.startsWith('Payments'));

  test('no one else may send a message to a consumer', async () => {
    expect(queues).toHaveLength(3);
    for (const { arn } of queues) {
      const question = { action: 'sqs:SendMessage', resource: arn };
      expect(await ask(administrator(), question)).toBe('DENY');
      expect(await ask(administrator('on-call'), question)).toBe('allow');
    }
  });
});
