import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { checkBodies } from '../../deployment/invoke.ts';
import { readSweepState } from '../../deployment/rows-reader.ts';
import { EXIT } from '../../terminal/io.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { time } from '../../terminal/times.ts';
import { type WindowOptions, windowAround } from '../../terminal/window.ts';
import type { JudgeDeps } from '../dead-letters/redrive-plan.ts';
import { orderReader } from '../order/order-of-aggregate.ts';
import { readPassedOver } from '../order/passed-over.ts';
import { verdictOf } from './chain-verdict.ts';
import { readClaimWarnings } from './claim-warnings.ts';
import { type ContextAt, isActionRequired, type WhyContext } from './event-state.ts';
import { executionReports, executionTexts } from './execution-words.ts';
import { findTrace } from './find-trace.ts';
import { readMessageOrders } from './message-orders.ts';
import { hasSuperseded } from './order-verdict.ts';
import { checkRedrive } from './redrive-check.ts';
import type { Trace } from './trace.ts';
import {
  effectReports,
  eventReports,
  payloadsOf,
  subjectReport,
  traceText,
  verdictText,
} from './trace-text.ts';
import { checkWiring, seenFrom } from './wiring-check.ts';

interface WhyOptions extends Partial<WindowOptions> {
  readonly id: string;
  readonly story?: boolean;
  readonly payload?: boolean;
}

/** The events that an id selects, their problems, and the remedies. */
export async function why(deployment: Deployment, options: WhyOptions) {
  const { id, story, payload = false } = options;
  const { clock, neighbors = [] } = deployment;
  const trace = await findTrace(deployment, id, windowAround({ since: HOUR_MS, ...options }, clock.now()));
  const involved = new Set(
    trace.events.flatMap(({ elsewhere, messages }) => [
      elsewhere,
      ...messages.map(({ consumer }) => consumer.elsewhere?.table),
    ]),
  );
  const rooms = neighbors.filter(({ table }) => involved.has(table.name));
  const own = await contextOf(deployment, trace);
  const others = new Map<string | undefined, WhyContext>();
  for (const room of rooms) others.set(room.table.name, await contextOf(room, trace, room.table.name));
  const contextAt: ContextAt = (table) => others.get(table) ?? own;
  const check: JudgeDeps['check'] = (consumer, bodies) =>
    checkBodies(deployment.clients.lambda, consumer, bodies);
  const first = verdictOf(trace, contextAt);
  const judged = trace.events
    .flatMap(({ messages }) => messages)
    .find(({ consumer }) => consumer.name === first.consumer);
  const room = rooms.find(({ table }) => table.name === judged?.consumer.elsewhere?.table) ?? deployment;
  const { stored } = room;
  const redrive = await checkRedrive({ stored, check, now: own.now }, trace, first);
  const verdict = verdictOf(trace, (table) => ({ ...contextAt(table), redrive }));
  const payloads = payload ? payloadsOf(trace) : [];
  const json = {
    verdict: {
      ...{ ...verdict, consumer: verdict.consumer ?? null, delay: verdict.delay ?? null },
      ...subjectReport(trace, verdict, redrive),
    },
    events: eventReports(trace, payload),
    more: trace.more,
    searchedTo: trace.searched?.until ?? null,
    ...effectReports(trace, own.now),
    executions: executionReports(trace),
  };
  return reportOf(
    json,
    { verdict, trace, payloads },
    (seen) =>
      [
        verdictText(seen.verdict),
        ...executionTexts(seen.trace),
        ...searchedText(seen.trace),
        ...(story || payload ? [traceText(seen.trace, seen.payloads)] : []),
      ].join('\n\n'),
    isActionRequired(verdict) ? EXIT.attention : EXIT.ok,
  );
}

/** The context of one Mailroom's part of a trace. @param seenAs - the table of one that is not the selected one */
async function contextOf(
  deployment: Omit<Deployment, 'neighbors'>,
  trace: Trace,
  seenAs?: string,
): Promise<WhyContext> {
  const { clock, commandLine, awsLine, table, directory } = deployment;
  const now = clock.now();
  const seen = seenFrom(trace, seenAs);
  const wiring = await checkWiring(deployment, seen, now);
  return {
    now,
    commandLine,
    awsLine,
    tableName: table.name,
    sweptShards: (await readSweepState(directory, table)).shards.length,
    sources: directory.mailroom.sources,
    wiring,
    looks: await readClaimWarnings(deployment, seen, wiring, now),
    passedOver: hasSuperseded(seen) ? await readPassedOver(deployment, now) : undefined,
    orders: await readMessageOrders(orderReader({ ...deployment, now }), seen, now),
  };
}

/** A search reads as far ahead as back, and says what it leaves out. */
function searchedText({ searched }: Trace): string[] {
  if (searched === undefined) return [];
  return [
    prose(paint.dim(`Scheduled events due after ${time(searched.until)} were not searched (--since).`)),
  ];
}
