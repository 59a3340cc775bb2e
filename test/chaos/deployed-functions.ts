import {
  type FunctionConfiguration,
  type LambdaClient,
  paginateListFunctions,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { SetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { CONSUMERS, type Consumer } from '../../demo/readings.ts';
import type { ExtraConsumer } from './extra-consumers.ts';
import { CONSUMER_TIMINGS, RELAY_TIMINGS } from './timings.ts';

/** The functions of the order system, by the names that scenarios use. */
export type FunctionName = 'relay-stream' | 'relay-sweep' | 'orders-api' | 'bank' | Consumer;

/**
 * Whose calls the fault proxy sees: the functions, the naive designs that are run for comparison, a scenario that pays bills, and the relay
 * of a database.
 */
export type Caller = FunctionName | ExtraConsumer | 'naive' | 'cashier' | 'database-relay';

/** The name that each function was deployed under. */
export type DeployedNames = Readonly<Record<FunctionName, string>>;

/** What {@link adaptFunctions} needs. */
export interface AdaptDeps {
  readonly lambda: LambdaClient;
  readonly sqs: SQSClient;
  /** The fault proxy's address for one caller. */
  readonly urlFor: (caller: Caller) => string;
}

/**
 * Sends every AWS call of every function through the fault proxy, and gives them the shorter timings. This is done
 * once, before any of them has run: a changed configuration ends the processes of a function.
 */
export async function adaptFunctions({ lambda, sqs, urlFor }: AdaptDeps): Promise<DeployedNames> {
  const names: Partial<Record<FunctionName, string>> = {};
  for await (const { Functions = [] } of paginateListFunctions({ client: lambda }, {})) {
    for (const found of Functions) {
      const env = found.Environment?.Variables ?? {};
      const name = nameOf(found);
      if (name === undefined) continue;
      names[name] = found.FunctionName;
      await lambda.send(
        new UpdateFunctionConfigurationCommand({
          FunctionName: found.FunctionName,
          Timeout: timeoutS(name) ?? found.Timeout,
          Environment: { Variables: adapted(env, urlFor(name)) },
        }),
      );
      const QueueUrl = env.MAILROOM_QUEUE_URL;
      const VisibilityTimeout = String(CONSUMER_TIMINGS.visibilityTimeoutS);
      if (QueueUrl) {
        await sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout } }));
      }
    }
  }
  return names as Record<FunctionName, string>;
}

function nameOf({ FunctionName = '', Environment }: FunctionConfiguration): FunctionName | undefined {
  const env = Environment?.Variables ?? {};
  const consumer = CONSUMERS.find((name) => name === env.MAILROOM_CONSUMER);
  if (consumer !== undefined) return consumer;
  if (env.BANK_TABLE) return 'bank';
  if (FunctionName.includes('RelayStream')) return 'relay-stream';
  if (FunctionName.includes('RelaySweep')) return 'relay-sweep';
  return env.MAILROOM_SERVICE === 'orders' ? 'orders-api' : undefined;
}

function timeoutS(name: FunctionName): number | undefined {
  if (name === 'relay-sweep') return RELAY_TIMINGS.sweepTimeoutS;
  return CONSUMERS.some((consumer) => consumer === name) ? CONSUMER_TIMINGS.timeoutS : undefined;
}

type Env = Readonly<Record<string, string>>;

function adapted(env: Env, proxyUrl: string): Env {
  const shorter: Env = {
    MAILROOM_BORN_LEASE_MS: String(RELAY_TIMINGS.bornLeaseMs),
    MAILROOM_CLAIM_LEASE_MS: String(RELAY_TIMINGS.claimLeaseMs),
    MAILROOM_PUBLISH_TIMEOUT_MS: String(RELAY_TIMINGS.publishTimeoutMs),
    MAILROOM_SWEEP_EVERY_MS: String(RELAY_TIMINGS.sweepEveryMs),
    MAILROOM_LEASE_MS: String(CONSUMER_TIMINGS.leaseMs),
    MAILROOM_VISIBILITY_TIMEOUT_MS: String(CONSUMER_TIMINGS.visibilityTimeoutS * 1_000),
  };
  const { NODE_OPTIONS: options = '', ...others } = env;
  const kept = Object.fromEntries(Object.entries(others).map(([key, value]) => [key, shorter[key] ?? value]));
  return { ...kept, NODE_OPTIONS: `${options} ${preload(proxyUrl)}` };
}

/** Node runs this before the function. Only there is the process id known, which tells the proxy whom to kill. */
export function preload(proxyUrl: string): string {
  const line = `process.env.AWS_ENDPOINT_URL = '${proxyUrl}' + process.pid;`;
  return `--import=data:text/javascript,${encodeURIComponent(line)}`;
}
