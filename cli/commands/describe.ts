import { Command } from 'commander';
import { invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import type { Deployment } from '../deployment/deployment.ts';
import {
  type ConsumerDescription,
  describeConsumer,
  findingOf,
  receivedText,
} from '../reports/describe/consumer-description.ts';
import type { Io } from '../terminal/io.ts';
import { when } from '../terminal/listing.ts';
import { clipped, many, table } from '../terminal/output.ts';
import { paint } from '../terminal/paint.ts';
import { prose } from '../terminal/prose.ts';
import { reportOf } from '../terminal/terminal.ts';
import { duration, time } from '../terminal/times.ts';
import { reporting } from './command.ts';

/** `mailroom describe`. */
export function describeCommand(io: Io): Command {
  return new Command('describe')
    .description('Describes a consumer: its events, settings and counts, and its last failure.')
    .argument('<consumer>', 'the name of the consumer')
    .action(reporting(io, describe, 'consumer'));
}

async function describe(deployment: Deployment, { consumer }: { readonly consumer: string }) {
  const described = await describeConsumer(deployment, deployment.consumer(consumer));
  const finding = findingOf(described);
  const next = finding === undefined ? null : deployment.commandLine(finding.command);
  const what = finding?.what ?? 'nothing failed, and nothing is dead';
  const now = deployment.clock.now();
  return reportOf({ ...described, next }, { described, what, next }, (seen) =>
    [
      prose(
        `${paint.bold(seen.described.consumer)}  ${(next === null ? paint.green : paint.red)(seen.what)}`,
      ),
      ...lastCauseText(seen.described, now),
      ...(seen.next === null ? [] : [`  ${paint.dim(seen.next)}`]),
      '',
      descriptionText(seen.described),
    ].join('\n'),
  );
}

function lastCauseText({ lastCause }: ConsumerDescription, now: number): string[] {
  if (lastCause === null) return [];
  const { at, eventId, text } = lastCause;
  return [prose(`  last failure ${when(at, now)}, ${eventId}: ${clipped(text)}`, 4)];
}

function descriptionText(described: ConsumerDescription): string {
  const {
    stack,
    service,
    events,
    rule,
    externalRule,
    forwardsTo,
    changedAt,
    maxAttempts,
    inboxRetentionDays,
    slo,
    queue,
  } = described;
  const limited = described.limited === 0 ? '' : `; ${described.limited} waiting for a limit`;
  return table(
    ['stack', stack],
    [
      ['receives', events.map(receivedText).join(', ') || 'nothing'],
      ['by rule', rule ?? 'none: an existing queue'],
      ...(externalRule === null
        ? []
        : [['external events by', `${externalRule.name} on the bus ${externalRule.bus}`] as const]),
      ...(forwardsTo === null ? [] : [['forwards to', bridgeText(described)] as const]),
      ['writes as', service],
      ['declared', changedAt === null ? '?' : time(changedAt)],
      ['attempts', `${maxAttempts}; inbox rows are kept for ${many(inboxRetentionDays, 'day')}`],
      ...(slo === null
        ? []
        : [['SLO', `${slo.percentile} % processed within ${duration(slo.latencyMs)} of their commit`]]),
      [
        'messages',
        `${described.failed} failed, ${described.rejected} rejected, ${many(described.deadLetters, 'dead letter')}${limited}`,
      ],
      [
        'queue',
        queue === null
          ? 'does not exist'
          : `${queue.queued} queued, ${queue.inFlight} in flight; ${queue.url}`,
      ],
      ['function', invokedFunction(described.function, described.alias ?? undefined)],
      ...functionRows(described),
      ...differenceRows(described),
    ],
  );
}

/** The target of a bridge, and whether it receives an aggregate's events in order. */
function bridgeText({ forwardsTo, order }: ConsumerDescription): string {
  const inOrder = order?.startsWith('strict') ? "an aggregate's events in order" : 'events in any order';
  return `${forwardsTo?.name} (${forwardsTo?.kind}), ${inOrder}`;
}

function functionRows({ deployed }: ConsumerDescription): string[][] {
  if (deployed === null) return [['', paint.red('does not exist')]];
  const { timeoutMs, memoryMb, runtime, reservedConcurrency, logGroup, mappings } = deployed;
  const settings = [
    runtime,
    `at most ${duration(timeoutMs)}`,
    memoryMb === null ? null : `${memoryMb} MB`,
    reservedConcurrency === null ? null : `${reservedConcurrency} reserved`,
  ];
  return [
    ['', settings.filter((setting) => setting !== null).join(', ')],
    ['log group', logGroup],
    ...mappings.map((mapping) => ['mapping', mappingText(mapping)]),
  ];
}

/** The members that are not as declared, and what was not compared. */
function differenceRows({ differences, notChecked }: ConsumerDescription): string[][] {
  return [
    ...differences.map(({ text, allowed }) => (allowed ? ['changed', text] : ['differs', paint.red(text)])),
    ...notChecked.map(({ needs, why = `it needs ${needs.join(', ')}` }) => ['not compared', why]),
  ];
}

function mappingText(mapping: NonNullable<ConsumerDescription['deployed']>['mappings'][number]): string {
  const { state, batchSize, batchingWindowMs, maxConcurrency } = mapping;
  return [
    state === 'Enabled' ? state : paint.red(state),
    ...(batchSize === null ? [] : [`batches of ${batchSize}`]),
    ...(batchingWindowMs ? [`collected for ${duration(batchingWindowMs)}`] : []),
    ...(maxConcurrency === null ? [] : [`at most ${maxConcurrency} at once`]),
  ].join(', ');
}
