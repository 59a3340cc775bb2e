import { describe, expect, test } from 'vitest';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { troublesOf } from '../../../cli/page/client/flow/troubles.ts';
import { pausesOf } from '../../../cli/reports/checks/pauses.ts';
import { doctorReport, doctorText } from '../../../cli/reports/findings/doctor.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { mailroomInMemory, RETENTION_MS, worker } from './support/mailroom-in-memory.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const APPLY = ['--apply', '--reason', 'the bank migrates'];

/** A Mailroom with a switchable mapping. Time passes while a command waits. */
function mailroom(options: { readonly settles?: boolean } = {}) {
  const parts = mailroomInMemory([
    leased(ThingHappened, async () => {
      throw new PoisonMessage('no');
    }),
  ]);
  const deployed = resourcesInMemory(parts.directory);
  const { settles = true } = options;
  const enableMapping: typeof deployed.enableMapping = async (uuid, enabled) => {
    await deployed.enableMapping(uuid, enabled);
    if (settles) return;
    const own = deployed.mappings.get(worker.function) ?? [];
    deployed.mappings.set(
      worker.function,
      own.map((mapping) => ({ ...mapping, isSettled: false })),
    );
  };
  const clock = { ...parts.clock, sleep: (ms: number) => parts.clock.advance(ms) };
  const rig = { ...parts, clock, deployed: { ...deployed, enableMapping } };
  const run = async (...argv: readonly string[]) => {
    const result = await runInMemory(rig, argv);
    await parts.clock.advance(1_000);
    return result;
  };
  const json = async (...argv: readonly string[]) => {
    const { code, out, err } = await run(...argv, '--json');
    return { code, err, document: out === '' ? undefined : JSON.parse(out) };
  };
  const isOn = () => deployed.mappings.get(worker.function)?.every(({ enabled }) => enabled);
  return { ...rig, run, json, isOn };
}

describe('mailroom pause', () => {
  test('shows a plan with the time at which messages expire, and changes nothing', async () => {
    const { run, json, isOn, clock } = mailroom();
    const { out } = await run('pause', worker.name);
    expect(unwrapped(out)).toContain(new Date(clock.now() - 1_000 + RETENTION_MS).toISOString().slice(0, 10));
    expect(await json('pause', worker.name)).toMatchObject({
      code: 0,
      document: { applied: false, status: 'pause' },
    });
    expect(isOn()).toBe(true);
    expect((await json('operations')).document.operations).toEqual([]);
  });

  test('disables the mapping with --apply, and records who and why before', async () => {
    const { json, isOn } = mailroom();
    const paused = await json('pause', worker.name, ...APPLY);
    expect(paused).toMatchObject({
      code: 0,
      document: { consumer: worker.name, applied: true, status: 'paused' },
    });
    expect(isOn()).toBe(false);
    expect((await json('operations')).document.operations).toMatchObject([
      {
        command: 'pause',
        subject: worker.name,
        reason: 'the bank migrates',
        by: expect.stringContaining('ada'),
      },
    ]);
  });

  test('a pause of a paused consumer changes nothing and names who paused it', async () => {
    const { run, json } = mailroom();
    await run('pause', worker.name, ...APPLY);
    const again = await run('pause', worker.name, '--apply', '--reason', 'me too');
    expect(again.code).toBe(0);
    expect(unwrapped(again.out)).toContain('the bank migrates');
    expect((await json('operations')).document.operations).toHaveLength(1);
  });

  test('a pause of a consumer whose mapping was disabled by hand records the pause', async () => {
    const { json, deployed } = mailroom();
    await deployed.enableMapping(`${worker.name}-mapping`, false);
    expect((await json('status')).document.wiring.problems).toMatchObject([{ problem: 'mapping-disabled' }]);
    expect((await json('pause', worker.name, ...APPLY)).document).toMatchObject({ status: 'paused' });
    expect((await json('status')).document.wiring.problems).toMatchObject([{ problem: 'paused' }]);
  });

  test('a pause that Lambda does not finish exits with 1 and names the command that shows it', async () => {
    const { run } = mailroom({ settles: false });
    const { code, out } = await run('pause', worker.name, ...APPLY);
    expect(code).toBe(1);
    expect(out).toContain('npx cdk-mailroom status --stage dev');
  });

  test('refuses an unknown consumer, and a change without a reason', async () => {
    const { run, isOn } = mailroom();
    expect((await run('pause', 'nobody', ...APPLY)).err).toContain('nobody');
    expect((await run('pause', worker.name, '--apply')).err).toContain('--reason');
    expect(isOn()).toBe(true);
  });

  test('refuses a consumer without a mapping', async () => {
    const { run, deployed } = mailroom();
    deployed.mappings.delete(worker.function);
    const { code, err } = await run('pause', worker.name, ...APPLY);
    expect(code).not.toBe(0);
    expect(err).toContain(worker.name);
  });
});

describe('a paused consumer', () => {
  async function paused() {
    const parts = mailroom();
    await parts.run('pause', worker.name, ...APPLY);
    return parts;
  }

  test('is shown by status as paused, not as broken, with the command that resumes it', async () => {
    const { json, run } = await paused();
    const { document } = await json('status');
    expect(document).toMatchObject({ state: 'look', ok: false });
    expect(document.findings).toMatchObject([
      {
        state: 'look',
        what: expect.stringContaining('the bank migrates'),
        commands: ['npx cdk-mailroom resume worker --stage dev'],
      },
    ]);
    const { out } = await run('status');
    expect(out).not.toContain('update-event-source-mapping');
    expect(troublesOf(document)).toMatchObject([{ part: worker.name, is: 'look', text: 'Paused' }]);
  });

  test('is the reason that why gives for a message that waits', async () => {
    const { outbox, happened, publish, run } = await paused();
    const [event] = await outbox.commit({ events: [happened(1)] });
    await publish();
    const { out } = await run('why', event?.eventId ?? '');
    expect(out).toContain('paused');
    expect(out).toContain('npx cdk-mailroom resume worker --stage dev');
  });

  test('is not reported as a problem by doctor', async () => {
    const { table, queues, clock } = await paused();
    const { deps, changeMapping } = resourcesInMemory();
    changeMapping(worker.function, { enabled: false });
    const found = await examine({ ...deps, pauses: pausesOf({ stored: dynamoRows(table), queues, clock }) });
    const report = doctorReport(deps.directory, 'eu-west-1', deps.now, found);
    const lines = { commandLine: (command: string) => command, awsLine: (command: string) => command };
    expect(doctorText(report, lines)).not.toContain('problem');
    expect(report.ok).toBe(false);
  });

  test('receives no redriven and no resent messages', async () => {
    const { outbox, happened, publish, drain, run, queue, json } = mailroom();
    await outbox.commit({ events: [happened(1)] });
    await publish();
    await drain();
    expect(queue.deadLetters()).toHaveLength(1);
    await run('pause', worker.name, ...APPLY);
    const { code, err } = await json('dlq', 'redrive', `consumer:${worker.name}`, ...APPLY);
    expect([code, JSON.parse(err).error.code]).toEqual([2, 'CONSUMER_PAUSED']);
    expect(queue.deadLetters()).toHaveLength(1);
    expect((await json('operations')).document.operations).toHaveLength(1);
  });

  test('runs again after resume, which is recorded', async () => {
    const { json, isOn } = await paused();
    expect((await json('resume', worker.name)).document).toMatchObject({ status: 'resume', applied: false });
    expect(isOn()).toBe(false);
    const resumed = await json('resume', worker.name, '--apply', '--reason', 'the bank is back');
    expect(resumed.document).toMatchObject({ status: 'running', applied: true });
    expect(isOn()).toBe(true);
    expect((await json('status')).document).toMatchObject({ ok: true });
    expect((await json('operations')).document.operations).toMatchObject([
      { command: 'resume' },
      { command: 'pause' },
    ]);
    expect((await json('resume', worker.name, ...APPLY)).document).toMatchObject({ status: 'running' });
    expect((await json('operations')).document.operations).toHaveLength(2);
  });

  test('whose mapping is disabled again by hand after a resume is a disabled mapping', async () => {
    const { json, run, deployed } = await paused();
    await run('resume', worker.name, ...APPLY);
    await deployed.enableMapping(`${worker.name}-mapping`, false);
    expect((await json('status')).document.wiring.problems).toMatchObject([{ problem: 'mapping-disabled' }]);
  });
});

describe('a pause that was forgotten', () => {
  const DAY_MS = RETENTION_MS / 14;

  /** A pause with a message that waits, after days. */
  async function pausedFor(days: number, messages = 1) {
    const rig = mailroom();
    await rig.run('pause', worker.name, ...APPLY);
    for (let n = 0; n < messages; n += 1)
      await rig.outbox.commit({ events: [ThingHappened.create({ aggregateId: 'thing-1', data: { n } })] });
    await rig.publish();
    await rig.clock.advance(days * DAY_MS);
    const status = async () => (await rig.json('status')).document;
    return { ...rig, status };
  }

  const pausesIn = ({ findings }: { findings: { code: string; state: string; what: string }[] }) =>
    findings.filter(({ code }) => code.startsWith('pause'));

  test('is a problem one day before SQS deletes the first message, and names who paused it', async () => {
    const { status, run, clock } = await pausedFor(12.9);
    expect(pausesIn(await status())).toMatchObject([{ code: 'paused', state: 'look' }]);
    await clock.advance(DAY_MS / 2);
    expect(pausesIn(await status())).toMatchObject([
      { code: 'pause-expires', state: 'broken', what: expect.stringContaining('ada: the bank migrates') },
    ]);
    const [resume = ''] = /resume worker/.exec((await run('status')).out) ?? [];
    await run(...resume.split(' '), ...APPLY);
    expect(pausesIn(await status())).toEqual([]);
  });

  test('is still named after 37 days, and that messages were deleted', async () => {
    const { status } = await pausedFor(37);
    expect(pausesIn(await status())).toMatchObject([
      { code: 'pause-expires', what: expect.stringContaining('SQS has been deleting') },
    ]);
  });

  test('remains a warning while nothing waits', async () => {
    const { status, clock } = await pausedFor(0, 0);
    await clock.advance(13.5 * DAY_MS);
    expect(pausesIn(await status())).toMatchObject([{ code: 'paused', state: 'look' }]);
  });

  test('and ended by hand is not blamed alone if its mapping is disabled again: the time of that change is named', async () => {
    const { status, clock, deployed } = await pausedFor(1);
    const changedAt = clock.now();
    deployed.changeMapping(worker.function, { changedAt });
    expect(pausesIn(await status())).toMatchObject([
      {
        code: 'paused',
        what: expect.stringMatching(/was changed after that, at .*it may have been enabled/),
      },
    ]);
    deployed.changeMapping(worker.function, { changedAt: changedAt - DAY_MS });
    expect(pausesIn(await status())[0]?.what).not.toContain('changed after');
  });
});

test('a consumer that is paused during a redrive: the redrive stops, its command leads to the pause, and every dead letter is processed once after the resume', async () => {
  const code = { isFixed: false };
  const done: number[] = [];
  const made = operatingMailroom([
    leased(ThingHappened, async ({ data: { n } }) => {
      if (!code.isFixed) throw new PoisonMessage('no');
      done.push(n);
    }),
  ]);
  const deployed = resourcesInMemory(made.directory);
  const clock = { ...made.clock, sleep: (ms: number) => made.clock.advance(ms) };
  for (const n of [1, 2, 3])
    await made.outbox.commit({ events: [ThingHappened.create({ aggregateId: `thing-${n}`, data: { n } })] });
  await made.publish();
  await made.drain();
  code.isFixed = true;
  const pause = () => runInMemory({ ...made, clock, deployed }, ['pause', worker.name, ...APPLY]);
  const send: typeof made.queues.send = async (url, body) => {
    const messageId = await made.queues.send(url, body);
    await pause();
    return messageId;
  };
  // Nothing is delivered meanwhile, as by a mapping that is off.
  const redrive = ['dlq', 'redrive', 'consumer:worker', ...APPLY];
  const stopped = await runInMemory({ ...made, clock, deployed, queues: { ...made.queues, send } }, redrive);
  expect(stopped.code).toBe(1);
  const [why = ''] = /why [\da-f-]{36}/.exec(stopped.out) ?? [];
  const found = await runInMemory({ ...made, clock, deployed }, why.split(' '));
  expect(unwrapped(found.out)).toMatch(
    /worker has been paused since .*ada: the bank migrates.*resume worker/,
  );
  expect(done).toEqual([]);
  await runInMemory({ ...made, clock, deployed }, ['resume', worker.name, ...APPLY]);
  await made.until(runInMemory({ ...made, deployed }, redrive));
  expect(done.toSorted()).toEqual([1, 2, 3]);
});
