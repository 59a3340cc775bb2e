import type { Mapping, Wiring } from '../../../../cli/deployment/aws-wiring.ts';
import { readWiring } from '../../../../cli/reports/status/wiring-report.ts';
import { encodeRulePattern } from '../../../../lambdas/runtime/bus/rule-pattern.ts';
import type { DeployedRule } from '../../../../lambdas/runtime/operations/audit/audit-drift.ts';
import { type Directory, invokedFunction } from '../../../../lambdas/runtime/operations/directory.ts';
import { directory as deployed } from './mailroom-in-memory.ts';

/** The ARN of the stream of the Mailroom's table. */
const STREAM = 'arn:aws:dynamodb:eu-west-1:111122223333:table/Mailroom/stream/2026';

/** The settings of a mapping that reports each failed item. */
const SETTINGS = {
  enabled: true,
  isSettled: true,
  filters: [],
  batchSize: 10,
  reportsItemFailures: true,
  bisects: true,
  failureDestination: 'failures',
  retriesMax: 10,
  concurrencyMax: 100,
};

/** The deployed wiring of a Mailroom, healthy until a test changes it. The ARN of a queue is its URL, as in `mailroomInMemory`. */
export function wiringInMemory(directory: Directory = deployed) {
  const { mailroom, consumers } = directory;
  const mappings = new Map<string, Mapping[]>([
    [mailroom.streamFunction, [{ uuid: 'stream-mapping', source: STREAM, ...SETTINGS }]],
    ...consumers.map((consumer): [string, Mapping[]] => [
      invokedFunction(consumer.function, consumer.alias),
      [{ uuid: `${consumer.name}-mapping`, source: consumer.queue, ...SETTINGS }],
    ]),
  ]);
  const reserved = new Map<string, number | null>(
    [mailroom.streamFunction, mailroom.sweepFunction, ...consumers.map((consumer) => consumer.function)].map(
      (name) => [name, null],
    ),
  );
  const buses = new Set([mailroom.bus]);
  const rules = new Map<string, DeployedRule>([
    [
      `default|${mailroom.sweepRule}`,
      { enabled: true, pattern: '', targets: [`arn:aws:lambda:x:1:function:${mailroom.sweepFunction}`] },
    ],
    ...consumers.map(({ rule, events, queue }): [string, DeployedRule] => [
      `${mailroom.bus}|${rule}`,
      { enabled: true, pattern: JSON.stringify(encodeRulePattern(events)), targets: [queue] },
    ]),
  ]);
  const state = { stream: STREAM as string | undefined };
  const wiring: Wiring = {
    mappings: async (name) => mappings.get(name) ?? [],
    reservedConcurrency: async (name) => reserved.get(name),
    hasBus: async (name) => buses.has(name),
    rules: { describe: async (bus, rule) => rules.get(`${bus}|${rule}`) },
    stream: async () => state.stream,
  };
  /** Changes a mapping at once. */
  const enableMapping = async (uuid: string, enabled: boolean) => {
    for (const [name, own] of mappings)
      mappings.set(
        name,
        own.map((mapping) => (mapping.uuid === uuid ? { ...mapping, enabled } : mapping)),
      );
  };
  return { mappings, reserved, buses, rules, state, wiring, enableMapping };
}

/** Reads a healthy wiring, for tests about other things. */
export const wired = wiringOf(wiringInMemory().wiring);

/** The dependency of `readStatus` on a wiring. */
export function wiringOf(wiring: Wiring, directory: Directory = deployed) {
  return (queueArn: (url: string) => string | undefined) =>
    readWiring({ directory, wiring, queueArn, pauses: async () => undefined });
}
