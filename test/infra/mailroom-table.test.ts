import { Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { describe, expect, test } from 'vitest';
import { MailroomTable, type MailroomTableProps } from '../../lib/mailroom/mailroom-table.ts';
import { keysFor, statementsOf } from './policies.ts';
import { resources, synthStage, testApp } from './synth.ts';

describe('the table', () => {
  const { templates } = synthStage('prod');
  const _table = tableOf(templates.Mailroom);

  test('makes an exception for the break-glass role, wherever that is', () => {
    const breakGlassRole = Role.fromRoleArn(
      new Stack(testApp(), 'Elsewhere'),
      'Role',
      'arn:aws:iam::1:role/ops/BreakGlass',
    );
    const { template } = tableStack({ breakGlassRole });
    const [{ Condition }] = tableOf(template).Replicas[0].ResourcePolicy.PolicyDocument.Statement;
    expect(Condition).toEqual({
      'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': ['INBOX#*', 'LAST#*'] },
      ArnNotEquals: { 'aws:PrincipalArn': 'arn:aws:iam::1:role/ops/BreakGlass' },
    });
  });

  test('can be warm from its first moment', () => {
    const warm = { readUnitsPerSecond: 12_000, writeUnitsPerSecond: 8_000 };
    const { template } = tableStack({ warmThroughput: warm });
    expect(tableOf(template).WarmThroughput).toEqual({
      ReadUnitsPerSecond: 12_000,
      WriteUnitsPerSecond: 8_000,
    });
  });
});

describe('the grants of the example', () => {
  const { templates } = synthStage('prod');
  const roles = [
    [templates.Mailroom, 'MailroomRelayStreamRole'],
    [templates.Mailroom, 'MailroomRelaySweepRole'],
    [templates.Orders, 'ApiRole'],
    [templates.Orders, 'OrderStatusFunctionRole'],
    [templates.Payments, 'PaymentsFunctionRole'],
    [templates.Inventory, 'InventoryFunctionRole'],
    [templates.Notifications, 'NotificationsFunctionRole'],
  ] as const;

  test.each(roles)(
    'bind every access to rows to partition keys, which a request must name: %#',
    (template, role) => {
      const loose = statementsOf(template, role).filter(
        ({ actions, keys, mustNameKeys }) => !(keys && mustNameKeys) && actions.some(reachesRows),
      );
      expect(loose).toEqual([]);
    },
  );

  test.each(roles)(
    'let no principal delete an inbox row or an outbox row, scan, or write in bulk: %#',
    (template, role) => {
      const statements = statementsOf(template, role);
      const deletable = keysFor(statements, 'dynamodb:DeleteItem');
      expect(deletable.filter((key) => key === undefined || /^(INBOX|OUTBOX)/.test(key))).toEqual([]);
      const actions = statements.flatMap((statement) => statement.actions);
      expect(actions.filter((action) => /Scan|Batch|PartiQLDelete|PartiQLInsert|\*/.test(action))).toEqual(
        [],
      );
    },
  );
});

describe('domain keys', () => {
  test.each([
    'OUTBOX#*',
    'INBOX#payments#1',
    '*',
    'O*',
    'I?BOX#*',
    'SWEEP',
    'DEAD#0*',
    'REJECTED#*',
    'SWEEPS#*',
    'FAILED#payments',
    'OPERATIONS#*',
  ])('cannot reach rows of Mailroom itself: %s', (key) => {
    const { table, role } = tableStack();
    expect(() => table.grantDomain(role, ['ORDER#*', key])).toThrow(
      `The table Test/Table has invalid settings: domain key "${key}" matches Mailroom's own rows`,
    );
  });

  test('cannot be empty texts', () => {
    const { table, role } = tableStack();
    expect(() => table.grantDomain(role, [''])).toThrow(
      'domain key "" is empty. A domain key is a partition key',
    );
  });

  test('may be exact or open-ended, and may begin with the same character', () => {
    const { table, role } = tableStack();
    expect(() => table.grantDomain(role, ['ORDER#*', 'SETTINGS', 'I', 'DEAL#*', 'FAILURE#*'])).not.toThrow();
    expect(Annotations.fromStack(table.stack).findWarning('*', Match.anyValue())).toEqual([]);
  });

  test('warn of a prefix that lacks its wildcard', () => {
    const { table, role } = tableStack();
    table.grantDomain(role, ['PAYMENT#', 'ORDER#*']);
    const warnings = Annotations.fromStack(table.stack).findWarning('*', Match.anyValue());
    expect(warnings.map(({ entry }) => entry.data)).toEqual([
      expect.stringMatching(
        /^The domain key "PAYMENT#" of Test\/Table has no "\*", so it grants only the partition key "PAYMENT#" itself\. Use "PAYMENT#\*"/,
      ),
    ]);
  });
});

function tableStack(props?: MailroomTableProps) {
  const stack = new Stack(testApp(), 'Test');
  const table = new MailroomTable(stack, 'Table', props);
  const role = new Role(stack, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
  return {
    table,
    role,
    get template() {
      return Template.fromStack(stack);
    },
  };
}

function tableOf(template: Template) {
  const [table] = Object.values(resources(template, 'AWS::DynamoDB::GlobalTable'));
  return table?.Properties;
}

/** The stream and the table's own description have no partition keys to be bound to. */
function reachesRows(action: string): boolean {
  const keyless = /^dynamodb:(DescribeTable|DescribeStream|GetRecords|GetShardIterator|ListStreams)$/;
  return action.startsWith('dynamodb:') && !keyless.test(action);
}
