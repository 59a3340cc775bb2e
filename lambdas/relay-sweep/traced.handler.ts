import { openTelemetry } from '../runtime/opentelemetry.ts';
import { sweepRelay } from './sweep-relay.ts';

/** The sweep relay with OpenTelemetry's spans. */
export const handler = sweepRelay(openTelemetry());
