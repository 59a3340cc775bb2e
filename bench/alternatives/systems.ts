import { composedSystem } from './composed-system.ts';
import { direct, plainConsumer } from './direct.ts';
import { powertoolsInbox } from './powertools-inbox.ts';
import { statusIndex } from './status-index.ts';
import { streamOnly } from './stream-only.ts';
import type { System } from './system.ts';
import { transactionalInbox } from './transactional-inbox.ts';
import { twoTable } from './two-table.ts';

/** The systems measured next to Mailroom. Systems with the same inbox show the difference between outboxes, and vice versa. */
export const ALTERNATIVES: readonly System[] = [
  composedSystem('direct', direct, plainConsumer),
  composedSystem('stream-only+transactional-inbox', streamOnly, transactionalInbox),
  composedSystem('two-table+transactional-inbox', twoTable, transactionalInbox),
  composedSystem('status-index+powertools', statusIndex, powertoolsInbox),
  composedSystem('status-index+transactional-inbox', statusIndex, transactionalInbox),
];
