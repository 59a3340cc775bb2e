import { Stack } from 'aws-cdk-lib';
import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { LEASE_MS } from '../../demo/duplicate-wait.ts';
import { readStage } from '../../lib/example/stage.ts';
import { type Resource, resources, STACKS, synthStage, synthStageAnew } from './synth.ts';

const REAL_STAGES = ['dev', 'prod'] as const;
const OUTPUTS = {
  Mailroom: ['TableName', 'EventBusName'],
  Orders: ['OrdersUrl', 'OrderStatusQueueUrl', 'OrderStatusDlqUrl'],
  Bank: ['BankTableName'],
  Payments: ['PaymentsQueueUrl', 'PaymentsDlqUrl'],
  Inventory: ['InventoryQueueUrl', 'InventoryDlqUrl'],
  Notifications: ['NotificationsQueueUrl', 'NotificationsDlqUrl'],
  Operations: ['PageTopicArn', 'TicketTopicArn', 'DashboardName'],
};

describe('choosing a stage', () => {
  test('the stage is dev by default, and local if an endpoint is set', () => {
    expect(readStage(undefined, {}).name).toBe('dev');
    expect(readStage(undefined, { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' }).name).toBe('local');
  });

  test('follows the context even if an endpoint is set', () => {
    expect(readStage('prod', { AWS_ENDPOINT_URL: 'http://127.0.0.1:4566' }).name).toBe('prod');
  });

  test('refuses an unknown stage', () => {
    expect(() => readStage('staging', {})).toThrow(
      'The stage is "staging", but must be local, dev or prod. Choose one with -c stage=dev.',
    );
  });

  test('takes the account of the credentials, except for local', () => {
    const env = { CDK_DEFAULT_ACCOUNT: '111122223333', CDK_DEFAULT_REGION: 'eu-west-1' };
    expect(readStage('prod', env).env).toEqual({ account: '111122223333', region: 'eu-west-1' });
    expect(readStage('local', env).env).toEqual({ account: '000000000000', region: 'us-east-1' });
  });
});

test('the consumers of the local stage have the lease that the demo names', () => {
  const { templates } = synthStage('local');
  const leases = functionsOf(Object.values(templates)).flatMap((fn) => fn.MAILROOM_LEASE_MS ?? []);
  expect(leases).toEqual(Array.from({ length: 4 }, () => String(LEASE_MS)));
});

describe.each(REAL_STAGES)('the stage %s', (name) => {
  const { app, templates } = synthStage(name);
  const all = Object.values(templates);

  test('names nothing of a local engine', () => {
    for (const template of all) {
      expect(JSON.stringify(template.toJSON())).not.toMatch(
        /127\.0\.0\.1|localhost|ENDPOINT_URL|SECRET_ACCESS_KEY|000000000000/i,
      );
    }
  });

  test('keeps every table, bus, archive, queue and log when its stack goes', () => {
    const stateful = [
      'AWS::DynamoDB::GlobalTable',
      'AWS::Events::EventBus',
      'AWS::Events::Archive',
      'AWS::SQS::Queue',
      'AWS::Logs::LogGroup',
    ];
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

  test('every stack of prod is protected against deletion', () => {
    expect(app.node.children.filter(Stack.isStack).map((stack) => stack.terminationProtection)).toEqual(
      STACKS.map(() => true),
    );
  });

  test('archives every event of the bus for a month, which every inbox outlasts', () => {
    const archives = Object.values(resources(templates.Mailroom, 'AWS::Events::Archive'));
    expect(archives.map(({ Properties }) => Properties)).toEqual([
      expect.objectContaining({
        SourceArn: { 'Fn::GetAtt': [expect.stringMatching(/^MailroomBus/), 'Arn'] },
        RetentionDays: 30,
      }),
    ]);
    expect(archives[0]?.Properties).not.toHaveProperty('EventPattern');
    const retentions = functionsOf(all).flatMap((fn) => fn.MAILROOM_INBOX_RETENTION_DAYS ?? []);
    expect(retentions).toEqual(['58', '58', '58', '58']);
  });

  test('encrypts every queue, and takes messages over TLS only', () => {
    for (const template of all) {
      const queues = resources(template, 'AWS::SQS::Queue');
      for (const { Properties } of Object.values(queues)) {
        if (name === 'prod') expect(Properties).toHaveProperty('KmsMasterKeyId');
        else expect(Properties.SqsManagedSseEnabled).toBe(true);
      }
      const overTls = Object.values(resources(template, 'AWS::SQS::QueuePolicy')).flatMap(({ Properties }) =>
        Properties.PolicyDocument.Statement.some(isTlsOnly) ? Properties.Queues : [],
      );
      expect(overTls.map(({ Ref }: { Ref: string }) => Ref).sort()).toEqual(Object.keys(queues).sort());
    }
  });

  test('never makes a function log its input', () => {
    const functions = functionsOf(all);
    expect(functions.length).toBeGreaterThan(6);
    for (const variables of functions) {
      expect(variables).not.toHaveProperty('POWERTOOLS_LOGGER_LOG_EVENT');
      expect(variables).not.toHaveProperty('POWERTOOLS_DEV');
    }
  });

  test('authenticates callers of the orders API', () => {
    const urls = Object.values(resources(templates.Orders, 'AWS::Lambda::Url'));
    expect(urls.map((url) => url.Properties.AuthType)).toEqual(['AWS_IAM']);
    const permissions = all.flatMap((template) =>
      Object.values(resources(template, 'AWS::Lambda::Permission')),
    );
    expect(
      permissions.map(({ Properties }) => [Properties.Principal, Properties.FunctionName['Fn::GetAtt'][0]]),
    ).toEqual([
      ['events.amazonaws.com', expect.stringMatching(/^MailroomRelaySweep/)],
      ['events.amazonaws.com', expect.stringMatching(/^MailroomAudit/)],
      ['events.amazonaws.com', expect.stringMatching(/^MailroomHeartbeat/)],
    ]);
  });

  test('sweeps once a minute', () => {
    const relay = functionsOf([templates.Mailroom]).filter(
      (variables) => variables.POWERTOOLS_SERVICE_NAME === 'mailroom-relay',
    );
    expect(relay.map((variables) => variables.MAILROOM_SWEEP_EVERY_MS)).toEqual(['60000', '60000']);
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
    expect(names).toHaveLength(24);
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

  test('local sweeps every five seconds, allows anonymous calls to the API and leaves nothing behind', () => {
    const { templates } = synthStage('local');
    const [url] = Object.values(resources(templates.Orders, 'AWS::Lambda::Url'));
    expect(url?.Properties.AuthType).toBe('NONE');
    const [stream] = Object.values(resources(templates.Mailroom, 'AWS::Lambda::Function'));
    expect(stream?.Properties.Environment.Variables.MAILROOM_SWEEP_EVERY_MS).toBe('5000');
    const tables = Object.values(resources(templates.Mailroom, 'AWS::DynamoDB::GlobalTable'));
    expect(tables.map((table) => table.DeletionPolicy)).toEqual(['Delete']);
    const buses = Object.values(resources(templates.Mailroom, 'AWS::Events::EventBus'));
    expect(buses.map((bus) => bus.DeletionPolicy)).toEqual(['Delete']);
  });

  test('local has no archive, which its engine does not support, and allows every stack to be deleted', () => {
    const { app, templates } = synthStage('local');
    expect(resources(templates.Mailroom, 'AWS::Events::Archive')).toEqual({});
    const stacks = app.node.children.filter(Stack.isStack);
    expect(stacks.filter((stack) => stack.terminationProtection)).toEqual([]);
  });

  test.each(['local', 'prod'] as const)('make the same templates every time: %s', (name) => {
    const [first, second] = [synthStage(name), synthStageAnew(name)].map(({ templates }) =>
      STACKS.map((stack) => templates[stack].toJSON()),
    );
    expect(second).toEqual(first);
  });
});

/** The environments of all functions. */
function functionsOf(templates: readonly Template[]): Record<string, string>[] {
  return templates.flatMap((template) =>
    Object.values(resources(template, 'AWS::Lambda::Function')).map(
      (fn) => fn.Properties.Environment.Variables,
    ),
  );
}

function isTlsOnly(statement: {
  readonly Effect: string;
  readonly Action: unknown;
  readonly Condition?: unknown;
}): boolean {
  const insecure = JSON.stringify({ Bool: { 'aws:SecureTransport': 'false' } });
  return (
    statement.Effect === 'Deny' &&
    statement.Action === 'sqs:*' &&
    JSON.stringify(statement.Condition) === insecure
  );
}

function isKept({ DeletionPolicy, UpdateReplacePolicy }: Resource): boolean {
  return [DeletionPolicy, UpdateReplacePolicy].every((policy) => policy?.startsWith('Retain'));
}
