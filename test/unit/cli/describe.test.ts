import { describe, expect, test } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { healthyFunction } from './support/memory-deployment.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { commit, drained, fine, poison } from './support/why-rig.ts';

test('describe shows the settings of a healthy consumer, and no command', async () => {
  const { out, code } = await runInMemory(mailroomInMemory([fine]), ['describe', 'worker']);
  expect(code).toBe(0);
  expect(out).toMatch(/^worker {2}nothing failed, and nothing is dead\n\n/);
  for (const text of [
    'ThingHappened of things',
    'worker-rule',
    '35 days',
    '512 MB',
    'worker-logs',
    'at most 5 at once',
  ])
    expect(unwrapped(out)).toContain(text);
});

test('describe shows the SLO of a consumer that has one', async () => {
  const mailroom = mailroomInMemory([fine]);
  const slo = { latencyMs: 30_000, percentile: 99 };
  const directory = { ...mailroom.directory, consumers: [{ ...worker, slo }] };
  const json = async (given: typeof mailroom) =>
    JSON.parse((await runInMemory(given, ['describe', 'worker', '--json'])).out) as unknown;
  expect(await json({ ...mailroom, directory })).toMatchObject({ slo });
  expect(await json(mailroom)).toMatchObject({ slo: null });
});

test('describe shows the filter of an event', async () => {
  const mailroom = mailroomInMemory([fine]);
  const events = worker.events.map((event) => ({ ...event, filter: { n: [1] } }));
  const directory = { ...mailroom.directory, consumers: [{ ...worker, events }] };
  const { out } = await runInMemory({ ...mailroom, directory }, ['describe', 'worker']);
  expect(unwrapped(out)).toContain('ThingHappened of things that matches {"n":[1]}');
});

test('describe names the last failure and the command to run', async () => {
  const mailroom = mailroomInMemory([poison]);
  const eventId = await drained(mailroom);
  const { out } = await runInMemory(mailroom, ['describe', 'worker', '--json']);
  expect(JSON.parse(out)).toMatchObject({
    rejected: 1,
    failed: 0,
    deadLetters: 1,
    lastCause: { eventId, text: expect.stringContaining('the price is missing') },
    next: 'npx cdk-mailroom dlq list consumer:worker --by cause --stage dev',
  });
});

test.each([
  [undefined, 'its function does not exist'],
  [{ ...healthyFunction, mappings: [] }, 'its function does not read its queue'],
  [{ ...healthyFunction, reservedConcurrency: 0 }, 'its function may not run'],
])('describe names a consumer that cannot work: %#', async (found, says) => {
  const mailroom = { ...mailroomInMemory([fine]), functionOf: () => found };
  const { out } = await runInMemory(mailroom, ['describe', 'worker']);
  expect(out.split('\n')[0]).toBe(`worker  ${says}`);
  expect(out).toContain('npx cdk-mailroom status --stage dev');
});

describe('describe compares the resources of the consumer with its stack', () => {
  async function described(change: (deployed: ReturnType<typeof resourcesInMemory>) => void) {
    const deployed = resourcesInMemory();
    change(deployed);
    const mailroom = { ...mailroomInMemory([fine]), deployed };
    const { out } = await runInMemory(mailroom, ['describe', 'worker']);
    const json = await runInMemory(mailroom, ['describe', 'worker', '--json']);
    return { deployed, out: unwrapped(out), document: JSON.parse(json.out) };
  }

  const declaredAt = ({ declared }: ReturnType<typeof resourcesInMemory>, id: string) => {
    const found = declared.find(({ physicalId }) => physicalId === id);
    if (found === undefined) throw new Error(`${id} is not declared`);
    return found;
  };

  test('it shows the value beside the declared one, and names the doctor', async () => {
    const { deployed, out, document } = await described((deployed) =>
      deployed.changeMember(declaredAt(deployed, worker.queue).logicalId, 'VisibilityTimeout', 60),
    );
    expect(out).toMatch(/^worker {1,2}1 setting differs from its stack/);
    expect(out).toMatch(/differs +VisibilityTimeout of the queue \S+ is 60 instead of 180/);
    const { type, logicalId, physicalId } = declaredAt(deployed, worker.queue);
    expect(document).toMatchObject({
      differences: [
        {
          ...{ type, logicalId, physicalId },
          ...{ member: 'VisibilityTimeout', declared: 180, deployed: 60, allowed: false },
        },
      ],
      notChecked: [],
      next: 'npx cdk-mailroom doctor --stage dev',
    });
  });

  test('it shows a change that a person may make, and needs no command', async () => {
    const { out, document } = await described((deployed) =>
      deployed.changeMember(declaredAt(deployed, worker.function).logicalId, 'MemorySize', 1_024),
    );
    expect(out).toContain('nothing failed, and nothing is dead');
    expect(out).toMatch(/changed +MemorySize of the function \S+ is 1024 instead of 512/);
    expect(document).toMatchObject({ differences: [{ member: 'MemorySize', allowed: true }], next: null });
  });

  test('it shows a resource that is gone, and leaves the parts of others to the doctor', async () => {
    const { document } = await described((deployed) => {
      deployed.removeResource(declaredAt(deployed, worker.queue).logicalId);
      for (const { part, logicalId } of deployed.declared)
        if (part !== 'worker') deployed.removeResource(logicalId);
    });
    expect(document.differences).toMatchObject([{ member: null, physicalId: worker.queue }]);
  });

  test('it names what keeps it from comparing', async () => {
    const { out, document } = await described(({ deps }) =>
      Object.assign(deps, { declarations: { of: async () => undefined } }),
    );
    expect(out).toMatch(new RegExp(`not compared +CloudFormation has no stack ${worker.stack}`));
    expect(document).toMatchObject({ differences: [], notChecked: [{ parts: ['worker'] }] });
  });
});

test('logs prints a command for each function that handled an event, and a link', async () => {
  const functionOf = (name: string) => ({ ...healthyFunction, logGroup: `/aws/lambda/${name}` });
  const mailroom = { ...mailroomInMemory([fine]), functionOf };
  const eventId = await drained(mailroom);
  const { out, code } = await runInMemory(mailroom, ['logs', eventId.slice(0, 23)]);
  expect(code).toBe(0);
  const lines = out.split('\n');
  const command = lines.find((line) => line.includes(`/aws/lambda/${worker.function}`)) ?? '';
  expect(command).toMatch(
    /^ {2}aws logs filter-log-events --log-group-name \/aws\/lambda\/worker-function --start-time \d+ /,
  );
  expect(command).toContain(`--filter-pattern '"${eventId}"'`);
  expect(out).toContain('/aws/lambda/sweep-function');
  expect(out).not.toContain('stream-function');
  const link = lines.find((line) => line.includes('https://')) ?? '';
  expect(link).toContain(`logs-insights$3FqueryDetail$3D~(end~'`);
  expect(link).toContain(`like*20*22${eventId}*22`);
  const local = await runInMemory({ ...mailroom, isLocal: true }, ['logs', eventId]);
  expect(local.out).not.toContain('https://');
  expect(link).toContain(`source~(~'*2Faws*2Flambda*2Fsweep-function~'*2Faws*2Flambda*2Fworker-function)`);
});

test('logs of a consumer prints the command for its last lines, also those without an event', async () => {
  const mailroom = { ...mailroomInMemory([fine]), functionOf: () => healthyFunction };
  const { out, code } = await runInMemory(mailroom, ['logs', worker.name]);
  expect(code).toBe(0);
  const [part, command = ''] = out.split('\n');
  expect(part).toBe('worker:');
  expect(command).toMatch(
    /^ {2}aws logs filter-log-events --log-group-name \S+ --start-time \d+ --end-time \d+ --query /,
  );
  const { document } = await runInMemory(mailroom, ['logs', worker.name, '--json']).then(({ out }) => ({
    document: JSON.parse(out),
  }));
  expect(document).toMatchObject({ eventId: null, functions: [{ part: 'worker' }] });
  expect(document.query).not.toContain('like');
});

test('logs of an unknown event says how to find one', async () => {
  const { err, code } = await runInMemory(mailroomInMemory([fine]), ['logs', 'order-1']);
  expect(code).toBe(3);
  expect(err).toContain('mailroom why');
});

test.each([['not JSON \u001b[31m'], ['{"detail":{"a":1}}']])(
  'dlq show prints a dead letter that cannot be read, and its body only on request: %s',
  async (body) => {
    const mailroom = mailroomInMemory([fine]);
    const messageId = '5f0a1a0c-6a2e-4f0f-9a3c-0c9d5b7e4f11';
    const letter = { messageId, body, sentAt: mailroom.clock.now(), receiptHandle: 'r', attributes: {} };
    mailroom.addDeadLetter(worker.undeliveredQueue, letter);
    const brief = await runInMemory(mailroom, ['dlq', 'show', 'rule:worker', messageId.slice(0, 8)]);
    expect(brief.code).toBe(0);
    expect(unwrapped(brief.out)).toContain(`dlq redrive rule:worker ${messageId}`);
    expect(brief.out).not.toContain('detail');
    expect(mailroom.shown).toContain(messageId);
    const whole = await runInMemory(mailroom, ['dlq', 'show', 'rule:worker', messageId, '--payload']);
    expect(whole.out).toContain(body.startsWith('{') ? '"a": 1' : 'not JSON \\u001b[31m');
    const json = await runInMemory(mailroom, [
      'dlq',
      'show',
      'rule:worker',
      messageId,
      '--payload',
      '--json',
    ]);
    expect(JSON.parse(json.out)).toMatchObject({ source: 'rule:worker', id: messageId, eventId: null, body });
  },
);

test('dlq show prints the envelope of a DEAD event, and refuses what it cannot find', async () => {
  const mailroom = mailroomInMemory([fine], {
    bus: { failEntry: () => ({ code: 'InvalidArgument', message: 'The entry is invalid' }) },
  });
  const eventId = await commit(mailroom);
  for (let pass = 0; pass < 6; pass += 1) await mailroom.publish();
  const { out } = await runInMemory(mailroom, ['dlq', 'show', 'dead', eventId, '--payload']);
  expect(out).toContain(`"eventId": "${eventId}"`);
  expect((await runInMemory(mailroom, ['dlq', 'show', 'dead', 'ffffffff'])).err).toContain(
    'NO_SUCH_DEAD_LETTER',
  );
});
