import { INBOX_PREFIX, LAST_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import { EXPIRES_AT } from '../../../lambdas/runtime/store/row-expiry.ts';
import { type AsyncProblems, type CheckDeps, check, type PartCheck } from './check.ts';
import { matchesAny, statementsOf } from './resource-policy.ts';

/** The checks of the table's stream and of its rows' expiry. */
export function tableChecks(deps: CheckDeps): PartCheck[] {
  const { mailroom } = deps.directory;
  return [
    check('table', 'flow', () => noStream(deps), mailroom),
    check('table', 'settings', () => streamImages(deps), mailroom),
    check('table', 'settings', () => noExpiry(deps), mailroom),
  ];
}

/** The checks of the table's policy and of its protection. */
export function tableSurroundingsChecks(deps: CheckDeps): PartCheck[] {
  const { mailroom } = deps.directory;
  return [
    check('table', 'surroundings', () => openPolicy(deps), mailroom),
    check('table', 'surroundings', () => noProtection(deps), mailroom),
  ];
}

async function* noStream({ directory, resources }: CheckDeps): AsyncProblems {
  if ((await resources.table()).streamArn !== undefined) return;
  const text = `the stream of the table ${directory.mailroom.table} is off: the stream relay publishes nothing`;
  yield { problem: 'stream-off', text };
}

/** Images of a stream that contain the new row. */
const WITH_NEW_IMAGE = /^NEW_/;

async function* streamImages({ resources }: CheckDeps): AsyncProblems {
  const { streamView } = await resources.table();
  if (streamView === undefined || WITH_NEW_IMAGE.test(streamView)) return; // without a stream: `stream-off`
  const text = `the stream of the table holds ${streamView} instead of NEW_IMAGE: the stream relay cannot read events, and each waits for the sweep`;
  yield { problem: 'stream-view', text };
}

async function* noExpiry({ directory, resources }: CheckDeps): AsyncProblems {
  if ((await resources.expiryAttribute()) === EXPIRES_AT) return;
  const { table } = directory.mailroom;
  const text = `TTL of the table ${table} is off: no row expires, and the table grows and costs more every day`;
  const on = ['--time-to-live-specification', `Enabled=true,AttributeName=${EXPIRES_AT}`];
  yield { problem: 'ttl-off', text, fix: onTable('update-time-to-live', table, ...on) };
}

/** Actions that remove or replace a row: see `lib/mailroom/mailroom-table.ts`. */
const REPLACING = ['BatchWriteItem', 'DeleteItem', 'PartiQLDelete', 'PartiQLInsert', 'PutItem'];

async function* openPolicy({ directory, resources }: CheckDeps): AsyncProblems {
  const isOrdered = directory.consumers.some(({ order }) => order !== undefined);
  const kinds = isOrdered ? [INBOX_PREFIX, LAST_PREFIX] : [INBOX_PREFIX];
  const statements = statementsOf(await resources.tablePolicy());
  const kept = (kind: string) =>
    statements
      .filter(({ effect, conditions }) => {
        const keys = conditions.get('dynamodb:LeadingKeys') ?? [];
        return effect === 'Deny' && matchesAny(keys, `${kind}any`);
      })
      .flatMap(({ actions }) => actions);
  const open = REPLACING.filter((action) =>
    kinds.some((kind) => !matchesAny(kept(kind), `dynamodb:${action}`)),
  );
  if (open.length === 0) return;
  const text = `the table's policy does not deny ${open.join(', ')} on ${isOrdered ? 'inbox rows and last sequences' : 'inbox rows'}: an event whose inbox row is deleted or replaced can be processed twice`;
  yield { problem: 'table-policy', text };
}

/** The constructs turn on both, or neither on a stage with disposable data, so a table without either may be as declared. */
async function* noProtection({ directory, resources }: CheckDeps): AsyncProblems {
  const { table } = directory.mailroom;
  const [{ isProtected }, hasRecovery] = await Promise.all([resources.table(), resources.hasRecovery()]);
  if (hasRecovery && !isProtected) {
    const text = `deletion protection of the table ${table} is off: one call deletes every event and inbox row`;
    const fix = onTable('update-table', table, '--deletion-protection-enabled');
    yield { problem: 'deletion-protection', text, fix };
  }
  if (isProtected && !hasRecovery) {
    const text = `point-in-time recovery of the table ${table} is off: rows that are deleted or overwritten by mistake cannot be restored`;
    const on = ['--point-in-time-recovery-specification', 'PointInTimeRecoveryEnabled=true'];
    yield { problem: 'recovery-off', text, fix: onTable('update-continuous-backups', table, ...on) };
  }
}

function onTable(command: string, table: string, ...options: readonly string[]): string[] {
  return ['aws', 'dynamodb', command, '--table-name', table, ...options];
}
