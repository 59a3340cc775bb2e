import { HEARTBEAT } from '../events/heartbeat-event.ts';
import { leased } from './handler.ts';

/**
 * Acknowledges a heartbeat. Its message is claimed and completed like any other, so the acknowledgement also proves that the function
 * can write its inbox; no handler of the consumer runs.
 */
export const acknowledgeHeartbeat = leased(HEARTBEAT, async () => {});
