import { openTelemetry } from '../runtime/opentelemetry.ts';
import { streamRelay } from './stream-relay.ts';

/** The stream relay with OpenTelemetry's spans. */
export const handler = streamRelay(openTelemetry());
