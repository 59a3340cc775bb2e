import { deployWords } from '../../../lambdas/runtime/operations/directory.ts';
import { INBOX_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import { EXPIRES_AT } from '../../../lambdas/runtime/store/rows.ts';
import { type CheckDeps, check, type PartCheck } from './check.ts';
import { matchesAny, statementsOf } from './resource-policy.ts';

const part = 'table';

/** Images of a stream that contain the new row. */
const WITH_NEW_IMAGE = /^NEW_/;

/** The checks of the table's stream and of its rows' expiry. */
export function tableChecks({ directory: { mailroom }, resources }: CheckDeps): PartCheck[] {
  const { table: name } = mailroom;
  return [
    check(part, 'flow', async function* () {
      if ((await resources.table()).streamArn !== undefined) return;
      const text = `the stream of the table ${name} is off: the stream relay publishes nothing`;
      yield { problem: 'stream-off', text, fix: deployWords(mailroom) };
    }),
    check(part, 'settings', async function* () {
      const { streamView } = await resources.table();
      if (streamView === undefined || WITH_NEW_IMAGE.test(streamView)) return; // without a stream: `stream-off`
      const text = `the stream of the table holds ${streamView} instead of NEW_IMAGE: the stream relay cannot read events, and each waits for the sweep`;
      yield { problem: 'stream-view', text, fix: deployWords(mailroom) };
    }),
    check(part, 'settings', async function* () {
      if ((await resources.expiryAttribute()) === EXPIRES_AT) return;
      const text = `TTL of the table ${name} is off: no row expires, and the table grows and costs more every day`;
      const specification = `Enabled=true,AttributeName=${EXPIRES_AT}`;
      const fix = onTable('update-time-to-live', name, '--time-to-live-specification', specification);
      yield { problem: 'ttl-off', text, fix };
    }),
  ];
}

/** Actions that remove or replace a row: see `lib/mailroom/mailroom-table.ts`. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

/** The checks of the table's policy and of its protection. */
export function tableSurroundingsChecks({ directory: { mailroom }, resources }: CheckDeps): PartCheck[] {
  const { table: name } = mailroom;
  return [
    check(part, 'surroundings', async function* () {
      const kept = statementsOf(await resources.tablePolicy())
        .filter(({ effect, conditions }) => {
          const keys = conditions.get('dynamodb:LeadingKeys') ?? [];
          return effect === 'Deny' && matchesAny(keys, `${INBOX_PREFIX}any`);
        })
        .flatMap(({ actions }) => actions);
      const open = REPLACING.filter((action) => !matchesAny(kept, `dynamodb:${action}`));
      if (open.length === 0) return;
      const text = `the table's policy does not deny ${open.join(', ')} on inbox rows: an event whose inbox row is deleted or replaced can be processed twice`;
      yield { problem: 'table-policy', text, fix: deployWords(mailroom) };
    }),
    check(part, 'surroundings', async function* () {
      // The constructs turn on both, or neither on a stage with disposable data, so a table without either may be as declared.
      const [{ isProtected }, hasRecovery] = await Promise.all([resources.table(), resources.hasRecovery()]);
      if (hasRecovery && !isProtected) {
        const text = `deletion protection of the table ${name} is off: one call deletes every event and inbox row`;
        const fix = onTable('update-table', name, '--deletion-protection-enabled');
        yield { problem: 'deletion-protection', text, fix };
      }
      if (isProtected && !hasRecovery) {
        const text = `point-in-time recovery of the table ${name} is off: rows that are deleted or overwritten by mistake cannot be restored`;
        const on = ['--point-in-time-recovery-specification', 'PointInTimeRecoveryEnabled=true'];
        yield { problem: 'recovery-off', text, fix: onTable('update-continuous-backups', name, ...on) };
      }
    }),
  ];
}

function onTable(command: string, table: string, ...options: readonly string[]): string[] {
  return ['aws', 'dynamodb', command, '--table-name', table, ...options];
}
