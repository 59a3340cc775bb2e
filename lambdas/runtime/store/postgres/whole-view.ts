import { MailroomError } from '../../base/errors.ts';
import { checkedView } from '../sql/checked-view.ts';
import type { Sql } from './sql.ts';
import { readOneRow } from './sql-rows.ts';

/** The roles whose policies show every row of the queue, if the login has a row in `mailroom.login`, too. */
export type WholeRole = 'relay' | 'auditor' | 'operator';

/**
 * True if row-level security hides no row of the queue from this login. Without it, a login that is a member of the role, but that was granted
 * nothing in this database, reads an empty queue: it would neither publish anything nor fail.
 */
export function seesAll(...roles: readonly WholeRole[]): string {
  const admitted = roles.map(
    (role) =>
      `(l.role = '${role}'::text AND pg_catalog.pg_has_role('mailroom_${role}'::name, 'USAGE'::text))`,
  );
  return `(NOT pg_catalog.row_security_active('mailroom.pending'::text) OR EXISTS (
    SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND (${admitted.join(' OR ')})))`;
}

/** @throws `ACCESS_DENIED` */
export function refuseBlind(isWhole: boolean, role: WholeRole): void {
  if (isWhole) return;
  throw new MailroomError(
    'ACCESS_DENIED',
    `Row-level security hides events from this login, which has no role ${role} in this database. A grant in another database, to a group, or by \`GRANT\` alone shows no row. ` +
      `As the owner of the schema, run \`npx cdk-mailroom postgres grant <login> --role ${role}\` with the name that \`SELECT current_user\` shows.`,
  );
}

/**
 * Returns an {@link Sql} whose first query finds out whether the login sees every row. Its queries throw `ACCESS_DENIED` if it does not.
 *
 * @param role - the role that the error names
 */
export function wholeView(sql: Sql, role: WholeRole = 'operator'): Sql {
  const text = `SELECT ${seesAll('operator', 'relay', 'auditor')}::text AS whole`;
  return checkedView(sql, async () => {
    const { whole } = await readOneRow(sql, text, [], { whole: 'boolean' });
    refuseBlind(whole, role);
  });
}
