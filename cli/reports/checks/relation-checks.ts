import { ruleName } from '../../../lambdas/runtime/operations/audit/audit-drift.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { many } from '../../terminal/output.ts';
import {
  type CheckDeps,
  type CommandWords,
  check,
  FIND_MISSED,
  type PartCheck,
  type RemediedProblems,
} from './check.ts';
import { updateMapping } from './function-checks.ts';
import { DEFAULT_BUS } from './relay-checks.ts';

/** Checks what no single resource of the Mailroom shows: who else reads and fills its queues, and the keys of others. */
export function relationChecks(deps: CheckDeps): PartCheck[] {
  return [
    ...deps.directory.consumers.flatMap((consumer) => [
      check(consumer.name, 'surroundings', () => foreignReaders(deps, consumer)),
      check(consumer.name, 'surroundings', () => foreignRules(deps, consumer)),
    ]),
    check('bus', 'surroundings', () => stoppedForwards(deps)),
    check('account', 'surroundings', () => unusableKeys(deps)),
  ];
}

/** Functions that take messages away from a consumer. */
async function* foreignReaders({ resources }: CheckDeps, consumer: ConsumerEntry): RemediedProblems {
  const { name } = consumer;
  const queue = await resources.queue(consumer.queue);
  if (queue === undefined) return; // reported as `no-queue`
  for (const { uuid, function: reader } of await resources.readers(queue.arn)) {
    if (reader === consumer.function) continue;
    const text = `the function ${reader} also reads the queue of ${name} (event source mapping ${uuid}): ${name} never receives what it takes, and those events are lost`;
    const fix = updateMapping({ uuid }, '--no-enabled');
    yield { problem: 'foreign-mapping', resource: reader, text, fix, followUp: FIND_MISSED };
  }
}

/** Rules that send events to a consumer's queue which it does not declare. An existing queue has other senders. */
async function* foreignRules({ directory, resources }: CheckDeps, consumer: ConsumerEntry): RemediedProblems {
  const { mailroom, consumers } = directory;
  const { name, externalRule, rule } = consumer;
  const queue = await resources.queue(consumer.queue);
  if (queue === undefined || rule === undefined) return;
  // A rule of a consumer is compared with its declaration, its targets too.
  const declared = new Set(consumers.flatMap((one) => [ruleName(one), one.externalRule?.name]));
  for (const bus of new Set([mailroom.bus, externalRule?.bus ?? DEFAULT_BUS, DEFAULT_BUS]))
    for (const sender of await resources.rulesTo(bus, queue.arn)) {
      if (declared.has(sender)) continue;
      const { enabled = false, targets = [] } = (await resources.rule(bus, sender)) ?? {};
      const ids = targets.filter(({ arn }) => arn === queue.arn).map(({ id }) => id);
      if (!enabled || ids.length === 0) continue;
      const text = `the rule ${sender} on the bus ${bus} also sends to the queue of ${name}: ${name} receives events that it does not declare, and rejects those that it cannot read`;
      const of = ['--rule', sender, '--event-bus-name', bus, '--ids', ...ids];
      const fix: CommandWords = ['aws', 'events', 'remove-targets', ...of];
      yield { problem: 'foreign-rule', resource: sender, text, fix };
    }
}

/** Forwards of the bus that are off, and events that the other bus did not take. */
async function* stoppedForwards({ directory, resources }: CheckDeps): RemediedProblems {
  const { bus, failureQueue } = directory.mailroom;
  for (const { rule, enabled, to, deadLetterQueue } of await resources.forwards(bus)) {
    const other = to.slice(to.lastIndexOf('/') + 1);
    if (!enabled) {
      const text = `the rule ${rule} does not forward events from the bus ${bus} to ${other}: it is disabled. Consumers there miss what was published since; once it is enabled, list what was published, and publish each of those again by its id (\`events republish\`)`;
      const fix: CommandWords = ['aws', 'events', 'enable-rule', '--name', rule, '--event-bus-name', bus];
      const followUp = ['npx', 'cdk-mailroom', 'events', 'list', '--published', '--since', '24h'];
      yield { problem: 'forward-disabled', resource: rule, text, fix, followUp };
    }
    if (deadLetterQueue === undefined) continue;
    const name = deadLetterQueue.slice(deadLetterQueue.lastIndexOf(':') + 1);
    // A target's dead-letter queue is in the account and region of its rule.
    const url = `${failureQueue.slice(0, failureQueue.lastIndexOf('/') + 1)}${name}`;
    const { messages = 0 } = (await resources.queue(url)) ?? {};
    if (messages === 0) continue;
    const text = `the bus ${other} did not take ${many(messages, 'event')} that the rule ${rule} forwards from ${bus}: it does not exist, or its owner does not accept the role of the forward, or no longer does. The command shows them with EventBridge's reason. Once the bus takes them, publish each again by its id (\`events republish\`), and delete its message`;
    const shown = ['--message-attribute-names', 'All', '--max-number-of-messages', '10'];
    const fix: CommandWords = ['aws', 'sqs', 'receive-message', '--queue-url', url, ...shown];
    yield { problem: 'forward-undelivered', resource: rule, text, fix };
  }
}

/** States of a key in which AWS encrypts and decrypts with it. */
const USABLE = new Set(['Enabled', 'Creating', 'Updating']);

/** The call that makes a key usable again, by its state. In another state, only the key's owner can: the command shows it. */
const KEY_REPAIRS: Readonly<Record<string, string>> = {
  Disabled: 'enable-key',
  PendingDeletion: 'cancel-key-deletion',
};

/** Keys with which AWS can no longer read and write the queues and the table. */
async function* unusableKeys(deps: CheckDeps): RemediedProblems {
  for (const [key, encrypted] of await encryptedBy(deps)) {
    const state = await deps.resources.keyState(key);
    if (state !== undefined && USABLE.has(state)) continue;
    const effect = `it encrypts ${encrypted.join(', ')}. Events can neither be stored nor delivered there, and EventBridge drops them after 24 hours`;
    const isDeletion = state === undefined || state.endsWith('Deletion');
    const found =
      state === undefined
        ? 'does not exist'
        : state === 'Disabled'
          ? 'is disabled'
          : isDeletion
            ? 'is about to be deleted, with everything that it encrypts. Cancel the deletion, then enable it'
            : `cannot be used (${state})`;
    const call = KEY_REPAIRS[state ?? ''] ?? 'describe-key';
    yield {
      problem: isDeletion ? 'key-deletion' : 'key-disabled',
      resource: key,
      text: `the KMS key ${key} ${found}: ${effect}`,
      fix: ['aws', 'kms', call, '--key-id', key],
      followUp: FIND_MISSED,
    };
  }
}

/** The keys of the table and the queues, each with what it encrypts. */
async function encryptedBy({ directory, resources }: CheckDeps): Promise<Map<string, string[]>> {
  const { mailroom, consumers } = directory;
  const queues = [
    { url: mailroom.failureQueue, what: 'the failure queue' },
    ...consumers.flatMap(({ name, queue, deadLetterQueue, undeliveredQueue }) => [
      { url: queue, what: `the queue of ${name}` },
      { url: deadLetterQueue, what: `the dead-letter queue of ${name}` },
      ...(undeliveredQueue === undefined
        ? []
        : [{ url: undeliveredQueue, what: `the undelivered queue of ${name}` }]),
    ]),
  ];
  const [table, ...found] = await Promise.all([
    resources.table(),
    ...queues.map(async ({ url, what }) => ({ what, key: (await resources.queue(url))?.key })),
  ]);
  const byKey = new Map<string, string[]>();
  for (const { key, what } of [{ key: table.key, what: 'the table' }, ...found])
    if (key !== undefined) byKey.set(key, [...(byKey.get(key) ?? []), what]);
  return byKey;
}
