import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { READERS } from '../../../../../cli/deployment/deployed-properties.ts';
import { readPolicy } from '../../../../../cli/page/server/read-policy.ts';
import type { Directory } from '../../../../../lambdas/runtime/operations/directory.ts';
import { directory, mailroomInMemory, worker } from '../../support/mailroom-in-memory.ts';
import { runInMemory } from '../../support/run-in-memory.ts';

const SQS = 'https://sqs.eu-west-1.amazonaws.com/111122223333';

const deployed: Directory = {
  mailroom: {
    ...directory.mailroom,
    failureQueue: `${SQS}/failures`,
    heartbeat: { function: 'heartbeat-function', rule: 'heartbeat-rule', everyMs: 60_000 },
  },
  consumers: [
    {
      ...worker,
      queue: `${SQS}/worker`,
      deadLetterQueue: `${SQS}/worker-dead`,
      undeliveredQueue: `${SQS}/worker-undelivered`,
      // CloudFormation's reference to a rule of a custom bus.
      rule: `bus|${worker.rule}`,
      externalRule: { name: 'external-rule', bus: 'default' },
    },
  ],
};

const FUNCTIONS = ['stream-function', 'sweep-function', 'heartbeat-function', 'worker-function'];

/** Parts of which the directory has no name. */
const STACKS = [directory.mailroom.stack, worker.stack].map((stack) => `${stack}-*`);

const place = { account: '111122223333', region: 'eu-west-1' };

/** The actions in a cell of a table: `dynamodb:Query`, `GetItem` is two actions of DynamoDB. */
function actionsIn(cell: string): string[] {
  let service = '';
  return [...cell.matchAll(/`(?:([a-z]+):)?([A-Z]\w+)`/g)].map(([, named, action]) => {
    service = named ?? service;
    return `${service}:${action}`;
  });
}

/** The rows of the table of permissions in docs/cli-permissions.md. */
async function documented(): Promise<(readonly [commands: string, actions: readonly string[]])[]> {
  const page = await readFile('docs/cli-permissions.md', 'utf8');
  return [...page.matchAll(/^\| (.+?) \| (.+) \|$/gm)].map(([, commands = '', cell = '']) => [
    commands,
    actionsIn(cell),
  ]);
}

test('the policy allows the actions that docs/cli-permissions.md lists for reading, except to invoke a function', async () => {
  const rows = await documented();
  const firstChange = rows.findIndex(([commands]) => commands === '`ui`');
  const reading = new Set(rows.slice(0, firstChange).flatMap(([, actions]) => actions));
  expect(reading.delete('lambda:InvokeFunction')).toBe(true);
  const allowed = readPolicy(deployed, place).Statement.flatMap(({ Action }) => Action);
  expect(allowed.toSorted()).toEqual([...reading].sort());
});

test('the policy allows no action that writes a row, sends a message or runs code', () => {
  const allowed = readPolicy(deployed, place).Statement.flatMap(({ Action }) => Action);
  const reads = /:(?:Get|BatchGet|List|Describe|Query|PartiQLSelect|Simulate)\w*$/;
  expect(allowed.filter((action) => !reads.test(action))).toEqual([
    'sqs:ReceiveMessage',
    'sqs:ChangeMessageVisibility',
  ]);
});

test('the policy allows what the comparison with the stacks reads, except to decrypt', () => {
  const allowed = readPolicy(deployed, place).Statement.flatMap(({ Action }) => Action);
  const needed = Object.values(READERS).flatMap(({ actions }) => actions);
  expect(needed.filter((action) => !allowed.includes(action))).toEqual(['kms:Decrypt']);
});

test('the policy names the resources of this Mailroom, and a dead letter is the only message that may be received', () => {
  const statements = readPolicy(deployed, place, 'aws-cn').Statement;
  const resources = Object.fromEntries(statements.map(({ Sid, Resource }) => [Sid, Resource]));
  const arn = (service: string, name: string) => `arn:aws-cn:${service}:eu-west-1:111122223333:${name}`;
  expect(resources).toEqual({
    MailroomDirectory: ['mailroom', 'mailroom/*', 'mailroom-buses/*'].map((name) =>
      arn('ssm', `parameter/${name}`),
    ),
    MailroomRows: [arn('dynamodb', `table/${directory.mailroom.table}`)],
    MailroomQueues: expect.arrayContaining([arn('sqs', 'worker'), arn('sqs', 'worker-dead')]),
    MailroomDeadLetters: ['failures', 'worker-undelivered', 'worker-dead'].map((name) => arn('sqs', name)),
    MailroomBus: [arn('events', 'event-bus/bus')],
    MailroomRules: [
      'sweep-rule',
      'heartbeat-rule',
      'bus/worker-rule',
      'external-rule',
      'bus/*',
      ...STACKS,
    ].map((name) => arn('events', `rule/${name}`)),
    MailroomFunctions: [...FUNCTIONS, ...FUNCTIONS.map((name) => `${name}:*`), ...STACKS].map((name) =>
      arn('lambda', `function:${name}`),
    ),
    MailroomMappings: [arn('lambda', 'event-source-mapping:*')],
    MailroomStacks: [directory.mailroom.stack, worker.stack].map((name) =>
      arn('cloudformation', `stack/${name}/*`),
    ),
    MailroomAccount: ['*'],
    MailroomKeys: [arn('kms', 'key/*')],
    MailroomRoles: ['arn:aws-cn:iam::111122223333:role/*'],
  });
});

test('ui --policy prints the policy and stops', async () => {
  const mailroom = { ...mailroomInMemory([]), directory: deployed };
  const expected = readPolicy(deployed, place);
  for (const argv of [
    ['ui', '--policy'],
    ['ui', '--policy', '--json'],
  ]) {
    const { code, out, err } = await runInMemory(mailroom, argv);
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toEqual(expected);
  }
});
