import { describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../../lambdas/runtime/base/errors.ts';
import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { captured, countedBytes, tooWide } from './support/captured-output.ts';
import { directory, mailroomInMemory } from './support/mailroom-in-memory.ts';
import { resourcesInMemory } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';

const KNOWN = ['--apply', '--reason', 'the bank is down, INC-7'];

/** A Mailroom with one dead letter, and a function that adds another. */
async function withDeadLetter() {
  const poison = leased(ThingHappened, async () => {
    throw new PoisonMessage('the price is missing');
  });
  const mailroom = {
    ...mailroomInMemory([poison], { random: countedBytes() }),
    deployed: resourcesInMemory(directory),
  };
  const reject = async () => {
    await mailroom.outbox.commit({ events: [mailroom.happened(1)] });
    await mailroom.publish();
    await mailroom.drain();
  };
  await reject();
  const run = (...argv: string[]) => runInMemory(mailroom, argv);
  const status = async () => {
    const { code, out } = await run('status', '--json');
    const { ok, state, findings } = JSON.parse(out);
    return { code, ok, state, findings };
  };
  return { ...mailroom, reject, run, status };
}

describe('ack', () => {
  test('plans which findings it acknowledges, up to their present count, and changes nothing', async () => {
    const mailroom = await withDeadLetter();
    const before = mailroom.memory.items();
    const plan = await mailroom.run('ack', 'dead-letters/CONSUMER:worker', '--until', '2h');
    expect(plan.code, plan.err).toBe(0);
    expect(unwrapped(plan.out)).toMatch(
      /Would acknowledge until .*: 1 dead letter in consumer:worker; .* \[dead-letters\/consumer:worker\], until it counts more than 1 Alarms are not changed\. Nothing was changed\./,
    );
    expect(plan.out).toMatch(
      /ack dead-letters\/consumer:worker=1 --until \S+Z --apply --reason '…' --stage dev/,
    );
    expect(mailroom.memory.items()).toEqual(before);
    expect(await mailroom.status()).toMatchObject({ code: 1, state: 'broken' });
  });

  test('makes status green until its time, and shows who acknowledged it', async () => {
    const mailroom = await withDeadLetter();
    const { run, status, clock } = mailroom;
    const made = await run('ack', 'consumer:worker', '--until', '2h', ...KNOWN);
    expect(made.code, made.err).toBe(0);
    const until = clock.now() + 2 * HOUR_MS;
    expect(await status()).toMatchObject({
      code: 0,
      ok: true,
      state: 'ok',
      findings: [{ state: 'broken', acknowledged: { until, reason: 'the bank is down, INC-7' } }],
    });
    const text = await run('status');
    expect([text.code, unwrapped(text.out)]).toEqual([
      0,
      expect.stringMatching(
        /^nothing visible is broken, 1 acknowledged .*acknowledged by arn:aws:sts::\S+ada until .*: the bank is down, INC-7/,
      ),
    ]);
    await clock.advance(2 * HOUR_MS);
    await mailroom.publish();
    expect(await status()).toMatchObject({ code: 1, state: 'broken', findings: [{ state: 'broken' }] });
  });

  test('does not hide more dead letters than were acknowledged, nor another finding', async () => {
    const mailroom = await withDeadLetter();
    const { run, status, reject, deployed } = mailroom;
    await run('ack', 'consumer:worker=2', '--until', '2h', ...KNOWN);
    await reject();
    expect(await status()).toMatchObject({
      code: 0,
      findings: [{ what: expect.stringMatching(/^2 dead letters/) }],
    });
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const other = await status();
    expect(other).toMatchObject({ code: 1, state: 'broken' });
    expect(
      other.findings.map((finding: { acknowledged?: object }) => finding.acknowledged === undefined),
    ).toEqual([true, false]);
    deployed.changeRule('bus|worker-rule', { enabled: true });
    await reject();
    expect(await status()).toMatchObject({
      code: 1,
      findings: [{ what: expect.stringMatching(/^3 dead letters/) }],
    });
  });

  test('of dead letters hides no other finding of their consumer', async () => {
    const { run, status, deployed, reject } = await withDeadLetter();
    for (let n = 1; n < 12; n += 1) await reject();
    await run('ack', 'consumer:worker', ...KNOWN);
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const { code, findings } = await status();
    expect(code).toBe(1);
    expect(findings).toMatchObject([
      { id: 'rule-disabled/worker', what: expect.stringContaining('worker receives no events') },
      { id: 'dead-letters/consumer:worker', count: 12, acknowledged: { reason: 'the bank is down, INC-7' } },
    ]);
    expect(findings[0]).not.toHaveProperty('acknowledged');
  });

  test('of a part acknowledges each of its findings, up to its own count', async () => {
    const { run, status, deployed, clock } = await withDeadLetter();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const plan = await run('ack', 'worker', 'consumer:worker=5', '--until', '2h');
    expect(plan.out).toContain('ack rule-disabled/worker dead-letters/consumer:worker=5 --until ');
    await run('ack', 'worker', 'consumer:worker=5', '--until', '2h', ...KNOWN);
    const { acks } = JSON.parse((await run('ack', 'list', '--json')).out);
    const terms = acks.map(({ finding, upTo }: { finding: string; upTo: number | null }) => [finding, upTo]);
    expect(terms.sort()).toEqual([
      ['dead-letters/consumer:worker', 5],
      ['rule-disabled/worker', null],
    ]);
    expect((await status()).code).toBe(0);
    await clock.advance(1_000);
    expect((await run('ack', 'remove', 'worker', ...KNOWN)).code).toBe(0);
    expect((await status()).code).toBe(1);
  });

  test('acknowledges a finding without a count', async () => {
    const { run, status, deployed, clock } = await withDeadLetter();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const made = await run('ack', 'rule-disabled/worker', ...KNOWN, '--json');
    expect(JSON.parse(made.out)).toMatchObject({
      applied: true,
      until: clock.now() + 30 * 24 * HOUR_MS,
      findings: [{ id: 'rule-disabled/worker', upTo: null }],
    });
    const { findings } = await status();
    expect(findings).toMatchObject([
      { what: expect.stringContaining('dead letter') },
      { acknowledged: { reason: 'the bank is down, INC-7' } },
    ]);
  });

  test('ends when the finding is of another kind, and stays readable with its command until then', async () => {
    const { run, status, deployed } = await withDeadLetter();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    await run('ack', 'worker', ...KNOWN);
    const { out } = await run('status');
    expect(out).toMatch(/\[rule-disabled\/worker\]\n +acknowledged by .*\n[^•]*aws events enable-rule /);
    deployed.changeRule('bus|worker-rule', { enabled: true, targets: [] });
    const { code, findings } = await status();
    expect(code).toBe(1);
    expect(findings[0]).toMatchObject({ id: 'target/worker' });
    expect(findings[0]).not.toHaveProperty('acknowledged');
  });

  test('of a finding without a count does not cover a second one with its name', async () => {
    const { run, deployed } = await withDeadLetter();
    deployed.changeRule('bus|worker-rule', { enabled: false });
    const { out } = await run('ack', 'worker=7', '--json', ...KNOWN);
    expect(JSON.parse(out).findings).toMatchObject([{ id: 'rule-disabled/worker', upTo: null }]);
  });

  test('is listed, recorded, and removed', async () => {
    const { run, status, clock } = await withDeadLetter();
    expect((await run('ack', 'list')).out).toContain('Nothing is acknowledged.');
    await run('ack', 'consumer:worker', '--until', '2h', ...KNOWN);
    expect(JSON.parse((await run('ack', 'list', '--json')).out).acks).toMatchObject([
      { finding: 'dead-letters/consumer:worker', upTo: 1, reason: 'the bank is down, INC-7' },
    ]);
    const plan = await run('ack', 'remove', 'consumer:worker');
    expect(unwrapped(plan.out)).toContain('Would end: dead-letters/consumer:worker, acknowledged by');
    expect((await status()).code).toBe(0);
    await clock.advance(1_000);
    const removed = await run('ack', 'remove', 'consumer:worker', '--apply', '--reason', 'the bank is back');
    expect(removed.code, removed.err).toBe(0);
    expect((await status()).code).toBe(1);
    const { operations } = JSON.parse((await run('operations', '--json')).out);
    expect(
      operations.map(({ command, reason }: { command: string; reason: string }) => [command, reason]),
    ).toEqual([
      ['ack remove', 'the bank is back'],
      ['ack', 'the bank is down, INC-7'],
    ]);
    const again = await run('ack', 'remove', 'consumer:worker');
    expect([again.code, unwrapped(again.err)]).toEqual([
      2,
      expect.stringContaining('"consumer:worker" is not acknowledged. Nothing is.'),
    ]);
  });

  test.each([
    [
      ['ack', 'consumer:billing'],
      /Status has no finding "consumer:billing"\. Its findings: dead-letters\/consumer:worker\. Nothing was changed/,
    ],
    [['ack', 'consumer'], /Status has no finding "consumer"/],
    [['ack', 'dead-letters/consumer:worker=many'], /Expected a finding, e\.g\. dead-letters/],
    [['ack', 'consumer:worker', '--until', '31d'], /must be within the next 30 days/],
    [['ack', 'consumer:worker', '--until', '2020-01-01T10:00Z'], /must be within the next 30 days/],
    [['ack', 'consumer:worker', '--until', 'soon'], /Expected a time/],
    [['ack', 'consumer:worker', '--apply'], /--apply needs a reason/],
  ])('refuses %j and records nothing', async (argv, message) => {
    const { run, memory } = await withDeadLetter();
    const before = memory.items();
    const { code, err } = await run(...argv);
    expect([code, unwrapped(err)]).toEqual([2, expect.stringMatching(message)]);
    expect(memory.items()).toEqual(before);
  });

  test('until 17:00 is the next 17:00', async () => {
    const { run, clock } = await withDeadLetter();
    const at = new Date(clock.now() - 60_000);
    const time = [at.getHours(), at.getMinutes()].map((part) => String(part).padStart(2, '0')).join(':');
    const { until } = JSON.parse((await run('ack', 'consumer:worker', '--until', time, '--json')).out);
    expect(until - clock.now()).toBeGreaterThan(23 * HOUR_MS - 60_000);
    expect(until - clock.now()).toBeLessThanOrEqual(25 * HOUR_MS);
  });

  test('texts of a stored acknowledgement reach the terminal escaped', async () => {
    const { run } = await withDeadLetter();
    await run('ack', 'consumer:worker', '--until', '2h', '--apply', '--reason', 'known\u202eknown');
    expect((await run('status')).out).toContain('known\\u202eknown');
    expect((await run('ack', 'list')).out).toContain('known\\u202eknown');
  });
});

test.each([
  ['ack-plan', ['ack', 'consumer:worker', '--until', '2h']],
  ['ack-list', ['ack', 'list']],
  ['status-acknowledged', ['status']],
])('the output of %s is the reviewed one', async (name, argv) => {
  const mailroom = await withDeadLetter();
  if (name !== 'ack-plan') await mailroom.run('ack', 'consumer:worker', '--until', '2h', ...KNOWN);
  const text = await captured(mailroom, argv);
  expect(tooWide(text)).toEqual([]);
  await expect(text).toMatchFileSnapshot(`captures/${name}.txt`);
});
