import type { ChangedRow } from '../../../lambdas/runtime/operations/audit/audit-changed-rows.ts';
import { time } from '../../terminal/times.ts';

/** Says what is wrong with a changed row, in the command and on its page. */
export function changedWords({ kind, until, consumer }: ChangedRow): string {
  const at = until === null ? '?' : time(until);
  switch (kind) {
    case 'held':
      return `leased until ${at}; no relay leases an event for that long`;
    case 'ahead':
      return `dated ${at}; the sweep reads its minute then`;
    case 'too-late':
      return `due ${at}; no event can be scheduled that far ahead`;
    case 'unlisted':
      return `rejected by ${consumer}, but not listed as such`;
  }
}
