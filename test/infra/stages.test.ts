import { describe, expect, test } from 'vitest';
import { readStage } from '../../lib/example/stage.ts';
import { type Resource, resources, STACKS, synthStage } from './synth.ts';

const REAL_STAGES = ['dev', 'prod'] as const;
const OUTPUTS = {
  Mailroom: ['TableName', 'EventBusName'],
  Orders: ['OrdersUrl', 'OrderStatusQueueUrl', 'OrderStatusDlqUrl'],
  Bank: ['BankTableName'],
  Payments: ['PaymentsQueueUrl', 'PaymentsDlqUrl'],
  Inventory: ['InventoryQueueUrl', 'InventoryDlqUrl'],
  Notifications: ['NotificationsQueueUrl', 'NotificationsDlqUrl'],
};

describe('choosing a stage', () => {
  test('is dev where nothing says otherwise, and local where an endpoint is set', () => {
    expect(readStage(undefined, {}).name).toBe('dev');
    expect(readStage(undefined, { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' }).name).toBe('local');
  });

  test('goes by the context even where an endpoint is set', () => {
    expect(readStage('prod', { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' }).name).toBe('prod');
  });

  test('refuses a stage that there is not', () => {
    expect(() => readStage('staging', {})).toThrow(
      'The stage is "staging"; there are local, dev and prod. Choose one with -c stage=dev.',
    );
  });

  test('takes the account of the credentials, except for local', () => {
    const env = { CDK_DEFAULT_ACCOUNT: '111122223333', CDK_DEFAULT_REGION: 'eu-west-1' };
    expect(readStage('prod', env).env).toEqual({ account: '111122223333', region: 'eu-west-1' });
    expect(readStage('local', env).env).toEqual({ account: '000000000000', region: 'us-east-1' });
  });
});

describe.each(REAL_STAGES)('the stage %s', (name) => {
  const { templates } = synthStage(name);
  const all = Object.values(templates);

  test('names nothing of a local engine', () => {
    for (const template of all) {
      expect(JSON.stringify(template.toJSON())).not.toMatch(
        /127\.0\.0\.1|localhost|ENDPOINT_URL|SECRET_ACCESS_KEY|000000000000/i,
      );
    }
  });

  test('keeps every table, queue and log when its stack goes', () => {
    const stateful = ['AWS::DynamoDB::GlobalTable', 'AWS::SQS::Queue', 'AWS::Logs::LogGroup'];
    const found = all.flatMap((template) =>
      stateful.flatMap((type) => Object.values(resources(template, type))),
    );
    expect(found.length).toBeGreaterThan(20);
    expect(found.filter((resource) => !isKept(resource))).toEqual([]);
  });

  test('protects its tables from deletion and can restore them', () => {
    const tables = all.flatMap((template) =>
      Object.values(resources(template, 'AWS::DynamoDB::GlobalTable')),
    );
    expect(tables).toHaveLength(2);
    for (const table of tables) {
      expect(table.Properties.Replicas[0]).toMatchObject({
        DeletionProtectionEnabled: true,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      });
    }
  });

  test('asks who calls the orders API', () => {
    const urls = Object.values(resources(templates.Orders, 'AWS::Lambda::Url'));
    expect(urls.map((url) => url.Properties.AuthType)).toEqual(['AWS_IAM']);
    const permissions = all.flatMap((template) =>
      Object.values(resources(template, 'AWS::Lambda::Permission')),
    );
    expect(permissions.map((permission) => permission.Properties.Principal)).toEqual([
      'events.amazonaws.com',
    ]);
  });

  test('sweeps once a minute', () => {
    const environments = Object.values(resources(templates.Mailroom, 'AWS::Lambda::Function')).map(
      (fn) => fn.Properties.Environment.Variables,
    );
    expect(environments.map((variables) => variables.MAILROOM_SWEEP_EVERY_MS)).toEqual(['60000', '60000']);
  });
});

describe('the stages', () => {
  test('share no stack, queue or bus name', () => {
    const names = REAL_STAGES.flatMap((stage) => {
      const { app, templates } = synthStage(stage);
      const stacks = STACKS.map(
        (stack) => (app.node.findChild(stack) as never as { stackName: string }).stackName,
      );
      const queues = Object.values(templates).flatMap((template) =>
        Object.values(resources(template, 'AWS::SQS::Queue')).flatMap(
          (queue) => queue.Properties.QueueName ?? [],
        ),
      );
      const buses = Object.values(resources(templates.Mailroom, 'AWS::Events::EventBus'));
      return [...stacks, ...queues, ...buses.map((bus) => bus.Properties.Name)];
    });
    expect(names).toHaveLength(22);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(['local', 'dev', 'prod'] as const)('print the same outputs: %s', (name) => {
    const { templates } = synthStage(name);
    for (const stack of STACKS) {
      const outputs = Object.keys(templates[stack].toJSON().Outputs).filter(
        (id) => !id.startsWith('Exports'),
      );
      expect(outputs.sort()).toEqual([...OUTPUTS[stack]].sort());
    }
  });

  test('local sweeps every five seconds, lets everybody call the API and leaves nothing behind', () => {
    const { templates } = synthStage('local');
    const [url] = Object.values(resources(templates.Orders, 'AWS::Lambda::Url'));
    expect(url?.Properties.AuthType).toBe('NONE');
    const [stream] = Object.values(resources(templates.Mailroom, 'AWS::Lambda::Function'));
    expect(stream?.Properties.Environment.Variables.MAILROOM_SWEEP_EVERY_MS).toBe('5000');
    const tables = Object.values(resources(templates.Mailroom, 'AWS::DynamoDB::GlobalTable'));
    expect(tables.map((table) => table.DeletionPolicy)).toEqual(['Delete']);
  });
});

function isKept({ DeletionPolicy, UpdateReplacePolicy }: Resource): boolean {
  return [DeletionPolicy, UpdateReplacePolicy].every((policy) => policy?.startsWith('Retain'));
}
