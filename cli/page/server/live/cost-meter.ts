import type { Clock } from '../../../../lambdas/runtime/base/clock.ts';
import type { Session } from '../../../deployment/session.ts';
import type { Cost } from '../protocol.ts';

/** Counts the calls of SDK clients, and what they cost. */
export interface CostMeter {
  /** The cost since the meter was created. */
  cost(): Cost;
}

/** The clients of each service, under the name that people know. */
export type MeteredClients = Readonly<Record<string, readonly MeteredClient[]>>;

/** The part of an SDK client that a meter uses. */
interface MeteredClient {
  readonly middlewareStack: {
    add(
      middleware: (next: ClientCall, context: { readonly commandName?: string }) => ClientCall,
      options: { readonly step: 'initialize'; readonly name: string },
    ): void;
    add(
      middleware: (next: ClientRequest) => ClientRequest,
      options: { readonly step: 'deserialize'; readonly priority: 'low'; readonly name: string },
    ): void;
  };
}

/** A call of the client. */
type ClientCall = (args: { readonly input: object }) => Promise<{ readonly output: unknown }>;

/** A request of a call, which may be a retry. */
type ClientRequest = (args: {
  readonly input: object;
  readonly request: unknown;
}) => Promise<{ readonly response: unknown }>;

/** The calls whose read units DynamoDB returns. */
const READS = new Set(['GetItemCommand', 'BatchGetItemCommand', 'QueryCommand', 'ScanCommand']);

/** The present rate is that of this time, milliseconds. */
const RATE_OF_MS = 5 * 60_000;

/** A page that was just opened reads everything once, which is not its rate. */
const RATE_OF_MIN_MS = 60_000;

/** The clients of a session. */
export function clientsOf(session: Session): MeteredClients {
  const { dynamo, sqs, events, lambda, lambdaReads, cloudwatch, ssm } = session;
  return {
    DynamoDB: [dynamo],
    SQS: [sqs],
    EventBridge: [events],
    Lambda: [lambda, lambdaReads],
    CloudWatch: [cloudwatch],
    SSM: [ssm],
  };
}

/**
 * Creates a meter that counts every request of these clients from now on, retries included, and the read units that DynamoDB
 * returns. Writes and invocations are counted as calls, and not priced: a reading makes none.
 *
 * @example
 * ```ts
 * const meter = createCostMeter(clientsOf(session), session.clock);
 * meter.cost().usdPerHour;
 * ```
 */
export function createCostMeter(clients: MeteredClients, clock: Clock): CostMeter {
  const since = clock.now();
  const calls: Record<string, number> = {};
  let readUnits = 0;
  let metrics = 0;
  let samples: { readonly at: number; readonly usd: number }[] = [{ at: since, usd: 0 }];

  for (const [service, group] of Object.entries(clients))
    for (const { middlewareStack } of group) {
      middlewareStack.add(
        (next) => (args) => {
          calls[service] = (calls[service] ?? 0) + 1;
          if (service === 'CloudWatch') metrics += metricsOf(args.input);
          return next(args);
        },
        // Inside of the retries.
        { step: 'deserialize', priority: 'low', name: 'mailroomCalls' },
      );
      if (service !== 'DynamoDB') continue;
      middlewareStack.add(
        (next, { commandName = '' }) =>
          async (args) => {
            if (!READS.has(commandName)) return next(args);
            const input = { ...args.input, ReturnConsumedCapacity: 'TOTAL' };
            const answer = await next({ ...args, input });
            readUnits += unitsOf(answer.output);
            return answer;
          },
        { step: 'initialize', name: 'mailroomReadUnits' },
      );
    }

  return {
    cost: () => {
      const usd =
        (readUnits * READ_PRICES.readUnitsPerMillion) / 1e6 +
        ((calls.SQS ?? 0) * READ_PRICES.queueRequestsPerMillion) / 1e6 +
        (metrics * READ_PRICES.metricsPerThousand) / 1e3;
      const now = clock.now();
      // The last one before the range is its start.
      const first = samples.findLastIndex(({ at }) => at <= now - RATE_OF_MS);
      samples = [...samples.slice(Math.max(0, first)), { at: now, usd }];
      const [start = { at: now, usd }] = samples;
      const overMs = Math.max(RATE_OF_MIN_MS, now - start.at);
      const usdPerHour = ((usd - start.usd) * 3_600_000) / overMs;
      return { since, calls: { ...calls }, readUnits, usd, usdPerHour };
    },
  };
}

function metricsOf(input: object): number {
  const { MetricDataQueries } = input as { readonly MetricDataQueries?: readonly unknown[] };
  return MetricDataQueries?.length ?? 1;
}

/** The units of a response; BatchGetItem has them for each table. */
function unitsOf(output: unknown): number {
  const { ConsumedCapacity = [] } = output as {
    readonly ConsumedCapacity?: Capacity | readonly Capacity[];
  };
  return [ConsumedCapacity].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}

type Capacity = { readonly CapacityUnits?: number };

/**
 * Prices of the calls that read a Mailroom, in US dollars: us-east-1, without free tiers and discounts. The reads of EventBridge,
 * Lambda and Systems Manager are free. `bench/assumptions.ts` has the others.
 */
export const READ_PRICES = {
  /** A million read request units, on demand (DynamoDB pricing, on-demand capacity). */
  readUnitsPerMillion: 0.125,
  /** A million requests of a standard queue, 64 KB each (SQS pricing). */
  queueRequestsPerMillion: 0.4,
  /** A thousand requests, or metrics of GetMetricData (CloudWatch pricing, APIs). */
  metricsPerThousand: 0.01,
} as const;
