import type { Outputs } from '../localstack/cdk-process.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import type { DemoBridge } from './bridge.ts';
import { bridgeCounts } from './bridge-counts.ts';
import { carriedRate } from './carried-rate.ts';
import type { DemoDatabase } from './database.ts';
import { duplicateWait } from './duplicate-wait.ts';
import { createOutdatedReport } from './outdated-report.ts';
import { createReader, type Readings } from './readings.ts';
import { progressOf, type Receipt, receiptOf } from './receipt.ts';
import { type MadeFaults, runEnd } from './run-end.ts';
import { waitText } from './run-wait.ts';
import { createShop, type OrdersCall, pause, type Resent } from './shop.ts';

/** One in this many orders, starting with the first, is for sold-out goods: it is charged, refunded and cancelled. */
const SOLD_OUT_EVERY = 10;

/** Orders per second, if the machine carries them. */
export const RATE_MAX = 10;

/** The interval at which the tables are read during the run. */
const READ_EVERY_MS = 1_000;

/** The pause after a reading, as a multiple of its time: a reading of many orders must not slow the engine down, least of all while orders are placed. */
const PAUSE_PER_READING = { placing: 9, settling: 3 };

/** The longest pause. */
const PAUSE_MAX_MS = 5_000;

/** A deployed order system, and the orders to place on it. */
export interface DemoRun {
  readonly outputs: Outputs;
  readonly endpoint: string;
  /** @default orders until `ends` */
  readonly orders?: number | undefined;
  /** Orders per second. @default what the machine carries, at most {@link RATE_MAX} */
  readonly rate?: number | undefined;
  readonly steps: Pick<StepPrinter, 'say' | 'step' | 'detail'>;
  /** Sends the requests. @default unsigned requests to `endpoint` */
  readonly call?: OrdersCall | undefined;
  /** Ends the placing of orders when it is aborted; the run then settles. @default never */
  readonly ends?: AbortSignal | undefined;
  /** Stops the run when it is aborted. @default never */
  readonly signal?: AbortSignal | undefined;
  /** Called after each order that was placed. */
  readonly onPlaced?: (() => void) | undefined;
  /** Called when no more orders are placed. */
  readonly onSettling?: (() => void) | undefined;
  /**
   * Rejects a message of payments that the bank refuses permanently, once its dead letter can be received. The second order is then of a
   * customer whom the bank does not know. @default every customer is known
   */
  readonly rejectPayment?: ((eventId: string) => Promise<void>) | undefined;
  /** The third order is not paid in time, and expires. @default every order is paid */
  readonly withLateCustomer?: boolean | undefined;
  /** The target of the bridge. @default the order system has no bridge */
  readonly bridge?: Pick<DemoBridge, 'target' | 'arrived'> | undefined;
  /** The database of the orders. @default the table */
  readonly database?: Pick<DemoDatabase, 'items'> | undefined;
  /** The faults that were made during the run, which it waits for: see {@link runEnd}. @default none */
  readonly faults?: (() => MadeFaults) | undefined;
}

/** The end of a run: its last readings, and what was sent again. */
interface Settled {
  readonly readings: Readings;
  readonly resent: readonly Resent[];
  /** The ids of the outdated reports that were published. */
  readonly outdated: readonly string[];
}

/**
 * Places the orders, and reads everything back once the run has settled. The SDK clients take the endpoint from the environment.
 *
 * @throws the reason of `signal` if it is aborted
 *
 * @example
 * ```ts
 * const receipt = await runDemo({ outputs, endpoint, orders: 20, rate: 5, steps: stepPrinter(process.stderr) });
 * ```
 */
export async function runDemo(run: DemoRun): Promise<Receipt> {
  const { outputs, endpoint, orders = Number.POSITIVE_INFINITY, rate, steps, call } = run;
  const {
    ends,
    signal,
    onPlaced,
    onSettling,
    rejectPayment,
    withLateCustomer = false,
    bridge,
    database,
  } = run;
  const runId = `demo-${Date.now().toString(36)}`;
  const reader = createReader(outputs, database?.items);
  // In PostgreSQL, the order's own row ignores an outdated report, so no inbox row tells.
  const withOutdated = withLateCustomer && database === undefined;
  const reportOutdated = createOutdatedReport(outputs);
  const shop = createShop({ outputs, endpoint, runId, call });
  await shop.stockUp();
  const deadLettersBefore = await reader.deadLetters();

  steps.say(`Every ${SOLD_OUT_EVERY}th order is for sold-out goods; some requests and messages repeat.`);
  const many = Number.isFinite(orders) ? `${orders} orders` : 'orders until the run is ended';
  steps.step(`Placing ${many}, ${rate ?? `at most ${RATE_MAX}`} per second`);
  const given = { perSecond: () => rate ?? RATE_MAX, stop: async () => {} };
  const pace = rate === undefined ? carriedRate(reader.waiting, RATE_MAX) : given;
  const placing: Placing = { placed: 0, over: false, refused: false };
  // A run that fails places no further order: those of a stopped engine would be retried for minutes.
  const failed = new AbortController();
  const placement = shop
    .placeOrders(orders, {
      ratePerSecond: pace.perSecond,
      soldOutEvery: SOLD_OUT_EVERY,
      withUnknownCustomer: rejectPayment !== undefined,
      withLateCustomer,
      ...{ ends, signal: AbortSignal.any(signal === undefined ? [failed.signal] : [failed.signal, signal]) },
      onPlaced: () => {
        placing.placed += 1;
        steps.detail(`${placing.placed} placed, now ${pace.perSecond().toFixed(1)} per second`);
        onPlaced?.();
      },
    })
    .finally(async () => {
      await pace.stop();
      placing.over = true;
      onSettling?.();
      steps.step('Waiting for the last messages');
    });
  placement.catch(() => {
    placing.refused = true; // `await placement` below throws the error
  });
  const { readings, resent, outdated } = await untilSettled(run, placing, deadLettersBefore, async () => {
    const seen = await reader.read(runId);
    for (const [eventId, { status }] of rejectPayment === undefined ? [] : seen.inbox.payments) {
      if (status === 'REJECTED' && seen.deadLetters > deadLettersBefore) await rejectPayment?.(eventId);
    }
    const more = withOutdated ? await reportOutdated(seen) : [];
    return { readings: seen, resent: await shop.resendSome(seen.events), outdated: more };
  }).catch((error) => {
    failed.abort(error);
    throw error;
  });
  const repeats = await placement;
  const late = withOutdated ? { outdated } : {};
  return receiptOf(readings, {
    ...{ orders: placing.placed, repeats, resent, deadLettersBefore, ...late },
    bridge: bridge && bridgeCounts(bridge.target, readings.events, await bridge.arrived()),
  });
}

/** The state of placing the orders. */
interface Placing {
  placed: number;
  over: boolean;
  refused: boolean;
}

/** Reads until nothing is left to do, until an order is refused, or until the run is stuck. */
async function untilSettled(
  { steps, signal, faults = () => 'none' }: DemoRun,
  placing: Placing,
  deadLettersBefore: number,
  look: () => Promise<Settled>,
): Promise<Settled> {
  const resent: Resent[] = [];
  const outdated: string[] = [];
  const onlyDuplicates = duplicateWait({ steps });
  let [lastSeen, movedAt, readMs] = ['', Date.now(), 0];
  for (;;) {
    const pauses = PAUSE_PER_READING[placing.over ? 'settling' : 'placing'];
    await pause(Math.min(PAUSE_MAX_MS, Math.max(READ_EVERY_MS, pauses * readMs)));
    signal?.throwIfAborted();
    const overBefore = placing.over;
    const readAt = Date.now();
    const { readings, resent: more, outdated: reported } = await look();
    readMs = Date.now() - readAt;
    resent.push(...more);
    outdated.push(...reported);
    const progress = progressOf(readings, placing.placed);
    if (placing.over && (!overBefore || !onlyDuplicates(progress, readings.queued)))
      steps.detail(waitText(readings, progress, Date.now()));
    const made = faults();
    // A repair or a redrive after a long pause is progress, too: its effects show later.
    const seen = JSON.stringify([placing.placed, progress, readings.queued, readings.deadLetters, made]);
    if (seen !== lastSeen) [lastSeen, movedAt] = [seen, Date.now()];
    const end = runEnd({
      isAtRest: overBefore && more.length + reported.length === 0 && progress.atRest,
      quietMs: Date.now() - movedAt,
      newDeadLetters: readings.deadLetters - deadLettersBefore,
      faults: made,
    });
    if (placing.refused || end !== undefined) return { readings, resent, outdated };
  }
}
