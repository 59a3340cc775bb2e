import { ListEventSourceMappingsCommand, UpdateEventSourceMappingCommand } from '@aws-sdk/client-lambda';
import { SendMessageBatchCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import {
  type Consumer,
  createReader,
  QUEUE_OUTPUTS,
  type Readings,
  required,
  type WrittenEvent,
} from '../../demo/readings.ts';
import { asDelivered, createShop, type OrdersCall } from '../../demo/shop.ts';
import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { callFunctionUrl } from '../../localstack/function-url.ts';
import type { Cleanup } from './cleanup.ts';
import type { Caller, FunctionName } from './deployed-functions.ts';
import { type DeployedConsumer, deployExtra, type ExtraConsumer } from './extra-consumers.ts';
import type { Act, CallPattern, Fault } from './fault-proxy.ts';
import { refuse, THROTTLED } from './faults.ts';
import { createNaive, type Naive } from './naive.ts';
import type { OrderSystem } from './order-system.ts';
import { placeInRush } from './rush.ts';
import type { Settings } from './settings.ts';
import { unsubscribe } from './subscriptions.ts';
import { CONSUMER_TIMINGS } from './timings.ts';
import { createWaits, type Waits } from './waits.ts';

/** What a scenario plays on: the order system, with orders and faults of the scenario's own. */
export interface Stage extends Script, Orders, Extras, Faults, Waits {
  readonly system: OrderSystem;
  readonly settings: Settings;
  /** Naive designs, run on the same engine and under the same faults. */
  readonly naive: Naive;
}

interface Script {
  /** Prints what is done next, numbered, with the time since the scenario began. */
  step(text: string): void;
  /** Prints a line about the step. */
  note(text: string): void;
  /** Holds something that must be so, and prints it. What is not so fails the scenario, which goes on all the same. */
  check(isSo: boolean, text: string): void;
}

interface Orders {
  /**
   * Places orders through the API, of its own customers and goods; some requests are sent twice.
   *
   * @param soldOutEvery - the interval, in orders, at which goods are sold out, from the first order on. @default none
   * @returns what `read` takes to read only these
   */
  placeOrders(count: number, soldOutEvery?: number): Promise<string>;
  /**
   * Places orders as fast as the table takes them: past the API, which would take minutes for thousands.
   *
   * @returns what `read` takes to read only these, and the id of the `OrderPlaced` of each
   */
  placeInRush(count: number): Promise<{ readonly wave: string; readonly eventIds: readonly string[] }>;
  /** The bodies with which the API has answered 201 so far, by idempotency key. */
  answers(): ReadonlyMap<string, ReadonlySet<string>>;
  /** Reads everything there is about the scenario's orders, or about some of them. */
  read(wave?: string): Promise<Readings>;
  /** Sends copies of an event's message to a consumer's queue, each under its own ids. */
  deliver(consumer: Consumer, event: WrittenEvent, copies: number): Promise<void>;
}

interface Extras {
  /** The prefix of everything that the scenario makes. */
  readonly runId: string;
  /** Deploys a consumer that the order system does not have; the end of the scenario removes it. */
  deployExtra(consumer: ExtraConsumer): Promise<DeployedConsumer>;
}

interface Faults {
  /** Puts a fault in force, until it is removed or the scenario ends. */
  fault(pattern: CallPattern<Caller>, act: Act): Fault;
  /** Keeps the sweep from the table: what the stream does not publish waits. @returns how to let it go on */
  holdSweep(): () => void;
  /** Disables the mapping that feeds a function. @returns how to enable it again; the end of the scenario does so too */
  pauseMapping(of: FunctionName): Promise<() => Promise<void>>;
  /** Sets how long a consumer's queue hides a message that it hands out, seconds; the end of the scenario puts it back. */
  hideFor(consumer: Consumer, seconds: number): Promise<void>;
  /**
   * Disables the rules that bring a consumer its events: what is published meanwhile never comes to it.
   *
   * @returns how to enable them again; the end of the scenario does so too
   */
  unsubscribe(consumer: Consumer): Promise<() => Promise<void>>;
}

/** What {@link createStage} needs. */
export interface StageDeps {
  readonly system: OrderSystem;
  readonly settings: Settings;
  /** Every customer and SKU of the scenario begins with it. */
  readonly runId: string;
  /** Gets what has to be put back. */
  readonly cleanup: Cleanup;
  /** When the scenario's time is up, epoch milliseconds. */
  readonly endsAt: number;
  /** Is aborted then: the scenario cannot do anything from then on. */
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  /** Gets what was not so. */
  readonly onProblem: (text: string) => void;
}

const ORDERS_PER_SECOND = 20;

/** The most messages of one send (SQS quotas). */
const SEND_BATCH_MAX = 10;

/** Makes the stage of one scenario. */
export function createStage(deps: StageDeps): Stage {
  const { system, settings, runId } = deps;
  const orders = ordersOf(deps);
  return {
    system,
    settings,
    naive: createNaive({ system, runId }),
    ...scriptOf(deps),
    ...orders,
    runId,
    deployExtra: (consumer) => deployExtra(system, consumer, deps),
    ...faultsOf(deps),
    ...createWaits({ ...deps, read: orders.read }),
  };
}

function scriptOf({ signal, print, onProblem }: StageDeps): Script {
  const startedAt = Date.now();
  const indent = ' '.repeat(16);
  let steps = 0;
  return {
    step: (text) => {
      signal.throwIfAborted();
      steps += 1;
      const seconds = ((Date.now() - startedAt) / 1_000).toFixed(1);
      print(`  ${String(steps).padStart(2)}. [${seconds.padStart(4)} s] ${text}`);
    },
    note: (text) => print(`${indent}${text}`),
    check: (isSo, text) => {
      print(`${indent}${isSo ? 'yes' : 'NO '}  ${text}`);
      if (!isSo) onProblem(`Not so: ${text}`);
    },
  };
}

function ordersOf({ system, runId, signal }: StageDeps): Orders {
  const { outputs, endpoint, sqs, database } = system;
  const reader = createReader(outputs, database?.items);
  const answers = new Map<string, Set<string>>();
  const call: OrdersCall = async (url, request) => {
    const answer = await callFunctionUrl(endpoint, url, request);
    const key = request.headers?.['idempotency-key'] ?? '';
    if (answer.status === 201) answers.set(key, new Set(answers.get(key)).add(answer.text));
    return answer;
  };
  let waves = 0;
  async function openShop() {
    signal.throwIfAborted();
    waves += 1;
    const wave = `${runId}-${waves}-`;
    const shop = createShop({ outputs, endpoint, runId: wave, call });
    await shop.stockUp();
    return { wave, shop };
  }
  return {
    placeOrders: async (count, soldOutEvery) => {
      const { wave, shop } = await openShop();
      await shop.placeOrders(count, { ratePerSecond: ORDERS_PER_SECOND, soldOutEvery });
      return wave;
    },
    placeInRush: async (count) => {
      const { wave } = await openShop();
      return { wave, eventIds: await placeInRush(system, wave, count) };
    },
    answers: () => answers,
    read: (wave = runId) => reader.read(wave),
    deliver: async (consumer, { row, envelope }, copies) => {
      signal.throwIfAborted();
      const QueueUrl = required(outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`);
      for (let sent = 0; sent < copies; sent += SEND_BATCH_MAX) {
        const Entries = Array.from({ length: Math.min(SEND_BATCH_MAX, copies - sent) }, (_, i) => ({
          Id: String(i),
          MessageBody: asDelivered(row.source, envelope),
        }));
        await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
      }
    },
  };
}

function faultsOf({ system, cleanup, signal, onProblem }: StageDeps): Faults {
  const { lambda, proxy, functions, outputs, sqs } = system;
  const fault: Faults['fault'] = (pattern, act) => {
    signal.throwIfAborted();
    return proxy.inject(pattern, async (call, forward) => {
      try {
        return await act(call, forward);
      } catch (error) {
        // A fault that did not come about (a process that was not killed) would make the scenario prove nothing.
        onProblem(`The fault in ${call.action} of ${call.from} failed: ${errorMessage(error)}`);
        throw error;
      }
    });
  };
  return {
    fault,
    holdSweep: () => fault({ from: 'relay-sweep' }, refuse(THROTTLED)).remove,
    pauseMapping: async (of) => {
      signal.throwIfAborted();
      const { EventSourceMappings: [mapping] = [] } = await lambda.send(
        new ListEventSourceMappingsCommand({ FunctionName: functions[of] }),
      );
      if (mapping === undefined) throw new MailroomError('CHAOS_MAPPING', `No mapping feeds ${of}.`);
      const enable = async (Enabled: boolean) => {
        await lambda.send(new UpdateEventSourceMappingCommand({ UUID: mapping.UUID, Enabled }));
      };
      cleanup.add(() => enable(true));
      await enable(false);
      return () => enable(true);
    },
    hideFor: async (consumer, seconds) => {
      signal.throwIfAborted();
      const QueueUrl = required(outputs, `${QUEUE_OUTPUTS[consumer]}QueueUrl`);
      const set = async (VisibilityTimeout: number) => {
        const Attributes = { VisibilityTimeout: String(VisibilityTimeout) };
        await sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes }));
      };
      cleanup.add(() => set(CONSUMER_TIMINGS.visibilityTimeoutS));
      await set(seconds);
    },
    unsubscribe: async (consumer) => {
      signal.throwIfAborted();
      const subscribe = await unsubscribe(system, consumer);
      cleanup.add(subscribe);
      return subscribe;
    },
  };
}
