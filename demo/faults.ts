import { DisableRuleCommand, EnableRuleCommand } from '@aws-sdk/client-eventbridge';
import {
  DeleteFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  ListEventSourceMappingsCommand,
  PutFunctionConcurrencyCommand,
  UpdateEventSourceMappingCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { PurgeQueueCommand } from '@aws-sdk/client-sqs';
import { auditOrRepair } from '../cli/changes/repair/repair.ts';
import type { Deployment } from '../cli/deployment/deployment.ts';
import type { DemoFault } from '../cli/page/server/protocol.ts';
import { runQuietly } from '../cli/page/server/quiet-run.ts';
import { why } from '../cli/reports/why/why.ts';
import { type ShellText, shell } from '../cli/terminal/shell.ts';
import { HOUR_MS } from '../lambdas/runtime/base/units.ts';
import { ruleName } from '../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry } from '../lambdas/runtime/operations/directory.ts';
import type { FaultDeps, InjectedFault } from './made-faults.ts';
import type { Consumer } from './readings.ts';
import { pause } from './shop.ts';
import { type SlowCharge, slowCharge } from './slow-charge.ts';

/** The interval at which a fault looks whether what it waits for has happened. */
const LOOK_EVERY_MS = 500;

/** A purge waits this long for messages to lose: without orders there are none. */
const MESSAGES_WITHIN_MS = 15_000;

/** So many that the loss shows. */
const MESSAGES_TO_LOSE = 3;

/** The audit judges an event this long after it was published. */
const GRACE_S = 5;

/**
 * Creates the faults of the demo. They change the deployed resources as an accident would: the code of the order system has no part
 * in them.
 *
 * @example
 * ```ts
 * const faults = await createFaults({ deployment, outputs, endpoint, signal });
 * await faults['rule-off'].break();
 * await faults['rule-off'].repair();
 * ```
 */
export async function createFaults(
  deps: FaultDeps,
): Promise<Readonly<Record<DemoFault['name'], InjectedFault>>> {
  const entry = (name: Consumer): ConsumerEntry => deps.deployment.consumer(name);
  return {
    'bank-down': bankDown(deps, await bankOf(deps.deployment, entry('payments'))),
    'rule-off': ruleOff(deps, entry('inventory')),
    'queue-purged': queuePurged(deps, entry('notifications')),
    'worker-killed': workerKilled(deps, entry('payments')),
  };
}

/** The bank takes no calls. Payments fails, tries again, and rejects messages until the bank is back. */
function bankDown({ deployment }: FaultDeps, bank: string): InjectedFault {
  const { lambda } = deployment.clients;
  return {
    text: 'The bank refuses every charge of payments. The reserved concurrency of its function is set to 0.',
    repairCommand: () =>
      deployment.awsLine(shell`lambda delete-function-concurrency --function-name ${bank}`),
    break: async () => {
      await lambda.send(
        new PutFunctionConcurrencyCommand({ FunctionName: bank, ReservedConcurrentExecutions: 0 }),
      );
    },
    repair: async () => {
      await lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName: bank }));
    },
  };
}

/** The rule of a consumer is disabled: EventBridge drops its events. */
function ruleOff(deps: FaultDeps, consumer: ConsumerEntry): InjectedFault {
  const { deployment } = deps;
  const { name } = consumer;
  const rule = ruleName(consumer) ?? '';
  const target = { Name: rule, EventBusName: deployment.directory.mailroom.bus };
  const enable = shell`events enable-rule --name ${rule} --event-bus-name ${target.EventBusName}`;
  const reason = `the rule of ${name} was disabled`;
  return {
    text: `EventBridge drops the events of ${name}. Its rule is disabled.`,
    repairCommand: () => `${deployment.awsLine(enable)} && ${deployment.commandLine(repairLine(reason))}`,
    break: async () => {
      await deployment.clients.events.send(new DisableRuleCommand(target));
    },
    repair: async () => {
      await deployment.clients.events.send(new EnableRuleCommand(target));
      await sendMissing(deps, name, reason);
    },
  };
}

/** The queue of a consumer loses the messages that wait in it. */
function queuePurged(deps: FaultDeps, { name, queue, function: functionName }: ConsumerEntry): InjectedFault {
  const { deployment, signal } = deps;
  const reason = `the queue of ${name} was purged`;
  return {
    text: `The waiting messages of ${name} are lost. Its queue is purged.`,
    repairCommand: () => deployment.commandLine(repairLine(reason)),
    break: async () => {
      // A consumer that keeps up has an empty queue, and there would be nothing to lose.
      const uuid = await mappingOf(deployment, functionName);
      await deployment.clients.lambda.send(
        new UpdateEventSourceMappingCommand({ UUID: uuid, Enabled: false }),
      );
      try {
        const until = Date.now() + MESSAGES_WITHIN_MS;
        while ((await deployment.queues.depth(queue)).waiting < MESSAGES_TO_LOSE && Date.now() < until) {
          signal.throwIfAborted();
          await pause(LOOK_EVERY_MS);
        }
        await deployment.clients.sqs.send(new PurgeQueueCommand({ QueueUrl: queue }));
      } finally {
        await deployment.clients.lambda.send(
          new UpdateEventSourceMappingCommand({ UUID: uuid, Enabled: true }),
        );
      }
    },
    repair: () => sendMissing(deps, name, reason),
  };
}

/** A worker dies while the bank answers. Its message is redelivered once its visibility timeout has passed. */
function workerKilled(deps: FaultDeps, { name, function: FunctionName }: ConsumerEntry): InjectedFault {
  const { deployment, signal } = deps;
  let charge: SlowCharge | undefined;
  return {
    text:
      `A worker of ${name} dies after the bank charged and before it responded. You have nothing to repair: the queue redelivers ` +
      'the message 30 seconds after its receive, and the bank charges once per key.',
    repairCommand: () => (charge === undefined ? '' : deployment.commandLine(shell`why ${charge.eventId}`)),
    break: async () => {
      charge = await slowCharge(deps);
      // The engine ends the processes of a function whose settings are written, also those that work: like a crash of each.
      const { Timeout } = await deployment.clients.lambdaReads.send(
        new GetFunctionConfigurationCommand({ FunctionName }),
      );
      await deployment.clients.lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Timeout }));
    },
    repair: async () => {
      if (charge === undefined) return;
      const { eventId: id } = charge;
      await runQuietly(deployment, (quiet) => why(quiet, { id }), { signal });
      await charge.ended();
    },
    ended: async () => {
      await charge?.ended();
    },
  };
}

/**
 * The audit that sends missing events again. The consumers were declared before the first order, so that also the events of the
 * deployment's first minute count.
 */
const REPAIR = { since: HOUR_MS, grace: GRACE_S * 1_000, earlier: true, repair: true, apply: true };

/** The command that does the same. */
function repairLine(reason: string): ShellText {
  return shell`audit --since 1h --grace ${`${GRACE_S}s`} --earlier --repair --apply --reason ${reason}`;
}

/**
 * Runs the audit that sends missing events until it finds none of the consumer. The first run cannot judge the events that were
 * published within the grace period, nor those that the queue of a busy consumer may hold.
 */
async function sendMissing(
  { deployment, signal }: FaultDeps,
  consumer: string,
  reason: string,
): Promise<void> {
  const judgedFrom = Date.now() + 2 * GRACE_S * 1_000;
  for (;;) {
    signal.throwIfAborted();
    const startedAt = Date.now();
    const { document, error } = await runQuietly(
      deployment,
      (quiet) => auditOrRepair(quiet, { ...REPAIR, reason }),
      {
        signal,
      },
    );
    if (document === null) throw new Error(error?.message);
    const { missing, inconclusive } = document;
    // Those of another consumer are missing as long as its own fault lasts.
    const own = [...missing, ...inconclusive].filter((found) => found.consumer === consumer);
    if (startedAt > judgedFrom && own.length === 0) return;
    await pause(LOOK_EVERY_MS);
  }
}

/** The name of the bank's function, which payments calls. */
async function bankOf({ clients: { lambdaReads } }: Deployment, payments: ConsumerEntry): Promise<string> {
  const { Environment } = await lambdaReads.send(
    new GetFunctionConfigurationCommand({ FunctionName: payments.function }),
  );
  const name = Environment?.Variables?.BANK_FUNCTION_NAME;
  if (name === undefined) throw new Error(`${payments.function} has no variable BANK_FUNCTION_NAME`);
  return name;
}

async function mappingOf({ clients: { lambdaReads } }: Deployment, FunctionName: string): Promise<string> {
  const { EventSourceMappings: [mapping] = [] } = await lambdaReads.send(
    new ListEventSourceMappingsCommand({ FunctionName }),
  );
  if (mapping?.UUID === undefined) throw new Error(`${FunctionName} has no event source mapping`);
  return mapping.UUID;
}
