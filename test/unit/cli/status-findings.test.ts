import { expect, test } from 'vitest';
import { problemFindings } from '../../../cli/reports/findings/findings.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusFindings } from '../../../cli/reports/status/status-findings.ts';
import type { StatusReport } from '../../../cli/reports/status/status-report.ts';
import { statusJson, statusText } from '../../../cli/reports/status/status-text.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { wired } from './support/resources-in-memory.ts';

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command}`,
};

/** A status with a finding of each kind. */
async function troubled(): Promise<StatusReport> {
  const mailroom = mailroomInMemory([
    leased(ThingHappened, async () => {
      throw new PoisonMessage('the price is missing');
    }),
  ]);
  await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
  await mailroom.publish();
  await mailroom.drain();
  const { table, queues, clock } = mailroom;
  const report = await readStatus(
    withStored({
      directory,
      region: 'eu-west-1',
      table,
      queues,
      wiring: wired,
      now: clock.now(),
    }),
  );
  return {
    ...report,
    wiring: {
      problems: [
        {
          part: 'worker',
          level: 'flow',
          problem: 'rule-disabled',
          text: 'worker receives no events',
          fix: ['aws', 'events', 'enable-rule', '--name', 'worker-rule'],
          followUp: ['npx', 'cdk-mailroom', 'audit', '--since', '24h'],
        },
      ],
      skipped: [],
      notChecked: [{ needs: ['events:DescribeRule'], parts: ['sweep'] }],
    },
    looks: [{ consumer: 'worker', look: 'behind', messages: 3, forMs: 900_000 }],
  };
}

test('--json holds every finding that the text shows, the broken ones first, with the lines to paste', async () => {
  const report = await troubled();
  const { findings } = statusJson(report, lines);
  expect(findings).toEqual([
    {
      ...{ id: 'rule-disabled/worker', code: 'rule-disabled', part: 'worker', count: null },
      state: 'broken',
      what: 'worker receives no events',
      commands: [
        'aws events enable-rule --name worker-rule',
        'mailroom audit --since 24h',
        'aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=DisableRule --max-results 5',
      ],
    },
    {
      ...{ id: 'dead-letters/consumer:worker', code: 'dead-letters', part: 'consumer:worker', count: 1 },
      state: 'broken',
      what: expect.stringMatching(/^1 dead letter in consumer:worker; the first is permanently deleted in/),
      commands: ['mailroom dlq list consumer:worker --by cause'],
    },
    {
      ...{ id: 'behind/worker', code: 'behind', part: 'worker', count: null },
      state: 'look',
      what: expect.stringContaining('worker is behind: 3 messages'),
      commands: ['mailroom status --watch'],
    },
    {
      ...{ code: 'not-checked', part: null, count: null },
      state: 'look',
      what: 'not checked: sweep; needs events:DescribeRule',
      commands: ['aws sts get-caller-identity'],
    },
  ]);
  const text = unwrapped(statusText(report, lines));
  expect(text).toMatch(/^2 problems, 1 warning, 1 part not checked /);
  for (const { id, what, commands } of findings) {
    const shown = id === undefined ? what : `${what} [${id}]`;
    expect(text).toContain([unwrapped(shown), ...commands].join(' ').trim());
  }
});

test('an acknowledgement of a finding does not cover two with its id', async () => {
  const report = await troubled();
  const [problem] = report.wiring.problems;
  if (problem === undefined) throw new Error('The wiring has no problem');
  const acks = [
    { finding: 'rule-disabled/worker', until: report.at + 1, upTo: null, by: 'ada', reason: 'INC-7', at: 0 },
  ];
  const shown = (problems: readonly (typeof problem)[]) =>
    statusFindings({ ...report, wiring: { ...report.wiring, problems } }, { ...lines, acks })
      .filter(({ code }) => code === 'rule-disabled')
      .map(({ count, acknowledged }) => [count, acknowledged?.by]);
  expect(shown([problem])).toEqual([[null, 'ada']]);
  expect(shown([problem, problem])).toEqual([
    [2, undefined],
    [2, undefined],
  ]);
});

test('who stopped a function is shown before the command that starts it', () => {
  const stopped = {
    part: 'worker',
    level: 'flow',
    problem: 'concurrency-zero',
    text: 'the function never runs',
    fix: ['aws', 'lambda', 'delete-function-concurrency'],
  } as const;
  expect(problemFindings([stopped], lines)).toEqual([
    {
      ...{ code: 'concurrency-zero', part: 'worker', count: null },
      state: 'broken',
      what: 'the function never runs. It may have been stopped on purpose: ask first',
      commands: [
        expect.stringMatching(/^aws cloudtrail lookup-events .*PutFunctionConcurrency/),
        'aws lambda delete-function-concurrency',
      ],
    },
  ]);
});

test('a status without a finding is ok', async () => {
  const { table, queues, clock } = mailroomInMemory([]);
  const report = await readStatus(
    withStored({
      directory,
      region: 'eu-west-1',
      table,
      queues,
      wiring: wired,
      now: clock.now(),
    }),
  );
  expect(report.ok).toBe(true);
  expect(statusFindings(report, lines)).toEqual([]);
});

test('dead letters of a rule that may not send to its queue: the cause comes first, and doctor before the list', async () => {
  const report = await troubled();
  const source = { source: 'rule:worker', count: 20, oldestAt: 0, firstExpiryAt: null };
  const findingOf = (errorCode?: string) =>
    statusFindings({ ...report, deadLetterSources: [{ ...source, errorCode }] }, lines).find(
      ({ part }) => part === 'rule:worker',
    );
  expect(findingOf('NO_PERMISSIONS')).toMatchObject({
    what: 'EventBridge was not allowed to send to the queue of worker: NO_PERMISSIONS; 20 dead letters in rule:worker',
    commands: ['mailroom doctor', 'mailroom dlq list rule:worker --by cause'],
  });
  expect(findingOf('THROTTLING')).toMatchObject({
    what: 'EventBridge could not deliver to the queue of worker: THROTTLING; 20 dead letters in rule:worker',
    commands: ['mailroom dlq list rule:worker --by cause'],
  });
  expect(findingOf()?.what).toBe('20 dead letters in rule:worker');
});

test('the events that should be published by now are counted among all that are pending', async () => {
  const report = await troubled();
  const [stuck] = [
    {
      because: 'due',
      events: 17,
      since: report.at - 383_000,
      store: null,
      example: 'e',
      committedAt: 0,
      until: null,
      lastError: null,
    },
  ] as const;
  const whatOf = (pending: number) =>
    statusFindings(
      { ...report, outbox: { ...report.outbox, pending, stuck: [stuck] } } as unknown as StatusReport,
      lines,
    ).find(({ code }) => code === 'events-pending')?.what;
  expect(whatOf(76)).toMatch(
    /^17 of 76 pending events should be published by now, the oldest for 6 min 23 s; /,
  );
  expect(whatOf(17)).toMatch(/^17 events pending, the oldest for 6 min 23 s; /);
});
