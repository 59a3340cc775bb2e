import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Resources } from '../../../cli/deployment/resources.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusJson, statusText } from '../../../cli/reports/status/status-text.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, queueArn, worker } from './support/mailroom-in-memory.ts';
import { invoked, resourcesInMemory, targetOf, wiringOf } from './support/resources-in-memory.ts';

type Deployed = ReturnType<typeof resourcesInMemory>;

const lines = {
  commandLine: (command: string) => `mailroom ${command}`,
  awsLine: (command: string) => `aws ${command} --region eu-west-1`,
};

/** The status of an idle Mailroom with this wiring. */
async function statusOf(resources: Resources, entries: Directory = directory) {
  const { table, queues, clock } = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const report = await readStatus(
    withStored({
      directory: entries,
      region: 'eu-west-1',
      table,
      queues,
      wiring: wiringOf(resources, entries),
      now: clock.now(),
    }),
  );
  return { report, text: statusText(report, lines) };
}

function disableMapping({ mappings }: Deployed, functionName: string): void {
  const found = mappings.get(functionName) ?? [];
  mappings.set(
    functionName,
    found.map((mapping) => ({ ...mapping, enabled: false })),
  );
}

test('a healthy system has no problem of its wiring, and everything was checked', async () => {
  const { report, text } = await statusOf(resourcesInMemory().resources);
  expect(report).toMatchObject({ ok: true, state: 'ok', wiring: { problems: [], notChecked: [] } });
  // What it cannot see is named with the command that can.
  expect(stripVTControlCharacters(text).split('\n').slice(1, 3)).toEqual([
    '  Not checked: lost events. Run mailroom audit',
    '  Not checked: alarms, roles and limits. Run mailroom doctor',
  ]);
});

test('a rule that changes events is a problem of the wiring, with the command that restores its target as it was', async () => {
  const deployed = resourcesInMemory();
  const { targets: [target = targetOf('')] = [] } = deployed.rules.get('bus|worker-rule') ?? {};
  const settings = {
    DeadLetterConfig: { Arn: target.deadLetterQueue },
    SqsParameters: { MessageGroupId: '$.detail.data.tenant' },
    RetryPolicy: { MaximumRetryAttempts: 7 },
  };
  deployed.changeRule('bus|worker-rule', { targets: [{ ...target, input: 'InputTransformer', settings }] });
  const { report, text } = await statusOf(deployed.resources);
  const restored = JSON.stringify([{ Id: target.id, Arn: target.arn, ...settings }]);
  expect(report.wiring.problems).toMatchObject([
    {
      part: 'worker',
      problem: 'target-input',
      level: 'flow',
      fix: [
        ...['aws', 'events', 'put-targets', '--rule', 'worker-rule', '--event-bus-name', 'bus'],
        ...['--targets', restored],
      ],
    },
  ]);
  expect(unwrapped(text)).toContain('its rule worker-rule changes them (InputTransformer)');
  expect(unwrapped(text)).toContain('mailroom audit --since 24h');
});

const _DEPLOY = 'npx cdk deploy mailroom-dev --revert-drift';
const _DEPLOY_WORKER = 'npx cdk deploy dev/Things --revert-drift';

test('a function that fails at every invocation is a warning with the command for its log', async () => {
  const deployed = resourcesInMemory();
  deployed.settings.invocations.set(worker.function, invoked(5));
  // Nothing waits for it.
  expect((await statusOf(deployed.resources)).report.state).toBe('ok');
  deployed.changeQueue(worker.queue, { messages: 1 });
  const { report, text } = await statusOf(deployed.resources);
  expect(report).toMatchObject({
    state: 'look',
    wiring: { problems: [{ part: worker.name, problem: 'invocations-fail' }] },
  });
  expect(text).toMatch(/^.*1 warning/);
  expect(unwrapped(text)).toContain(
    'worker processes nothing: its function worker-function failed at each of its 5 invocations in the last 15 min. Messages wait. Does it start?',
  );
  expect(text).toContain('mailroom logs worker');
});

test.each([
  [
    'six failures of an hour without a success are a problem',
    invoked(6),
    'broken',
    '6 invocations in the last 15 min',
  ],
  [
    'a function that worked until three minutes ago, and has failed at each invocation since, is a problem',
    invoked(9, 40, { errors: 8, forMs: 180_000 }),
    'broken',
    '8 invocations in the last 3 min',
  ],
  ['a few failures after a success are not', invoked(5, 40, { errors: 5, forMs: 180_000 }), 'ok', undefined],
  ['a bad minute after a success is not', invoked(9, 40, { errors: 9, forMs: 60_000 }), 'ok', undefined],
])('%s', async (_what, invocations, state, words) => {
  const deployed = resourcesInMemory();
  deployed.settings.invocations.set(worker.function, invocations);
  deployed.changeQueue(worker.queue, { messages: 1 });
  const { report, text } = await statusOf(deployed.resources);
  expect(report.state).toBe(state);
  expect(unwrapped(text)).toContain(words ?? 'nothing visible is broken');
});

test('a function that fails at every invocation is reported beside a problem that does not stop it, and not beside one that does', async () => {
  const found = async (plant: (deployed: Deployed) => void) => {
    const deployed = resourcesInMemory();
    deployed.settings.invocations.set(worker.function, invoked(6));
    deployed.changeQueue(worker.queue, { messages: 1 });
    plant(deployed);
    return (await statusOf(deployed.resources)).report.wiring.problems.map(({ problem }) => problem);
  };
  expect(await found(({ changeRule }) => changeRule('bus|worker-rule', { enabled: false }))).toEqual([
    'rule-disabled',
    'invocations-fail',
  ]);
  expect(await found((deployed) => disableMapping(deployed, worker.function))).toEqual(['mapping-disabled']);
  expect(await found(({ reserved }) => reserved.set(worker.function, 0))).toEqual(['concurrency-zero']);
});

describe('the status finds, and names the command that repairs it:', () => {
  const PLANTS: Readonly<Record<string, (deployed: Deployed) => void>> = {
    'the mapping of a consumer that is disabled': (deployed) => disableMapping(deployed, worker.function),
    'the mapping of the stream relay that is disabled': (deployed) =>
      disableMapping(deployed, directory.mailroom.streamFunction),
    'a consumer that no longer has a mapping': ({ mappings }) => mappings.delete(worker.function),
    'a mapping of a stream that the table no longer has': ({ table }) => {
      table.streamArn = `${table.streamArn}-new`;
    },
    'a stream that is off': ({ table }) => {
      table.streamArn = undefined;
    },
    'a consumer without concurrency': ({ reserved }) => reserved.set(worker.function, 0),
    'a relay without concurrency': ({ reserved }) => reserved.set(directory.mailroom.sweepFunction, 0),
    'a function that was deleted': ({ reserved }) => reserved.delete(worker.function),
    'the rule of a consumer that is disabled': ({ changeRule }) =>
      changeRule('bus|worker-rule', { enabled: false }),
    'the rule of a consumer that was deleted': ({ rules }) => rules.delete('bus|worker-rule'),
    'a rule that delivers elsewhere': ({ changeRule }) =>
      changeRule('bus|worker-rule', { targets: [targetOf('other')] }),
    'a rule that matches other events': ({ changeRule }) =>
      changeRule('bus|worker-rule', { pattern: '{"source":["others"]}' }),
    'a schedule that is disabled': ({ changeRule }) => changeRule('default|sweep-rule', { enabled: false }),
    'a schedule that was deleted': ({ rules }) => rules.delete('default|sweep-rule'),
    'a schedule that invokes something else': ({ changeRule }) =>
      changeRule('default|sweep-rule', { targets: [targetOf('arn:aws:lambda:x:1:function:x')] }),
  };

  test('each problem is found alone, with the command that repairs it', async () => {
    const shown: string[] = [];
    for (const [what, plant] of Object.entries(PLANTS)) {
      const deployed = resourcesInMemory();
      plant(deployed);
      const { report, text } = await statusOf(deployed.resources);
      const [found, ...others] = report.wiring.problems;
      expect({ what, others, ok: report.ok, state: report.state }).toEqual({
        what,
        others: [],
        ok: false,
        state: 'broken',
      });
      const [first = '', ...rest] = stripVTControlCharacters(text).split('\n');
      expect(first).toMatch(/1 problem/);
      shown.push(`# ${what}: ${found?.part}: ${found?.problem}`, ...rest.slice(0, rest.indexOf('')), '');
    }
    await expect(shown.join('\n')).toMatchFileSnapshot('captures/status-problems.txt');
  });

  test('a disabled rule stops every event of its consumer; after the repair, the audit finds what was missed', async () => {
    const deployed = resourcesInMemory();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const { text } = await statusOf(deployed.resources);
    expect(stripVTControlCharacters(text)).toMatch(
      /^ {4}aws events enable-rule .*\n {4}mailroom audit --since 24h$/m,
    );
  });

  test('a problem whose repair --json has as the text prints it, with region and endpoint', async () => {
    const deployed = resourcesInMemory();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const { report } = await statusOf(deployed.resources);
    const repaired = {
      fix: ['aws', 'events', 'enable-rule', '--name', 'worker-rule', '--event-bus-name', 'bus'],
      commands: [
        'aws events enable-rule --name worker-rule --event-bus-name bus --region eu-west-1',
        'mailroom audit --since 24h',
        'aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=DisableRule --max-results 5 --region eu-west-1',
      ],
    };
    expect(statusJson(report, lines)).toMatchObject({ wiring: { problems: [repaired] } });
  });

  test('a bus that was deleted, once, and not each of its rules', async () => {
    const deployed = resourcesInMemory();
    deployed.buses.clear();
    deployed.rules.delete('bus|worker-rule');
    const { report, text } = await statusOf(deployed.resources);
    expect(report.wiring.problems.map(({ problem }) => problem)).toEqual(['no-bus']);
    expect(text).toContain('npx cdk deploy mailroom-dev dev/Things --revert-drift');
  });
});

test('a check that the caller may not make is not a success: it is named with the action that it needs', async () => {
  const deny = (action: string) => () =>
    Promise.reject(Object.assign(new Error(`no ${action}`), { name: 'AccessDeniedException' }));
  const { resources } = resourcesInMemory();
  const denied = {
    ...resources,
    mappings: deny('lambda:ListEventSourceMappings'),
    hasBus: deny('events:DescribeEventBus'),
  };
  const { report, text } = await statusOf(denied);
  expect(report).toMatchObject({
    ok: false,
    state: 'look',
    wiring: {
      problems: [],
      notChecked: [
        { needs: ['lambda:ListEventSourceMappings'], parts: ['stream relay', 'worker'] },
        { needs: ['events:DescribeEventBus'], parts: ['bus'] },
      ],
    },
  });
  expect(text).not.toMatch(/nothing visible is broken|lost events/);
  expect(text).toContain('lambda:ListEventSourceMappings');
});

test('any other failure of a check fails the status, instead of passing for a result', async () => {
  const { resources } = resourcesInMemory();
  const failing = { ...resources, table: () => Promise.reject(new Error('no answer')) };
  await expect(statusOf(failing)).rejects.toThrow('no answer');
});

test('an entry of an older version, which does not name the rule of the schedule, is read', async () => {
  const { sweepRule: _, ...older } = directory.mailroom;
  const { report } = await statusOf(resourcesInMemory().resources, { ...directory, mailroom: older });
  expect(report).toMatchObject({ ok: true, wiring: { problems: [], notChecked: [] } });
});

describe('the external events of a consumer', () => {
  const Charged = { source: 'stripe', type: 'charge.succeeded', external: { id: ['id'] } };
  const externalRule = { name: 'external-rule', bus: 'default' };
  const deployedRule = {
    enabled: true,
    pattern: JSON.stringify({ source: ['stripe'], 'detail-type': ['charge.succeeded'] }),
    targets: [{ ...targetOf(queueArn(worker.queue)), deadLetterQueue: queueArn(worker.undeliveredQueue) }],
  };
  const entries = {
    ...directory,
    consumers: [{ ...worker, events: [ThingHappened, Charged], externalRule }],
  };
  const existing = {
    ...directory,
    consumers: [{ ...worker, events: [Charged], rule: undefined, undeliveredQueue: undefined }],
  };

  test('have their own rule, and the other one does not match them', async () => {
    const deployed = resourcesInMemory(entries);
    deployed.rules.set('default|external-rule', deployedRule);
    const { report } = await statusOf(deployed.resources, entries);
    expect(report.wiring.problems).toEqual([]);
  });

  test('do not arrive when their rule is disabled: the repair is named, and that the audit does not find what was lost', async () => {
    const deployed = resourcesInMemory(entries);
    deployed.rules.set('default|external-rule', { ...deployedRule, enabled: false });
    const { report, text } = await statusOf(deployed.resources, entries);
    expect(report.wiring.problems).toMatchObject([{ part: worker.name, problem: 'rule-disabled' }]);
    expect(unwrapped(text)).not.toContain('mailroom audit --since 24h');
    expect(unwrapped(text)).toContain('aws events enable-rule --name external-rule --event-bus-name default');
  });

  test('external events of an existing queue need no rule', async () => {
    const deployed = resourcesInMemory(directory);
    const { report, text } = await statusOf(deployed.resources, existing);
    expect(report.wiring.problems).toEqual([]);
    expect(text).not.toContain('rule:worker');
  });
});
