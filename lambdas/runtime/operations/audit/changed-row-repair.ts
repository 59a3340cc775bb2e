import pMap from 'p-map';
import { systemClock } from '../../base/clock.ts';
import { DATABASE_NAMES } from '../../base/database-engine.ts';
import { errorCode, errorMessage } from '../../base/errors.ts';
import { inboxState } from '../../inbox/inbox-state.ts';
import { listRejected } from '../../store/dynamo/inbox-operator.ts';
import { makeDue } from '../../store/dynamo/outbox-operator.ts';
import { type Note, type OperationDeps, recordOperation } from '../../store/operation-record.ts';
import { isUnreadable } from '../../store/stored-rows.ts';
import type { Directory } from '../directory.ts';
import { dynamoInboxRow } from '../inbox-rows.ts';
import { dynamoOutboxRows } from '../outbox-rows.ts';
import { publishWait } from '../publish-wait.ts';
import type { ChangedRow } from './audit-changed-rows.ts';

/** Dependencies of {@link repairChangedRows}. */
export interface ChangedRowDeps extends OperationDeps {
  readonly directory: Pick<Directory, 'mailroom'>;
}

/** A changed row that is left as it is, and the reason. */
type UnrepairedRow = ChangedRow & { readonly why: string };

/** The repairs of changed rows, planned or made, and the rows that are left. */
export interface ChangedRowRepair {
  readonly repaired: readonly ChangedRow[];
  readonly unrepaired: readonly UnrepairedRow[];
}

/** The maximum number of rows that are repaired at a time. */
const AT_ONCE = 8;

const CHANGED_SINCE = 'it has changed since the audit read it';

/** Checks which changed rows a repair could put right. It changes nothing. */
export function planChangedRows(
  { clockIsTrusted = true }: Pick<OperationDeps, 'clockIsTrusted'>,
  rows: readonly ChangedRow[],
): ChangedRowRepair {
  const judged = rows.map((row) => ({ row, why: unrepairable(row, clockIsTrusted) }));
  return {
    repaired: judged.flatMap(({ row, why }) => (why === undefined ? [row] : [])),
    unrepaired: judged.flatMap(({ row, why }) => (why === undefined ? [] : [{ ...row, why }])),
  };
}

/**
 * Puts changed rows right, each by the one repair of its kind: an event becomes due in a minute, and a rejected message is listed. Each is decided by
 * the row as it is then, and written only if the row is still as it was read: a change in between wins. The repair is recorded first. A
 * failure of one row does not stop the others, and is its reason.
 *
 * @param rows - the findings of an audit: `report.changedRows`
 */
export async function repairChangedRows(
  deps: ChangedRowDeps,
  rows: readonly ChangedRow[],
  note: Note,
  command = 'audit --repair',
): Promise<ChangedRowRepair> {
  const plan = planChangedRows(deps, rows);
  const repairs = await pMap(
    plan.repaired,
    async (row) => {
      const { eventId, kind, consumer } = row;
      try {
        const subject = `${consumer === null ? 'outbox' : consumer}: ${kind} ${eventId}`;
        await recordOperation(deps, { ...note, command, subject });
        return { row, why: (await repairChangedRow(deps, row)) ? undefined : CHANGED_SINCE };
      } catch (error) {
        return { row, why: `it could not be changed: ${errorCode(error)}: ${errorMessage(error)}` };
      }
    },
    { concurrency: AT_ONCE },
  );
  const repaired = repairs.flatMap(({ row, why }) => (why === undefined ? [row] : []));
  const left = repairs.flatMap(({ row, why }) => (why === undefined ? [] : [{ ...row, why }]));
  return { repaired, unrepaired: [...plan.unrepaired, ...left] };
}

/** Puts one row right. @returns `false` if it is not, or no longer, as the audit has found it; nothing was changed */
export function repairChangedRow(
  deps: ChangedRowDeps,
  { eventId, consumer, kind }: Pick<ChangedRow, 'eventId' | 'consumer' | 'kind'>,
): Promise<boolean> {
  return consumer === null ? repairEvent(deps, eventId, kind) : repairMessage(deps, consumer, eventId);
}

async function repairEvent(
  deps: ChangedRowDeps,
  eventId: string,
  kind: ChangedRow['kind'],
): Promise<boolean> {
  const { table, clock = systemClock, directory } = deps;
  const row = await dynamoOutboxRows(table).byId(eventId, true);
  if (row === undefined || isUnreadable(row) || row.status !== 'PENDING') return false;
  const { sources } = directory.mailroom;
  if (publishWait(row, { now: clock.now(), sources }).because !== kind) return false;
  return makeDue(deps, eventId, row);
}

async function repairMessage(deps: ChangedRowDeps, consumer: string, eventId: string): Promise<boolean> {
  const { table, clock = systemClock } = deps;
  const state = inboxState(await dynamoInboxRow(table).byEvent(consumer, eventId, true), clock.now());
  return state.is === 'rejected' && (await listRejected(deps, { consumer, eventId }, state.row));
}

function unrepairable({ store, kind }: ChangedRow, clockIsTrusted: boolean): string | undefined {
  if (store !== null) return `its row is in ${DATABASE_NAMES[store]}: \`why\` has the statement`;
  if (kind !== 'unlisted' && !clockIsTrusted)
    return "no answer of AWS had a date, and by this machine's clock a lease that a relay holds may look too long";
  return undefined;
}
