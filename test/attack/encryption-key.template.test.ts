import { expect, test } from 'vitest';
import { deployedParts } from '../infra/access/deployed-parts.ts';
import { askOf, rolesOf } from '../infra/access/permissions.ts';
import { synthStage } from '../infra/synth.ts';

const parts = deployedParts(synthStage('prod').app);
const ask = askOf(parts);
const key = parts.find(({ type, stack }) => type === 'AWS::KMS::Key' && stack === 'Mailroom');
const roles = rolesOf(parts);

/** The roles that may use the key of the Mailroom so. */
async function allowed(action: string, via?: string): Promise<string[]> {
  expect(key).toBeDefined();
  const answers = await Promise.all(
    roles.map(async (role) => {
      const verdict = await ask(role, { action, resource: key?.arn ?? '', via });
      return verdict === 'allow' ? [role.name] : [];
    }),
  );
  return answers.flat();
}

test('a stolen role can decrypt on its own only if it receives or sends messages', async () => {
  expect(await allowed('kms:Decrypt')).toEqual([
    'Mailroom/MailroomRelayStreamRole',
    'Orders/OrderStatusFunctionRole',
    'Payments/PaymentsFunctionRole',
    'Inventory/InventoryFunctionRole',
    'Notifications/NotificationsFunctionRole',
  ]);
});

test('the audit, which only reads rows, cannot encrypt any', async () => {
  expect(await allowed('kms:Decrypt', 'dynamodb')).toContain('Mailroom/MailroomAuditFunctionRole');
  expect(await allowed('kms:Encrypt', 'dynamodb')).not.toContain('Mailroom/MailroomAuditFunctionRole');
});

test('no role may manage the key, or hand it on', async () => {
  for (const action of ['kms:PutKeyPolicy', 'kms:ScheduleKeyDeletion', 'kms:DisableKey', 'kms:CreateGrant'])
    expect(await allowed(action)).toEqual([]);
});

test('the bank, which is not part of the Mailroom, may not use its key', async () => {
  for (const via of [undefined, 'dynamodb', 'sqs'])
    expect((await allowed('kms:Decrypt', via)).filter((name) => name.startsWith('Bank/'))).toEqual([]);
});

test('CloudWatch may use the key of the notifications for alarms of this account and region only', () => {
  const policies = parts.filter(({ type, stack }) => type === 'AWS::KMS::Key' && stack === 'Operations');
  const statements = policies.flatMap(({ properties }) => properties.KeyPolicy.Statement);
  const ofServices = statements.filter((statement) => statement.Principal.Service !== undefined);
  expect(ofServices.map(({ Principal }) => Principal.Service)).toEqual(['cloudwatch.amazonaws.com']);
  for (const { Condition } of ofServices)
    expect(Condition).toEqual({
      StringEquals: { 'aws:SourceAccount': expect.stringMatching(/^\d{12}$/) },
      ArnLike: { 'aws:SourceArn': expect.stringMatching(/^arn:aws:cloudwatch:[\w-]+:\d{12}:alarm:\*$/) },
    });
});
