import { streamRelay } from './stream-relay.ts';

/** The stream relay: publishes new outbox rows as they arrive in the table's stream. */
export const handler = streamRelay();
