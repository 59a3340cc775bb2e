import { expect, test } from 'vitest';
import {
  consumerNeeds,
  type RoleNeed,
  type RoleResources,
  streamRelayNeeds,
  sweepNeeds,
} from '../../cli/reports/checks/role-checks.ts';
import { readConsumerConfig } from '../../lambdas/runtime/base/consumer-config.ts';
import { readDirectories } from '../../lambdas/runtime/operations/directory-reader.ts';
import { deployedParts } from './access/deployed-parts.ts';
import { askOf, rolesOf } from './access/permissions.ts';
import { synthStage } from './synth.ts';

test('the deployed roles have every permission that the doctor demands of them, by their own policies alone', async () => {
  const parts = deployedParts(synthStage('prod').app);
  const ofType = (type: string) => parts.filter((part) => part.type === type);
  const {
    directories: [directory],
  } = readDirectories(
    ofType('AWS::SSM::Parameter').map(({ properties }) => ({
      name: properties.Name,
      value: properties.Value,
    })),
  );
  if (directory === undefined) throw new Error('The app has no directory');
  expect(directory.unlisted).toBeUndefined(); // every entry has the form that its reader demands
  const { mailroom, consumers } = directory;
  const table = parts.find(({ name }) => name === mailroom.table)?.arn ?? '';
  const resourcesOf = (queueUrl: string): RoleResources => ({
    table,
    stream: `${table}/stream/2026-11-21T00:00:00.000`,
    queue: ofType('AWS::SQS::Queue').find(({ name }) => queueUrl.endsWith(`/${name}`))?.arn,
  });
  const functionOf = (name: string) => {
    const found = ofType('AWS::Lambda::Function').find((part) => part.name === name);
    if (found === undefined) throw new Error(`No function ${name}`);
    return found.properties;
  };
  const needed: (readonly [string, readonly RoleNeed[]])[] = [
    [mailroom.streamFunction, streamRelayNeeds(resourcesOf(mailroom.failureQueue), mailroom)],
    [mailroom.sweepFunction, sweepNeeds(resourcesOf(mailroom.failureQueue), mailroom)],
    ...consumers.map((consumer) => {
      const { publishes = [] } = readConsumerConfig(functionOf(consumer.function).Environment.Variables);
      return [
        consumer.function,
        // Whether or not it has an order: its handlers may have one.
        consumerNeeds(resourcesOf(consumer.queue), { ...consumer, order: 'latest' }, publishes.length > 0),
      ] as const;
    }),
  ];

  const ask = askOf([]);
  const roles = rolesOf(parts);
  const asked: string[] = [];
  const refused: string[] = [];
  for (const [name, needs] of needed) {
    const role = roles.find(({ arn }) => arn === functionOf(name).Role);
    if (role === undefined) throw new Error(`The function ${name} has no role`);
    for (const { actions, resource, context } of needs) {
      const key = context?.key === 'dynamodb:LeadingKeys' ? context.values[0] : undefined;
      const sources = context?.key === 'events:source' ? context.values : undefined;
      for (const action of actions) {
        asked.push(action);
        const verdict = await ask(role, { action, resource, key, sources });
        if (verdict !== 'allow') refused.push(`${role.name} ${action} ${resource} ${key ?? ''}: ${verdict}`);
      }
    }
  }
  expect(refused).toEqual([]);
  expect(asked).toContain('events:PutEvents');
  expect(asked).toContain('sqs:ReceiveMessage');
});
