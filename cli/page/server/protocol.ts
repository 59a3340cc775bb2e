import type { resendJson } from '../../changes/resend/resend-report.ts';
import type { NeighborStatus } from '../../reports/status/bus-status.ts';
import type { statusJson } from '../../reports/status/status-text.ts';
import type { FollowedEvent } from '../../reports/tail/event-follower.ts';
import type { ProgressReached } from '../../terminal/terminal.ts';
import type { Refusal } from './quiet-run.ts';
import type { ReadingDocuments } from './readings.ts';

/**
 * The documents between `mailroom ui` and its page, and nothing else: types only, because both sides import this file. Times are
 * epoch milliseconds; absent values are `null`.
 *
 * | request | response |
 * | --- | --- |
 * | `POST /api/key` {@link KeyRequest} | {@link KeyResponse}: the only request without `Authorization: Bearer <key>` |
 * | `GET /api/mailroom` | {@link MailroomInfo} |
 * | `GET /api/live` | server-sent events, each a {@link LiveMessage}; the poller runs while a stream is open |
 * | `GET /api/readings/<name>?…` | {@link Reading}; the parameters are those of `ReadingParameters` |
 * | `POST /api/plans` {@link PlanRequest} | {@link Plan} |
 * | `POST /api/plans/<id>/apply` {@link ApplyRequest} | {@link Run} |
 * | `POST /api/runs/<id>/stop` | {@link Run} |
 * | `POST /api/demo/faults/<name>/{break,repair}`, `POST /api/demo/{end,start}` | {@link DemoState}; only while `npm run demo -- --ui` runs |
 *
 * A refused request has status 4xx and a {@link Refusal}.
 */

/** The one-time token of the redirect file, which opens `http://127.0.0.1:<port>/#token=<token>`. A fragment is never sent. */
export interface KeyRequest {
  readonly token: string;
}

export interface KeyResponse {
  /** Lives in the tab's memory. */
  readonly key: string;
}

/** Facts that do not change while the page is open. */
export interface MailroomInfo {
  readonly stack: string;
  readonly region: string;
  readonly account: string;
  readonly isLocal: boolean;
  /** Started with `--allow-changes`. */
  readonly allowsChanges: boolean;
  /** Started with `--payload`: without it no data of an event is sent to the page. */
  readonly showsPayloads: boolean;
  readonly consumers: readonly ConsumerInfo[];
  /** The names of the dead-letter sources. */
  readonly sources: readonly string[];
  /** Started by `npm run demo -- --ui`. */
  readonly isDemo: boolean;
}

export interface ConsumerInfo {
  readonly name: string;
  /** `<type> of <source>`, as `describe` prints them. */
  readonly events: readonly string[];
  /** The target of a bridge; `null` for another consumer. */
  readonly forwardsTo: string | null;
}

/** A message of the live stream. Each `flow` replaces the one before. */
export type LiveMessage =
  | { readonly kind: 'flow'; readonly flow: Flow }
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'demo'; readonly demo: DemoState };

/** Everything that moves, waits or is stuck. */
export interface Flow {
  readonly at: number;
  /** The document of `mailroom status --json`, read by the same code; `null` before the first reading. */
  readonly status: StatusDocument | null;
  /** The other Mailrooms on the bus, read with the status; absent without one, and before the first reading. */
  readonly neighbors?: readonly NeighborStatus[] | undefined;
  /** Events committed per second in each of the last 30 intervals of 2 seconds, oldest first. */
  readonly committedPerS: readonly number[];
  /** Messages processed per second by each consumer, among the events that are followed. */
  readonly processedPerS: Readonly<Record<string, readonly number[]>>;
  /** Depths of each consumer's queue; fresher than `status`. `null`: the queue does not exist or could not be read. */
  readonly queues: Readonly<Record<string, QueueNow | null>>;
  /** The newest events, newest first: at most 50, each with the state of its message at each consumer. */
  readonly events: readonly FlowEvent[];
  /** They were searched for back to here; `null` before the first reading. */
  readonly eventsSince: number | null;
  /** True if events were left out, because more than 100 were committed per second. */
  readonly isSample: boolean;
  /** Parts that could not be read, with the reason and the remedy; the rest of the flow is current. */
  readonly unread: readonly { readonly part: string; readonly message: string }[];
}

export interface QueueNow {
  readonly queued: number;
  readonly inFlight: number;
  /** Less or more than a minute ago. */
  readonly trend: 'falling' | 'level' | 'rising';
}

export type FlowEvent = FollowedEvent;

/** The document of `mailroom status --json`. See docs/cli-json.md. */
export type StatusDocument = ReturnType<typeof statusJson>;

/** Asks for a plan. The server makes it, keeps it for two minutes, and applies exactly it. */
export type PlanRequest =
  | ({ readonly kind: 'redrive' } & DeadLettersRequest)
  | ({ readonly kind: 'discard' } & DeadLettersRequest & DiscardChoice)
  | {
      /** Sends a dead letter's event with other data to its consumer, as a new event that names its cause. */
      readonly kind: 'resend';
      readonly source: string;
      readonly id: string;
      /** The new data of the event, JSON. */
      readonly data: unknown;
    }
  | { readonly kind: 'repair'; readonly since: string };

/** The dead letters of a plan: those of the source by id or by cause, or all. */
interface DeadLettersRequest {
  readonly source: string;
  readonly ids?: readonly string[];
  readonly cause?: string;
}

/** The options of a discard. */
export interface DiscardChoice {
  /** The handler's `rejected` function commits its events with the discard. @default false */
  readonly reject?: boolean;
  /** The operator has asked the providers of the side effects. Without it, messages with effects to check stay. @default false */
  readonly effectsChecked?: boolean;
}

/** The document of each kind of change: of its plan, and of its run. */
export interface PlanDocuments {
  readonly redrive: ReadingDocuments['redrive-plan'];
  readonly discard: ReadingDocuments['discard-plan'];
  readonly resend: ReturnType<typeof resendJson>;
  readonly repair: ReadingDocuments['audit'];
}

/** The kind of a change, and its document. */
export type PlanDocument = {
  readonly [Kind in keyof PlanDocuments]: { readonly kind: Kind; readonly document: PlanDocuments[Kind] };
}[keyof PlanDocuments];

/** A plan: its document is what the command prints without `--apply`. */
export type Plan = PlanDocument & {
  readonly id: string;
  /** The command that makes the same change in a terminal. */
  readonly command: string;
  readonly expiresAt: number;
  /** The number of dead letters or events that it changes. */
  readonly count: number;
  /** The text to type: the count for a redrive or repair, the stack's name for a discard, the consumer's for a resend. */
  readonly confirmation: string;
  /** The side effects that the operator must check before a discard, each as a sentence with its idempotency key. */
  readonly effects: readonly string[];
};

export interface ApplyRequest {
  readonly reason: string;
  readonly confirmation: string;
}

/** A change that is being made, or was made since the page's server started. */
export interface Run {
  readonly id: string;
  readonly kind: PlanRequest['kind'];
  readonly command: string;
  readonly state: 'running' | 'done' | 'stopped' | 'failed';
  readonly startedAt: number;
  /** The last line of progress, e.g. `Step 2 of 3: 4 of 10 redriven`. */
  readonly progress: string;
  /** The numbers in its lines of progress so far. */
  readonly reached: ProgressReached;
  /** The document of `--json` once it is over; `null` before, and if it failed. */
  readonly document: PlanDocuments[keyof PlanDocuments] | null;
  /** Why it failed; `null` otherwise. */
  readonly error: Refusal | null;
  readonly exitCode: number | null;
  readonly notes: readonly string[];
}

/** The run of the demo, the faults that it can make on its own engine, and the receipt. */
export interface DemoState {
  readonly faults: readonly DemoFault[];
  /** `waiting` for the first tab; `settling` from the last order to the receipt. */
  readonly phase: 'waiting' | 'ordering' | 'settling' | 'over';
  readonly placed: number;
  /** The number of orders after which the run ends; `null` if it ends at `endsAt`. */
  readonly orders: number | null;
  /** When the run stops placing orders unless it is ended before; `null` if it ends after `orders`, or has not begun. */
  readonly endsAt: number | null;
  /** The result of the run once it is over. */
  readonly receipt: DemoReceipt | null;
}

/** The counts of a run of the demo. */
export interface DemoCounts {
  /** Orders in the table. */
  readonly orders: number;
  /** Orders that ended `confirmed`. */
  readonly confirmed: number;
  /** Orders that ended `cancelled`: those for sold-out goods, one whose payment was rejected, and one that expired. */
  readonly cancelled: number;
  /** Orders that ended `cancelled` because they were not paid in time. */
  readonly expired: number;
  /** Scheduled expiries of orders. */
  readonly scheduled: number;
  /** Scheduled expiries that a payment, or another end of it, has cancelled. */
  readonly timersCancelled: number;
  /** Events with status PUBLISHED in the outbox. */
  readonly eventsPublished: number;
  /** Messages with status PROCESSED, by consumer. */
  readonly processed: Readonly<Record<string, number>>;
  /** Messages with status DISCARDED: the payment that the bank refuses permanently, which an operator's command has rejected. */
  readonly rejected: number;
  /** Messages of order-status that a later report of the same service had superseded: their handlers did not run. */
  readonly superseded: number;
  /** Requests and messages sent a second time. */
  readonly duplicatesSent: number;
  /** Duplicates without a trace: still one order, one resulting event, one charge. */
  readonly duplicatesAbsorbed: number;
  /** Charges at the bank. */
  readonly charges: number;
  /** Refunds at the bank, for orders that were cancelled after being charged. */
  readonly refunds: number;
  /** Charges of an order after its first. */
  readonly doubleCharges: number;
  /** Orders for goods in stock that were never charged. */
  readonly missingCharges: number;
  /** E-mails sent. */
  readonly emails: number;
}

/** The result of a run: members of the document of `npm run demo -- --json`. */
export interface DemoReceipt extends DemoCounts {
  /** E.g. `Nothing lost, nothing duplicated`. */
  readonly headline: string;
  /** Empty if nothing was lost or duplicated; otherwise the worst first. */
  readonly problems: readonly string[];
  /** The messages at the target of the bridge. Absent: the demo runs none. */
  readonly bridge?: {
    readonly target: string;
    readonly sent: number;
    readonly received: number;
    readonly distinct: number;
    readonly lost: number;
  };
  readonly commitToPublishedMs: DemoLatency;
  readonly commitToProcessedMs: DemoLatency;
  readonly commitToChargedMs: DemoLatency;
  /** Counts in each second, from the first order on. All lists have the same length. */
  readonly perSecond: {
    readonly placed: readonly number[];
    readonly published: readonly number[];
    readonly processed: readonly number[];
  };
}

/** Percentiles, milliseconds. */
interface DemoLatency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

export interface DemoFault {
  readonly name: 'bank-down' | 'rule-off' | 'queue-purged' | 'worker-killed';
  /** Its effect, e.g. `The bank answers every charge with 503`. */
  readonly text: string;
  readonly state: 'whole' | 'broken' | 'repairing';
  /** Why it could not be made or repaired the last time; `null` unless that failed. */
  readonly error: string | null;
  /** The command that repairs it, which `repair` runs; empty while the fault is being made and the command is not known. */
  readonly repair: string;
}
