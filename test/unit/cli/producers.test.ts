import { LambdaClient, ListFunctionsCommand } from '@aws-sdk/client-lambda';
import { GetParametersByPathCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { awsResources } from '../../../cli/deployment/aws-resources.ts';
import type { Clients } from '../../../cli/deployment/clients.ts';
import { doctorReport, doctorText } from '../../../cli/reports/findings/doctor.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { atOnceSettings, producerSettings } from '../../../lambdas/runtime/base/config.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { directory as deployed, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';

const directory: Directory = {
  ...deployed,
  mailroom: { ...deployed.mailroom, sources: ['orders', 'things'] },
};
const { table, shards, bus } = directory.mailroom;

/** The variables of a producer as docs/without-cdk.md lists them. */
const VARIABLES = producerSettings.encode({
  service: 'orders',
  publishes: ['OrderPlaced'],
  tableName: table,
  shards,
  bornLeaseMs: 30_000,
});

const AT_ONCE = {
  ...VARIABLES,
  ...atOnceSettings.encode({ busName: bus, timeoutMs: 1_000, publishedRetentionDays: 7 }),
};

async function found(environment: Readonly<Record<string, string>>, tables: readonly string[] = []) {
  const { deps, addFunction, settings } = resourcesInMemory(directory);
  addFunction('place-order', environment);
  settings.tables.push(...tables);
  const examination = await examine({ ...deps, directory });
  const lines = {
    commandLine: (command: string) => `npx cdk-mailroom ${command}`,
    awsLine: (command: string) => `aws ${command}`,
  };
  const report = doctorReport(directory, 'eu-west-1', deps.now, examination);
  return { problems: examination.problems, text: unwrapped(doctorText(report, lines)) };
}

describe('the doctor names the setting of a producer by which its events are lost silently', () => {
  test('more shards than the Mailroom, with the command that publishes what waits there', async () => {
    const { problems, text } = await found({ ...VARIABLES, MAILROOM_SHARDS: '16' });
    expect(problems).toMatchObject([
      {
        ...{ part: 'producers', problem: 'producer', resource: 'place-order MAILROOM_SHARDS' },
        fix: expect.arrayContaining(['describe-stack-resources', 'place-order']),
        ...{ member: 'Environment.Variables.MAILROOM_SHARDS', declared: `${shards}`, deployed: '16' },
      },
    ]);
    expect(text).toContain(`place-order has MAILROOM_SHARDS 16 instead of ${shards}`);
    expect(text).toContain('npx cdk-mailroom sweep --since 24h --shards 16');
    expect(text).not.toContain('update-function-configuration');
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'a table that no Mailroom has',
      { ...VARIABLES, MAILROOM_TABLE: 'old' },
      `place-order has MAILROOM_TABLE old instead of ${table}`,
    ],
    [
      'a source that is not declared',
      { ...VARIABLES, MAILROOM_SERVICE: 'order' },
      'place-order has MAILROOM_SERVICE order instead of orders or things',
    ],
    [
      'another bus',
      { ...AT_ONCE, MAILROOM_BUS: 'default' },
      `place-order has MAILROOM_BUS default instead of ${bus}`,
    ],
    [
      'shards that are not a number',
      { ...VARIABLES, MAILROOM_SHARDS: 'eight' },
      'place-order cannot write events: Environment variable MAILROOM_SHARDS is "eight"',
    ],
  ])('%s', async (_what, environment, said) => {
    const { problems, text } = await found(environment);
    expect(problems).toHaveLength(1);
    expect(text).toContain(said);
  });
});

test('a consumer with more shards than the Mailroom is restored by the deployment of its stack', async () => {
  const { deps, changeEnvironment } = resourcesInMemory();
  changeEnvironment(worker.function, { MAILROOM_SHARDS: '256' });
  const { problems } = await examine(deps);
  expect(problems).toMatchObject([
    {
      resource: `${worker.function} MAILROOM_SHARDS`,
      fix: ['npx', 'cdk', 'deploy', 'dev/Things', '--revert-drift'],
      followUp: ['npx', 'cdk-mailroom', 'sweep', '--since', '24h', '--shards', '256'],
    },
  ]);
});

test('a variable that its stack declares otherwise is one problem, which the deployment of the stack repairs', async () => {
  const { deps, declared, changeMember, changeEnvironment } = resourcesInMemory();
  const own = declared.find(({ physicalId }) => physicalId === worker.function);
  changeMember(own?.logicalId ?? '', 'Environment', { Variables: { MAILROOM_SHARDS: '256' } });
  changeEnvironment(worker.function, { MAILROOM_SHARDS: '256' });
  const { problems } = await examine(deps);
  expect(problems.filter(({ member }) => member === 'Environment.Variables.MAILROOM_SHARDS')).toMatchObject([
    { problem: 'differs', fix: ['npx', 'cdk', 'deploy', 'dev/Things', '--revert-drift'] },
  ]);
});

test.each<[string, Record<string, string>, (readonly string[])?]>([
  ['with the settings of the Mailroom', VARIABLES],
  ['with fewer shards, all of which the sweep reads', { ...VARIABLES, MAILROOM_SHARDS: '1' }],
  ['of another Mailroom', { ...VARIABLES, MAILROOM_TABLE: 'prod' }, ['prod']],
  ['of another service with another table', { ...VARIABLES, MAILROOM_SERVICE: 'mail', MAILROOM_TABLE: 'x' }],
  [
    'that publishes at once, with the ARN of the bus',
    { ...AT_ONCE, MAILROOM_BUS: `arn:aws:events:eu-west-1:111122223333:event-bus/${bus}` },
  ],
  ['that does not publish at once, with another bus', { ...VARIABLES, MAILROOM_BUS: 'default' }],
  ['that publishes nothing', { ...VARIABLES, MAILROOM_PUBLISHES: '[ ]', MAILROOM_SHARDS: '256' }],
])('a function %s is not a problem', async (_what, environment, tables) => {
  expect((await found(environment, tables)).problems).toEqual([]);
});

describe('in AWS', () => {
  const lambda = new LambdaClient({ region: 'eu-west-1' });
  const ssm = new SSMClient({ region: 'eu-west-1' });
  const resources = awsResources({ lambdaReads: lambda, ssm } as unknown as Clients, table, systemClock);
  afterEach(() => vi.restoreAllMocks());

  test('the functions of all pages that write events are read, with the variables of Mailroom only', async () => {
    const PAGES = [
      {
        NextMarker: '2',
        Functions: [
          { FunctionName: 'other', Environment: { Variables: { PASSWORD: 'x' } } },
          { FunctionName: 'none' },
        ],
      },
      {
        Functions: [
          { FunctionName: 'place-order', Environment: { Variables: { ...VARIABLES, PASSWORD: 'x' } } },
        ],
      },
    ];
    vi.spyOn(lambda, 'send').mockImplementation(async (command: unknown) => {
      if (!(command instanceof ListFunctionsCommand)) throw new Error('another call');
      return PAGES[command.input.Marker === undefined ? 0 : 1];
    });
    expect(await resources.writers()).toEqual([{ name: 'place-order', environment: VARIABLES }]);
  });

  test('a table has a Mailroom if it has entries in the directory', async () => {
    vi.spyOn(ssm, 'send').mockImplementation(async (command: unknown) => {
      if (!(command instanceof GetParametersByPathCommand)) throw new Error('another call');
      return {
        Parameters: command.input.Path === '/mailroom/prod' ? [{ Name: '/mailroom/prod/mailroom' }] : [],
      };
    });
    expect(await Promise.all(['prod', 'old'].map(resources.hasMailroom))).toEqual([true, false]);
  });
});
