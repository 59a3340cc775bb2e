import { type Directory, deployWords } from '../../../lambdas/runtime/operations/directory.ts';
import { INBOX_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import { EXPIRES_AT } from '../../../lambdas/runtime/store/rows.ts';
import type { PartProblem } from '../status/part-checks.ts';
import type { DeployedResources, DeployedTable } from './deployed-resources.ts';
import { matchesAny, statementsOf } from './resource-policy.ts';

/** A problem of the table. */
export type TableProblem = PartProblem<
  'ttl-off' | 'stream-view' | 'table-policy' | 'deletion-protection' | 'recovery-off'
>;

const part = 'table';

/** Images of a stream that contain the new row. */
const WITH_NEW_IMAGE = /^NEW_/;

/** A table whose rows never expire. */
export async function expiryProblems(
  resources: DeployedResources,
  { table }: Directory['mailroom'],
): Promise<TableProblem[]> {
  if ((await resources.expiryAttribute()) === EXPIRES_AT) return [];
  const text = `TTL of the table ${table} is off: no row expires, and the table grows and costs more every day`;
  const specification = `Enabled=true,AttributeName=${EXPIRES_AT}`;
  const fix = ['aws', 'dynamodb', 'update-time-to-live', '--table-name', table];
  return [{ part, problem: 'ttl-off', text, fix: [...fix, '--time-to-live-specification', specification] }];
}

/** A stream whose records do not contain the event. */
export async function streamViewProblems(
  table: () => Promise<DeployedTable>,
  mailroom: Directory['mailroom'],
): Promise<TableProblem[]> {
  const { streamView } = await table();
  if (streamView === undefined || WITH_NEW_IMAGE.test(streamView)) return []; // without a stream: `stream-off`
  const text = `the stream of the table holds ${streamView} instead of NEW_IMAGE: the stream relay cannot read events, and each waits for the sweep`;
  return [{ part, problem: 'stream-view', text, fix: deployWords(mailroom) }];
}

/** Actions that remove or replace a row: see `lib/mailroom/mailroom-table.ts`. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

/** A table whose policy does not keep inbox rows. */
export async function tablePolicyProblems(
  resources: DeployedResources,
  mailroom: Directory['mailroom'],
): Promise<TableProblem[]> {
  const kept = statementsOf(await resources.tablePolicy())
    .filter(({ effect, conditions }) => {
      const keys = conditions.get('dynamodb:LeadingKeys') ?? [];
      return effect === 'Deny' && matchesAny(keys, `${INBOX_PREFIX}any`);
    })
    .flatMap(({ actions }) => actions);
  const open = REPLACING.filter((action) => !matchesAny(kept, `dynamodb:${action}`));
  if (open.length === 0) return [];
  const text = `the table's policy does not deny ${open.join(', ')} on inbox rows: an event whose inbox row is deleted or replaced can be processed twice`;
  return [{ part, problem: 'table-policy', text, fix: deployWords(mailroom) }];
}

/**
 * A table with deletion protection or point-in-time recovery, but not both. The constructs turn on both, or neither on a stage with
 * disposable data, so a table without either may be as declared.
 */
export async function protectionProblems(
  resources: DeployedResources,
  table: () => Promise<DeployedTable>,
  { table: name }: Directory['mailroom'],
): Promise<TableProblem[]> {
  const [{ isProtected }, hasRecovery] = await Promise.all([table(), resources.hasRecovery()]);
  if (isProtected === hasRecovery) return [];
  if (hasRecovery) {
    const text = `deletion protection of the table ${name} is off: one call deletes every event and inbox row`;
    const fix = ['aws', 'dynamodb', 'update-table', '--table-name', name, '--deletion-protection-enabled'];
    return [{ part, problem: 'deletion-protection', text, fix }];
  }
  const text = `point-in-time recovery of the table ${name} is off: rows that are deleted or overwritten by mistake cannot be restored`;
  const specification = 'PointInTimeRecoveryEnabled=true';
  const fix = ['aws', 'dynamodb', 'update-continuous-backups', '--table-name', name];
  return [
    {
      part,
      problem: 'recovery-off',
      text,
      fix: [...fix, '--point-in-time-recovery-specification', specification],
    },
  ];
}
