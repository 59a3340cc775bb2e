import type { InboxRules, InboxSettings } from '../../inbox/inbox.ts';
import type { Table } from '../table.ts';

/** Dependencies of one consumer's inbox. */
export interface InboxDeps extends InboxSettings {
  readonly table: Table;
}

/**
 * The inbox: it decides which worker may process a message, and records whether it is done. There is one row per message and
 * consumer; each transition is a function of this context.
 *
 *     claim            renew            renew            complete
 *       |---- lease ----|---- lease ----|---- lease ------|
 *       |------------------- endsBy: the function is stopped -------------|
 *
 * The **fence** is a random token of one claim. Renew, fail, release, reject, complete and commit are each conditional
 * on `status = PROCESSING AND fence = mine`, so a worker that lost its lease can change nothing. Time only determines when
 * another worker may try; it never decides whose write is accepted.
 */
export interface InboxContext extends InboxDeps, InboxRules {}

/** Dependencies of an operator's changes to an inbox. */
export type InboxAccess = Pick<InboxContext, 'table' | 'clock' | 'random' | 'consumer'>;

/** Creates the inbox of one consumer. */
export function createInbox(deps: InboxDeps): InboxContext {
  return { ...deps, memory: {} };
}
