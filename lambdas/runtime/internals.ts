// Parts of Mailroom's own functions, for tools that read or write the table. They may change in any release.

export { type RelayConfig, readRelayConfig } from './base/config.ts';
export type { Bus, BusEntry, BusResult } from './bus/event-bus.ts';
export { type EventBridgeBusDeps, eventBridgeBus } from './bus/eventbridge-bus.ts';
export type { InvocationContext } from './observe/telemetry.ts';
export type { RelayHandlerDeps } from './relay/relay-context.ts';
export { createRelayStream } from './relay/relay-stream.ts';
export {
  createRelaySweep,
  type DeadLetterWatch,
  type RelaySweepDeps,
  type RelaySweepHandler,
  type SweepReport,
} from './relay/relay-sweep.ts';
export type { RepublishReport, RepublishRequest } from './relay/republish.ts';
export type { SweepRange, SweepRangeReport } from './relay/sweep-range.ts';
export type { OutboxRow, OutboxStatus } from './store/outbox-row.ts';
export type { EncodedEnvelope, StoredOutboxRow } from './store/stored-envelope.ts';
