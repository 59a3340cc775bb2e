import { describe, expect, test } from 'vitest';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { directory, queueArn, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, targetOf } from './support/resources-in-memory.ts';

const QUEUE = queueArn(worker.queue);
const KEY = 'arn:aws:kms:eu-west-1:111122223333:key/k';

async function problemsAfter(plant: (deployed: ReturnType<typeof resourcesInMemory>) => void) {
  const deployed = resourcesInMemory();
  plant(deployed);
  const { problems } = await examine(deployed.deps);
  return problems.map(({ part, problem, text, fix }) => ({ part, problem, text, fix: fix.join(' ') }));
}

describe('the doctor finds what takes messages away from a consumer', () => {
  test('another function that reads its queue', async () => {
    const found = await problemsAfter(({ readers }) =>
      readers.set(QUEUE, [...(readers.get(QUEUE) ?? []), { uuid: 'u-1', function: 'debug' }]),
    );
    expect(found).toEqual([
      {
        part: 'worker',
        problem: 'foreign-mapping',
        text: expect.stringContaining(
          'the function debug also reads the queue of worker (event source mapping u-1)',
        ),
        fix: 'aws lambda update-event-source-mapping --uuid u-1 --no-enabled',
      },
    ]);
  });
});

describe('the doctor finds rules that send to the queue of a consumer', () => {
  test.each(['bus', 'default'])('on the bus %s', async (bus) => {
    const found = await problemsAfter(({ rules }) =>
      rules.set(`${bus}|debug`, {
        enabled: true,
        pattern: '{}',
        targets: [{ ...targetOf(QUEUE), id: 'T9' }],
      }),
    );
    expect(found).toEqual([
      {
        part: 'worker',
        problem: 'foreign-rule',
        text: expect.stringContaining(`the rule debug on the bus ${bus} also sends to the queue of worker`),
        fix: `aws events remove-targets --rule debug --event-bus-name ${bus} --ids T9`,
      },
    ]);
  });

  test('but not disabled ones, which send nothing', async () => {
    const found = await problemsAfter(({ rules }) =>
      rules.set('bus|debug', { enabled: false, pattern: '{}', targets: [targetOf(QUEUE)] }),
    );
    expect(found).toEqual([]);
  });
});

describe('the doctor finds a KMS key that cannot be used', () => {
  const encrypted =
    (state: string | undefined) =>
    ({ changeQueue, keys, table }: ReturnType<typeof resourcesInMemory>) => {
      table.key = KEY;
      changeQueue(worker.queue, { key: KEY });
      changeQueue(directory.mailroom.failureQueue, { key: 'alias/other' });
      keys.set('alias/other', 'Enabled');
      if (state !== undefined) keys.set(KEY, state);
    };

  test.each([
    ['Disabled', 'key-disabled', 'is disabled', `aws kms enable-key --key-id ${KEY}`],
    [
      'PendingDeletion',
      'key-deletion',
      'is about to be deleted',
      `aws kms cancel-key-deletion --key-id ${KEY}`,
    ],
    [
      'PendingImport',
      'key-disabled',
      'cannot be used (PendingImport)',
      `aws kms describe-key --key-id ${KEY}`,
    ],
    [undefined, 'key-deletion', 'does not exist', `aws kms describe-key --key-id ${KEY}`],
  ])('that is %s, once, with all that it encrypts', async (state, problem, text, fix) => {
    expect(await problemsAfter(encrypted(state))).toEqual([
      {
        part: 'account',
        problem,
        text: expect.stringContaining(`the KMS key ${KEY} ${text}`),
        fix,
      },
    ]);
    const [found] = await problemsAfter(encrypted(state));
    expect(found?.text).toContain('it encrypts the table, the queue of worker.');
  });

  test('and none that can be used', async () => {
    expect(await problemsAfter(encrypted('Enabled'))).toEqual([]);
  });
});

describe('the doctor finds a forward to another bus', () => {
  const to = 'arn:aws:events:eu-west-1:444455556666:event-bus/shop';
  const forward = { rule: 'forward', enabled: true, to, deadLetterQueue: queueArn('refused') };

  test('that is disabled', async () => {
    const found = await problemsAfter(({ forwards }) => forwards.push({ ...forward, enabled: false }));
    expect(found).toMatchObject([
      {
        part: 'bus',
        problem: 'forward-disabled',
        text: expect.stringContaining('does not forward events from the bus bus to shop'),
        fix: 'aws events enable-rule --name forward --event-bus-name bus',
      },
    ]);
  });

  test('whose events the other bus did not take, and not one whose dead-letter queue is empty', async () => {
    const holding = (messages: number) =>
      problemsAfter(({ forwards, queues }) => {
        forwards.push(forward);
        const [queue] = queues.values();
        if (queue !== undefined) queues.set('refused', { ...queue, url: 'refused', messages });
      });
    expect(await holding(0)).toEqual([]);
    expect(await holding(3)).toMatchObject([
      {
        problem: 'forward-undelivered',
        text: expect.stringContaining('shop did not take 3 events that the rule forward forwards from bus'),
        fix: expect.stringContaining('aws sqs receive-message --queue-url refused'),
      },
    ]);
  });
});
