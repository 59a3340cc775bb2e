import { describe, expect, test } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { invoked, resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { broken, commit, fine, published } from './support/why-rig.ts';

type Deployed = ReturnType<typeof resourcesInMemory>;

const disableMapping = ({ mappings }: Deployed) =>
  mappings.set(
    worker.function,
    (mappings.get(worker.function) ?? []).map((mapping) => ({ ...mapping, enabled: false })),
  );
const stopFunction = ({ reserved }: Deployed) => reserved.set(worker.function, 0);
const disableStream = ({ mappings }: Deployed) =>
  mappings.set(
    'stream-function',
    (mappings.get('stream-function') ?? []).map((mapping) => ({ ...mapping, enabled: false })),
  );
const disableSweep = ({ rules }: Deployed) => {
  const rule = rules.get('default|sweep-rule');
  if (rule !== undefined) rules.set('default|sweep-rule', { ...rule, enabled: false });
};
const disableRule = ({ rules }: Deployed) => {
  const rule = rules.get(`bus|${worker.rule}`);
  if (rule !== undefined) rules.set(`bus|${worker.rule}`, { ...rule, enabled: false });
};

function troubled(handler = fine) {
  return { ...mailroomInMemory([handler]), deployed: resourcesInMemory(directory) };
}

type Troubled = ReturnType<typeof troubled>;

async function whyOf(mailroom: Troubled, eventId: string) {
  const { code, out } = await runInMemory(mailroom, ['why', eventId]);
  return { code, text: unwrapped(out), lines: out.trimEnd().split('\n') };
}

describe('why, of a message that its consumer cannot claim', () => {
  test.each([
    [
      'mapping is disabled',
      disableMapping,
      'update-event-source-mapping --uuid worker-mapping --enabled',
      'UpdateEventSourceMapping20150331',
    ],
    [
      'concurrency is 0',
      stopFunction,
      'delete-function-concurrency --function-name worker-function',
      'PutFunctionConcurrency20171031',
    ],
  ])('the %s: the verdict names it and its command, and requires action', async (_name, stop, fix, call) => {
    const mailroom = troubled();
    const eventId = await published(mailroom);
    stop(mailroom.deployed);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).not.toContain('undefined');
    expect(lines.at(-1)).toBe(`  aws lambda ${fix} --region eu-west-1`);
    expect(text).toContain(`AttributeKey=EventName,AttributeValue=${call} `);
  });

  test('its JSON has the parts of a delay: place, problem, the question and the command before the next one', async () => {
    const mailroom = troubled(broken);
    const eventId = await published(mailroom);
    await mailroom.deliver();
    const verdict = async () =>
      JSON.parse((await runInMemory(mailroom, ['why', eventId, '--json'])).out).verdict;
    expect(await verdict()).toMatchObject({ state: 'retrying', delay: null });
    disableMapping(mailroom.deployed);
    const { delay, cause, next } = await verdict();
    expect(cause).toContain('the bank is closed');
    expect(delay).toEqual({
      place: expect.stringMatching(/^worker failed to process ThingHappened .*, attempt 1 of 3\.$/),
      problem: 'worker receives no messages: the event source mapping of worker-function is disabled.',
      asksFirst: true,
      before: expect.stringMatching(/^aws cloudtrail lookup-events /),
    });
    expect(next).toContain('update-event-source-mapping');
    mailroom.deployed.mappings.set(
      worker.function,
      (mailroom.deployed.mappings.get(worker.function) ?? []).map((one) => ({ ...one, enabled: true })),
    );
    await mailroom.clock.advance(3_600_000);
    expect((await verdict()).delay).toMatchObject({
      problem: expect.stringMatching(/^Its next attempt was due .* ago\. Either .* lost this one\.$/),
      ...{ asksFirst: false, before: expect.stringMatching(/^npx cdk-mailroom audit --since /) },
    });
  });

  const failingInvocations = (deployed: Deployed, errors: number, invocations = errors) => {
    deployed.settings.invocations.set(worker.function, invoked(errors, invocations));
    deployed.changeQueue(worker.queue, { messages: 1 });
  };

  test('its function fails at every invocation: it may not start, and the next command shows its log', async () => {
    const mailroom = troubled();
    const eventId = await published(mailroom);
    failingInvocations(mailroom.deployed, 6);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).toMatch(/^late/);
    expect(text).toContain(
      'Cause: worker processes nothing: its function worker-function failed at each of its 6 invocations in the last 15 min. Messages wait. Does it start?',
    );
    expect(lines.at(-1)).toBe('  npx cdk-mailroom logs worker --stage dev');
  });

  const LATER = 3 * 60_000;
  const DAY = 24 * 60 * 60_000;

  test('its function claims nothing of what it receives: the verdict is the finding of status, with its command', async () => {
    const made = troubled();
    const depth: typeof made.queues.depth = async (url) => {
      const { waiting, ...held } = await made.queues.depth(url);
      return url === worker.queue ? { ...held, waiting: 0, inFlight: waiting } : { ...held, waiting };
    };
    const mailroom = { ...made, queues: { ...made.queues, depth } };
    await commit(mailroom);
    const eventId = await published(mailroom);
    expect((await whyOf(mailroom, eventId)).text).toMatch(/^waiting/);
    await mailroom.clock.advance(LATER);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    const { out } = await runInMemory(mailroom, ['status']);
    const [what] = /worker finishes no messages: .* ago ended/.exec(unwrapped(out)) ?? ['nothing'];
    expect(code).toBe(1);
    expect(text).toMatch(/^late/);
    expect(text).toContain(`worker has not claimed it yet.`);
    expect(text).toContain(`Cause: ${what}.`);
    expect(text).not.toContain('?.');
    expect(lines.at(-1)).toBe('  npx cdk-mailroom logs worker --stage dev');
    // An older one is not judged by a sample that it is not in.
    await mailroom.clock.advance(DAY);
    expect((await whyOf(mailroom, eventId)).text).not.toContain('finishes no messages');
  });

  test('failed invocations of a function that is also successful, or one alone, are not its cause', async () => {
    for (const [errors, invocations] of [
      [6, 7],
      [1, 1],
    ] as const) {
      const mailroom = troubled();
      const eventId = await published(mailroom);
      failingInvocations(mailroom.deployed, errors, invocations);
      expect((await whyOf(mailroom, eventId)).text).toMatch(/^waiting/);
    }
  });

  test('failed invocations do not explain a message that was claimed and failed', async () => {
    const mailroom = troubled(broken);
    const eventId = await published(mailroom);
    await mailroom.deliver();
    failingInvocations(mailroom.deployed, 6);
    expect((await whyOf(mailroom, eventId)).text).toMatch(/^retrying/);
  });

  test('a dead letter without a row was never claimed: why and dlq list ask whether the function starts', async () => {
    const mailroom = troubled();
    const eventId = await commit(mailroom);
    await mailroom.publish();
    const [message] = mailroom.queue.messages();
    const letter = { messageId: 'm1', receiptHandle: 'r', attributes: {}, sentAt: mailroom.clock.now() };
    mailroom.addDeadLetter(worker.deadLetterQueue, { ...letter, body: message?.body ?? '', receives: 6 });
    const { code, text } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).toMatch(/^dead-lettered/);
    expect(text).toContain(
      'was received about 6 times and never claimed by worker: does its function start, and reach its table? Its log: `npx cdk-mailroom logs worker --stage dev`',
    );
    const { out } = await runInMemory(mailroom, ['dlq', 'list', 'consumer:worker', '--by', 'cause']);
    expect(unwrapped(out)).toContain('never claimed: does the function start, and reach its table?');
    const list = await runInMemory(mailroom, ['dlq', 'list', 'consumer:worker', '--json']);
    expect(JSON.parse(list.out).deadLetterSources[0].deadLetters).toMatchObject([
      { eventId, lastError: null, neverClaimed: true },
    ]);
  });

  test('a failed one is not promised a retry by a consumer that receives nothing', async () => {
    const mailroom = troubled(broken);
    const eventId = await published(mailroom);
    await mailroom.deliver();
    disableMapping(mailroom.deployed);
    const { code, text } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).toContain('the bank is closed');
    expect(text).toMatch(/^late/);
    expect(text).not.toContain('retried');
  });

  test('a disabled rule does not delay a message that is in the queue', async () => {
    const mailroom = troubled();
    const eventId = await published(mailroom);
    disableRule(mailroom.deployed);
    const { code, text } = await whyOf(mailroom, eventId);
    expect(code).toBe(0);
    expect(text).toMatch(/^waiting/);
  });
});

describe('why, of an event that cannot be published', () => {
  test('the stream relay and the sweep are both stopped: no sweep is promised', async () => {
    const mailroom = troubled();
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(60_000);
    disableStream(mailroom.deployed);
    disableSweep(mailroom.deployed);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).toMatch(/^stuck .*stream-function .*sweep-rule /);
    expect(lines.at(-1)).toContain('update-event-source-mapping --uuid stream-mapping --enabled');
  });

  test('a new event is the stream relay’s: a stopped sweep does not delay it yet', async () => {
    const mailroom = troubled();
    const eventId = await commit(mailroom);
    disableSweep(mailroom.deployed);
    expect((await whyOf(mailroom, eventId)).code).toBe(0);
    disableStream(mailroom.deployed);
    expect((await whyOf(mailroom, eventId)).code).toBe(1);
  });

  test('an old event: the wiring is the verdict’s command, for a sweep by hand would publish only this one', async () => {
    const mailroom = troubled();
    const eventId = await commit(mailroom);
    await mailroom.clock.advance(3_600_000);
    disableSweep(mailroom.deployed);
    const { lines } = await whyOf(mailroom, eventId);
    expect(lines.at(-1)).toBe('  aws events enable-rule --name sweep-rule --region eu-west-1');
  });
});

describe('why, of an unclaimed message that is not in its queue', () => {
  async function lostSince(ms: number) {
    const mailroom = troubled();
    const eventId = await published(mailroom);
    const [message] = mailroom.queue.receive();
    mailroom.queue.delete(message?.receiptHandle ?? '');
    await mailroom.clock.advance(ms);
    return { mailroom, eventId };
  }

  test('its counts may lag at first', async () => {
    const { mailroom, eventId } = await lostSince(20_000);
    const { code, text } = await whyOf(mailroom, eventId);
    expect(code).toBe(0);
    expect(text).toMatch(/^waiting/);
  });

  test('then the verdict says when the audit can tell, and prints it', async () => {
    const { mailroom, eventId } = await lostSince(90_000);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    expect(code).toBe(0);
    expect(text).toMatch(/^unproven.* 00:08 UTC /);
    expect(lines.at(-1)).toBe('  npx cdk-mailroom audit --since 1h --stage dev');
  });

  test('a disabled rule is its cause', async () => {
    const { mailroom, eventId } = await lostSince(90_000);
    disableRule(mailroom.deployed);
    const { code, text, lines } = await whyOf(mailroom, eventId);
    expect(code).toBe(1);
    expect(text).toContain('`npx cdk-mailroom audit --since 1h --stage dev`');
    expect(lines.at(-1)).toContain('aws events enable-rule --name worker-rule');
  });
});
