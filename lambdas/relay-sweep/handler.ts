import { sweepRelay } from './sweep-relay.ts';

/** The sweep relay: finds and publishes events that the stream relay did not publish. */
export const handler = sweepRelay();
