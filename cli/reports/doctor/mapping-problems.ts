import {
  type ConsumerEntry,
  deployWords,
  invokedFunction,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { Mapping, Wiring } from '../../deployment/aws-wiring.ts';
import type { PartProblem } from '../status/part-checks.ts';
import type { CheckedFunction } from '../status/wiring-problems.ts';

/** A problem of the settings of an event source mapping. */
export type MappingProblem = PartProblem<
  | 'no-item-failures'
  | 'batch-size'
  | 'no-bisect'
  | 'no-failure-destination'
  | 'endless-retries'
  | 'no-max-concurrency'
>;

/** Settings of a consumer's mapping that lose messages, or let it starve other functions. */
export async function queueSettingsProblems(
  wiring: Wiring,
  { batchSize }: ConsumerEntry,
  checked: CheckedFunction,
  queueArn: string,
): Promise<MappingProblem[]> {
  const mapping = await mappingOf(wiring, checked, (source) => source === queueArn);
  if (mapping === undefined) return []; // reported as `no-mapping`
  const { part } = checked;
  const text = `the event source mapping of ${checked.name} has no maximum concurrency: ${part} can use up the concurrency of the account, which stops all other functions`;
  return [
    ...itemFailures(
      checked,
      mapping,
      `SQS deletes the messages that ${part} fails to process, so they are lost`,
    ),
    ...(batchSize === undefined || mapping.batchSize === batchSize
      ? []
      : [
          {
            part,
            problem: 'batch-size' as const,
            text: `the event source mapping of ${checked.name} passes at most ${mapping.batchSize} messages to an invocation instead of ${batchSize}: ${part} works at another speed and price than declared`,
            fix: update(mapping, '--batch-size', String(batchSize)),
          },
        ]),
    ...(mapping.concurrencyMax === undefined
      ? [{ part, problem: 'no-max-concurrency' as const, text, fix: deployWords(checked) }]
      : []),
  ];
}

/** Settings of the stream mapping that let one bad record block or lose others. */
export async function streamSettingsProblems(
  wiring: Wiring,
  checked: CheckedFunction,
  table: string,
  failureQueueArn: string | undefined,
): Promise<MappingProblem[]> {
  const mapping = await mappingOf(wiring, checked, (source) => source.includes(`:table/${table}/stream/`));
  if (mapping === undefined) return []; // reported as `no-mapping`
  const { part, name } = checked;
  const problem = (kind: MappingProblem['problem'], text: string, fix: readonly string[]) => ({
    part,
    problem: kind,
    text,
    fix,
  });
  const one = `the event source mapping of ${name}`;
  const destination = JSON.stringify({ OnFailure: { Destination: failureQueueArn } });
  return [
    ...itemFailures(checked, mapping, 'events whose publish failed wait for the sweep'),
    ...(mapping.bisects
      ? []
      : [
          problem(
            'no-bisect',
            `${one} does not halve a failing batch: one record that crashes the stream relay holds up its whole batch`,
            update(mapping, '--bisect-batch-on-function-error'),
          ),
        ]),
    ...(failureQueueArn === undefined || mapping.failureDestination === failureQueueArn
      ? []
      : [
          problem(
            'no-failure-destination',
            `${one} does not send discarded batches to the queue ${failureQueueArn}: nothing reports that the stream relay discarded them`,
            update(mapping, '--destination-config', destination),
          ),
        ]),
    ...((mapping.retriesMax ?? -1) >= 0
      ? []
      : [
          problem(
            'endless-retries',
            `${one} retries a failing batch without limit: new events of its shard wait behind it`,
            deployWords(checked),
          ),
        ]),
  ];
}

function itemFailures({ part, name }: CheckedFunction, mapping: Mapping, effect: string): MappingProblem[] {
  if (mapping.reportsItemFailures) return [];
  const text = `the event source mapping of ${name} ignores which items failed (ReportBatchItemFailures is off): ${effect}`;
  const fix = update(mapping, '--function-response-types', 'ReportBatchItemFailures');
  return [{ part, problem: 'no-item-failures', text, fix }];
}

function update({ uuid }: Mapping, ...words: readonly string[]): string[] {
  return ['aws', 'lambda', 'update-event-source-mapping', '--uuid', uuid, ...words];
}

async function mappingOf(
  wiring: Wiring,
  { name, alias }: CheckedFunction,
  isOwn: (source: string) => boolean,
): Promise<Mapping | undefined> {
  const own = (await wiring.mappings(invokedFunction(name, alias))).filter(({ source }) => isOwn(source));
  return own.find(({ enabled }) => enabled) ?? own[0];
}
