import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { RoleNeed } from '../../../cli/reports/checks/role-checks.ts';
import { doctorReport, doctorText } from '../../../cli/reports/findings/doctor.ts';
import { type DoctorDeps, examine } from '../../../cli/reports/findings/examination.ts';
import { COLUMNS } from '../../../cli/terminal/prose.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { EntryStack } from '../../../lambdas/runtime/operations/directory.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { directory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';

type Deployed = ReturnType<typeof resourcesInMemory>;

const lines = {
  commandLine: (command: string) => `npx cdk-mailroom ${command} --stage dev`,
  awsLine: (command: string) => `aws ${command} --region eu-west-1`,
};

async function examined(deps: DoctorDeps) {
  const found = await examine(deps);
  const report = doctorReport(deps.directory, 'eu-west-1', deps.now, found);
  return { ...report, text: doctorText(report, lines) };
}

test('a healthy Mailroom has no problem', async () => {
  const { problems, notChecked, skipped } = await examined(resourcesInMemory().deps);
  expect({ problems, notChecked }).toEqual({ problems: [], notChecked: [] });
  expect(skipped).toEqual(['roles: a local engine checks no policies']);
});

const { sweepFunction } = directory.mailroom;
const DEPLOY_WORKER = 'npx cdk deploy dev/Things --revert-drift';

describe('the doctor finds, and names the command that repairs it:', () => {
  const PLANTS: Readonly<Record<string, (deployed: Deployed) => void>> = {
    'what status finds: a rule that is disabled': ({ changeRule }) =>
      changeRule('bus|worker-rule', { enabled: false }),
    'a function that Lambda cannot run': ({ changeFunction }) =>
      changeFunction(worker.function, { failure: 'The key is disabled.' }),
    'a consumer with a variable missing': ({ changeEnvironment }) =>
      changeEnvironment(worker.function, { MAILROOM_LEASE_MS: '' }),
    'a consumer on another table': ({ changeEnvironment }) =>
      changeEnvironment(worker.function, { MAILROOM_TABLE: 'old-table' }),
    'a consumer that writes to shards that the relay does not read': ({ changeEnvironment }) =>
      changeEnvironment(worker.function, { MAILROOM_SHARDS: '256' }),
    'a relay that publishes to another bus': ({ changeEnvironment }) =>
      changeEnvironment(sweepFunction, { MAILROOM_BUS: 'old-bus' }),
    'a sweep that runs and completes nothing': ({ deps }) =>
      Object.assign(deps, { sweptAt: async () => deps.now - 301_000 }),
    'a stack deployed with a version older than the rows': ({ deps }) =>
      Object.assign(deps, {
        directory: { ...directory, consumers: [{ ...worker, schema: 0 }] },
      }),
    'rows newer than the command': ({ deps }) => Object.assign(deps, { rowSchema: async () => 99 }),
    'an account with less concurrency than functions': ({ settings }) => {
      settings.concurrency = { limit: 10, unreserved: 2 };
    },
    'an account that came close to its limit': ({ settings }) => {
      settings.peak = 900;
    },
    'alarms whose actions are disabled': ({ settings, alarm }) => {
      settings.alarms = [alarm('a', { actionsEnabled: false }), alarm('b', { actionsEnabled: false })];
    },
    'an alarm without an action': ({ settings, alarm }) => {
      settings.alarms = [alarm('mailroom-ops-Stuck-1A', { actions: [] })];
    },
    'an alarm that fires': ({ settings, alarm }) => {
      settings.alarms = [alarm('a', { isFiring: true })];
    },
    'an alarm that fires and names a command, by that command': ({ settings, alarm }) => {
      const description =
        'Dead.\nRun first: npx cdk-mailroom dlq list dead --region eu-west-1 --stack mailroom-dev\nThen read: x';
      settings.alarms = [alarm('a', { isFiring: true, description })];
    },
    'an alarm that fires and searches a log, by that search': ({ settings, alarm }) => {
      const description =
        'Off.\nRun first: aws logs tail g --since 1d --filter-pattern t --region eu-west-1\nThen read: x';
      settings.alarms = [alarm('ops-A-1', {}), alarm('ops-B-1', { isFiring: true, description })];
    },
    'no alarms': ({ settings }) => {
      settings.alarms = [];
    },
    'a queue whose visibility timeout was changed': ({ changeMember }) =>
      changeMember('workerQueue', 'VisibilityTimeout', 10),
    'a queue policy with another statement': ({ declared, changeMember }) => {
      const policy = declared.find(({ logicalId }) => logicalId === 'workerQueuePolicy')?.properties;
      const { Statement } = { ...(policy?.PolicyDocument as { Statement: readonly object[] }) };
      const deny = { Effect: 'Deny', Principal: '*', Action: 'sqs:ReceiveMessage' };
      changeMember('workerQueuePolicy', 'PolicyDocument', { Statement: [deny, ...Statement] });
    },
    'a dead-letter queue that was deleted': ({ removeResource }) => removeResource('workerDeadLetters'),
    'a variable that may be a secret': ({ changeMember }) =>
      changeMember('workerFunction', 'Environment', {
        Variables: { MAILROOM_TABLE: 'Mailroom', API_KEY: 'x' },
      }),
    'a clock of this machine that is ahead': ({ deps }) => Object.assign(deps, { machineAheadMs: 60_000 }),
  };

  test('each problem is found alone, with the command that repairs it', async () => {
    const shown: string[] = [];
    for (const [what, plant] of Object.entries(PLANTS)) {
      const deployed = resourcesInMemory();
      plant(deployed);
      const { problems, ok, text } = await examined(deployed.deps);
      expect(problems, what).toHaveLength(1);
      expect(ok).toBe(false);
      const plain = stripVTControlCharacters(text);
      const prose = plain.split('\n').filter((line) => !/^ {4}(aws|npx|npm|sudo) /.test(line));
      expect(prose.filter((line) => line.length > COLUMNS)).toEqual([]);
      const found = problems.map(({ part, problem }) => `${part}: ${problem}`);
      shown.push([`# ${what}: ${found}`, plain.slice(plain.indexOf('•')), ''].join('\n'));
    }
    await expect(shown.join('\n')).toMatchFileSnapshot('captures/doctor-problems.txt');
  });
});

describe('the comparison with the stacks', () => {
  const denied = () => {
    const message = 'User: me is not authorized to perform: cloudformation:GetTemplate on resource: x';
    return Promise.reject(Object.assign(new Error(message), { name: 'AccessDenied' }));
  };

  test('does not repeat what a check of the flow reports', async () => {
    const deployed = resourcesInMemory();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    deployed.changeMember('workerRule', 'State', 'DISABLED');
    deployed.reserved.set(worker.function, 0);
    deployed.changeMember('workerFunction', 'ReservedConcurrentExecutions', 0);
    deployed.queues.delete(worker.queue);
    deployed.removeResource('workerQueue');
    deployed.removeResource('workerDeadLetters');
    const { problems } = await examined(deployed.deps);
    const differences = problems.filter(({ problem }) => problem === 'differs');
    expect(differences.map(({ resource }) => resource)).toEqual(['workerDeadLetters']);
    const others = problems.filter(({ problem }) => problem !== 'differs').map(({ problem }) => problem);
    expect(others).toEqual(expect.arrayContaining(['rule-disabled', 'concurrency-zero', 'no-queue']));
  });

  test('names what a person changed and may change, and still finds no problem', async () => {
    const { deps, changeMember } = resourcesInMemory();
    changeMember('workerFunction', 'ReservedConcurrentExecutions', 5);
    const { ok, problems, allowed, text } = await examined(deps);
    expect({ ok, problems }).toEqual({ ok: true, problems: [] });
    expect(allowed).toMatchObject([
      { type: 'AWS::Lambda::Function', member: 'ReservedConcurrentExecutions' },
    ]);
    expect(unwrapped(text)).toContain('changed, as a person may: worker: ReservedConcurrentExecutions');
  });

  test('counts what it does not compare', async () => {
    const { deps, declared } = resourcesInMemory();
    const stack = directory.mailroom;
    const logs = { type: 'AWS::Logs::LogGroup', physicalId: 'logs', part: 'sweep', stack, properties: {} };
    declared.push({ ...logs, logicalId: 'Logs' }, { ...logs, logicalId: 'OtherLogs' });
    const { ok, notCompared, text } = await examined(deps);
    expect({ ok, notCompared }).toEqual({
      ok: true,
      notCompared: [{ type: 'AWS::Logs::LogGroup', why: 'unknown type', count: 2 }],
    });
    expect(text).toContain('not compared: 2 Logs::LogGroup');
  });

  test('of a stack that the caller may not read is not made, and the action that it lacks is named', async () => {
    const { deps } = resourcesInMemory();
    const declarations = {
      of: ({ stack }: { stack: string }) =>
        stack === worker.stack ? denied() : deps.declarations.of({ stack }),
    };
    const { ok, notChecked, compared } = await examined({ ...deps, declarations });
    expect(ok).toBe(false);
    expect(notChecked).toEqual([{ needs: ['cloudformation:GetTemplate'], parts: [worker.name] }]);
    expect(compared.resources).toBe(3);
  });

  test.each([
    [
      'that CloudFormation does not have',
      async () => undefined,
      `CloudFormation has no stack ${worker.stack}`,
    ],
    [
      'that is being deployed',
      () => Promise.reject(new MailroomError('NOT_COMPARED', 'The stack is being deployed')),
      'The stack is being deployed',
    ],
  ])('of a stack %s is not made, and the reason is named', async (_, of, why) => {
    const { deps } = resourcesInMemory();
    const declarations = {
      of: (stack: EntryStack) => (stack.stack === worker.stack ? of() : deps.declarations.of(stack)),
    };
    const { ok, notChecked, text } = await examined({ ...deps, declarations });
    expect(ok).toBe(false);
    expect(notChecked).toEqual([{ needs: [], parts: [worker.name], why }]);
    expect(unwrapped(text)).toContain(`not checked: ${worker.name}; ${why}`);
  });

  test('of a resource that the caller may not read is not made, and the others are', async () => {
    const { deps } = resourcesInMemory();
    const of: typeof deps.properties.of = (resource) =>
      resource.type === 'AWS::Events::Rule' ? denied() : deps.properties.of(resource);
    const { notChecked, compared } = await examined({ ...deps, properties: { of } });
    expect(notChecked).toEqual([
      { needs: ['events:DescribeRule', 'events:ListTargetsByRule'], parts: [worker.name] },
    ]);
    expect(compared.resources).toBe(8);
  });
});

describe('an existing queue, which no stack declares, must fit its consumer:', () => {
  const existing = { ...worker, rule: undefined, undeliveredQueue: undefined };

  const found = async (plant: (deployed: Deployed) => void) => {
    const deployed = resourcesInMemory({ ...directory, consumers: [existing] });
    plant(deployed);
    const { problems } = await examined(deployed.deps);
    return problems
      .filter(({ part, problem }) => part === worker.name && problem !== 'differs')
      .map(({ problem, resource }) => [problem, resource ?? ''].join(' ').trim());
  };
  const redrive = (change: object) => (deployed: Deployed) => {
    const { redrive: policy = '{}' } = deployed.queues.get(worker.queue) ?? {};
    deployed.changeQueue(worker.queue, { redrive: JSON.stringify({ ...JSON.parse(policy), ...change }) });
  };

  test.each<[string, (deployed: Deployed) => void, string[]]>([
    ['as it is', () => {}, []],
    ['visibility', ({ changeQueue }) => changeQueue(worker.queue, { visibilityS: 60 }), ['visibility']],
    [
      'no redrive policy',
      ({ changeQueue }) => changeQueue(worker.queue, { redrive: undefined }),
      ['redrive'],
    ],
    ['another dead-letter queue', redrive({ deadLetterTargetArn: 'other' }), ['redrive']],
    ['too few receives', redrive({ maxReceiveCount: worker.maxAttempts }), ['redrive receives']],
    [
      'a retention beyond that of the inbox',
      ({ changeQueue }) => changeQueue(worker.queue, { retentionS: worker.inboxRetentionDays * 86_400 }),
      ['retention inbox'],
    ],
  ])('%s', async (_, plant, problems) => {
    expect(await found(plant)).toEqual(problems);
  });
});

test('alarms of a composite alarm that notifies need no action, however deep they are', async () => {
  const { deps, settings, alarm } = resourcesInMemory();
  settings.alarms = [
    alarm('window', { actions: [] }),
    alarm('slow', { actions: [], rule: 'ALARM("window")' }),
    alarm('page', { rule: 'ALARM("arn:aws:cloudwatch:eu-west-1:111122223333:alarm:slow")' }),
  ];
  expect((await examined(deps)).problems).toEqual([]);
});

test('a sweep that cannot run is not reported as silent, too', async () => {
  const deployed = resourcesInMemory();
  Object.assign(deployed.deps, { sweptAt: async () => 0 });
  deployed.reserved.set(sweepFunction, 0);
  const { problems } = await examined(deployed.deps);
  expect(problems.map(({ problem }) => problem)).toEqual(['concurrency-zero']);
});

test('a check that the caller may not make is named with the action that it lacks, and the doctor does not say that all is well', async () => {
  const { deps } = resourcesInMemory();
  const deny = (action: string) => () =>
    Promise.reject(
      Object.assign(new Error(`User: me is not authorized to perform: ${action} on resource: x`), {
        name: 'AccessDeniedException',
      }),
    );
  const resources = {
    ...deps.resources,
    concurrency: deny('lambda:GetAccountSettings'),
    queue: deny('sqs:GetQueueAttributes'),
    alarms: deny('cloudwatch:DescribeAlarms'),
  };
  const { ok, problems, notChecked, text } = await examined({ ...deps, resources });
  expect({ ok, problems }).toEqual({ ok: false, problems: [] });
  expect(notChecked).toEqual([
    { needs: ['sqs:GetQueueAttributes'], parts: [worker.name, 'account'] },
    { needs: ['lambda:GetAccountSettings'], parts: ['account'] },
    { needs: ['cloudwatch:DescribeAlarms'], parts: ['alarms'] },
  ]);
  expect(text).not.toContain('no problem');
});

test('a pause that the caller may not read is not checked, and the lacking action is that of the operations log', async () => {
  const { deps, changeMapping } = resourcesInMemory();
  changeMapping(worker.function, { enabled: false });
  const denied = Object.assign(new Error('not authorized to perform: dynamodb:Query'), {
    name: 'AccessDeniedException',
  });
  const { problems, notChecked } = await examined({ ...deps, pauses: () => Promise.reject(denied) });
  expect(problems).toEqual([]);
  expect(notChecked).toEqual([{ needs: ['dynamodb:Query'], parts: [worker.name] }]);
});

test('a sweep whose interval the caller may not read is silent after five minutes', async () => {
  const { deps } = resourcesInMemory();
  const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
  const resources = { ...deps.resources, function: () => Promise.reject(denied) };
  const sweptAt = async () => deps.now - 301_000;
  const { problems, notChecked } = await examined({ ...deps, resources, sweptAt });
  expect(problems.map(({ problem }) => problem)).toEqual(['sweep-silent']);
  expect(notChecked).toMatchObject([{ needs: ['lambda:GetFunctionConfiguration'] }]);
});

test('a check whose operation a local engine does not have is not made, and the others are', async () => {
  const { deps } = resourcesInMemory();
  const unknown = Object.assign(new Error('An unknown operation was requested.'), {
    name: 'UnknownOperationException',
  });
  const resources = { ...deps.resources, concurrency: () => Promise.reject(unknown) };
  const { ok, problems, notChecked, skipped } = await examined({ ...deps, resources });
  expect({ ok, problems, notChecked }).toEqual({ ok: true, problems: [], notChecked: [] });
  // No permission would change that.
  expect(skipped).toContain('account: this endpoint does not support lambda:GetAccountSettings');
});

test('any other failure of a check fails the doctor, instead of passing for a result', async () => {
  const { deps } = resourcesInMemory();
  const resources = { ...deps.resources, alarms: () => Promise.reject(new Error('no answer')) };
  await expect(examine({ ...deps, resources })).rejects.toThrow('no answer');
});

test('progress counts the checks up to all of them', async () => {
  const seen: string[] = [];
  const { checks } = await examine(resourcesInMemory().deps, (made, all) => seen.push(`${made}/${all}`));
  expect(seen).toHaveLength(checks);
  expect(seen.at(-1)).toBe(`${checks}/${checks}`);
});

describe('roles', () => {
  const refusing = (action: string) => {
    const needed: RoleNeed[] = [];
    return {
      needed,
      denied: async (_role: string, need: RoleNeed) => {
        needed.push(need);
        return need.actions.filter((one) => one === action);
      },
    };
  };

  test('a role that lacks an action is named with the resource', async () => {
    const { deps } = resourcesInMemory();
    const { problems, text } = await examined({ ...deps, roles: refusing('sqs:DeleteMessage') });
    expect(problems).toMatchObject([{ part: worker.name, problem: 'role' }]);
    expect(unwrapped(text)).toContain(
      'the role of worker may not sqs:DeleteMessage on arn:aws:sqs:eu-west-1:111122223333:queue: its calls fail',
    );
    expect(text).toContain(DEPLOY_WORKER);
  });

  test('a consumer needs the outbox only if it publishes', async () => {
    const { deps, changeEnvironment } = resourcesInMemory();
    const outboxOf = async () => {
      const roles = refusing('none');
      await examine({ ...deps, roles });
      return roles.needed.filter(
        ({ actions, context }) =>
          actions.includes('dynamodb:PutItem') && context?.values[0]?.startsWith('OUTBOX#'),
      );
    };
    expect(await outboxOf()).toHaveLength(1);
    changeEnvironment(worker.function, { MAILROOM_PUBLISHES: '[]' });
    expect(await outboxOf()).toHaveLength(0);
  });
});
