import { expect, test } from 'vitest';
import { doctorReport, doctorText } from '../../../cli/reports/findings/doctor.ts';
import { examine } from '../../../cli/reports/findings/examination.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { createAudit } from '../../../lambdas/runtime/operations/audit/audit.ts';
import {
  consumerEntryName,
  type Directory,
  inboxNamePath,
  mailroomEntryName,
} from '../../../lambdas/runtime/operations/directory.ts';
import { readDirectories } from '../../../lambdas/runtime/operations/directory-reader.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { resourcesInMemory, wiringOf } from './support/resources-in-memory.ts';
import { runInMemory } from './support/run-in-memory.ts';
import { drained, fine } from './support/why-rig.ts';

const { table } = directory.mailroom;
const entry = (name: string, value: object) => ({ name, value: JSON.stringify(value) });
const reserved = (queue: string, index: number, value: string) => ({
  name: inboxNamePath(table, queue, index),
  value,
});
const listed = [
  entry(mailroomEntryName(table), directory.mailroom),
  entry(consumerEntryName(table, worker.name), worker),
  reserved('worker-queue', 0, worker.name),
];

/** The directory of a Mailroom from which the entry of `payments` was deleted. */
function withoutPayments(): Directory {
  const [found] = readDirectories([...listed, reserved('payments-queue', 0, 'payments')]).directories;
  if (found === undefined) throw new Error('There is no directory');
  return found;
}

/** Prints the stack that created the reservation of its name. */
const NAMES_STACK =
  "aws cloudformation describe-stack-resources --physical-resource-id /mailroom/Mailroom/inboxes/payments-queue/renaming-a-consumer-needs-movedFrom-0 --query 'StackResources[0].StackName' --output text --region eu-west-1";

test('a consumer whose entry was deleted is known by the reservation of its name', () => {
  expect(readDirectories(listed).directories).toMatchObject([{ consumers: [{ name: worker.name }] }]);
  expect(readDirectories(listed).directories[0]).not.toHaveProperty('unlisted');
  expect(withoutPayments().unlisted).toEqual([
    { name: 'payments', parameter: inboxNamePath(table, 'payments-queue', 0) },
  ]);
});

test('the last name of a renamed consumer counts, also after ten renames', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', worker.name];
  const renamed = names.map((name, index) => reserved('worker-queue', index, name));
  expect(readDirectories([...listed, ...renamed]).directories[0]).not.toHaveProperty('unlisted');
});

test('status and doctor are not content with fewer checks', async () => {
  const unlisted = withoutPayments();
  const { queues, clock, table: rows } = mailroomInMemory([fine]);
  const { resources, deps } = resourcesInMemory(unlisted);
  const wiring = wiringOf(resources, unlisted);
  const report = await readStatus(
    withStored({
      directory: unlisted,
      region: 'x',
      table: rows,
      queues,
      wiring,
      now: clock.now(),
    }),
  );
  expect(report).toMatchObject({
    state: 'broken',
    wiring: { problems: [{ part: 'payments', problem: 'no-entry' }] },
  });
  const out = doctorText(doctorReport(unlisted, 'eu-west-1', 1, await examine(deps)), {
    commandLine: (command) => `npx cdk-mailroom ${command} --stage dev`,
    awsLine: (command) => `aws ${command} --region eu-west-1`,
  });
  expect(unwrapped(out)).toMatch(/1 problem: .* \d+ relations checked .* no entry of the consumer payments/);
  expect(out).toContain(NAMES_STACK);
  expect(out).toContain('npx cdk-mailroom audit --since 24h --stage dev');
});

test('why does not call an event processed that the consumer may have missed', async () => {
  const mailroom = { ...mailroomInMemory([fine]), directory: withoutPayments() };
  const eventId = await drained(mailroom);
  const { out } = await runInMemory(mailroom, ['why', eventId, '--json']);
  expect(JSON.parse(out)).toMatchObject({ verdict: { state: 'unproven', next: NAMES_STACK } });
  const { out: text } = await runInMemory(mailroom, ['why', eventId]);
  expect(unwrapped(text)).toContain('That leaves out payments: the directory has no entry');
});

test('an audit is incomplete without the consumer', async () => {
  const { queues, clock, table: rows } = mailroomInMemory([fine]);
  const rules = { describe: async () => undefined };
  const audit = createAudit({ table: rows, directory: withoutPayments(), queues, rules, clock });
  const { incomplete } = await audit.run({ since: clock.now() - 60_000, until: clock.now() });
  expect(incomplete).toEqual([expect.stringContaining('The directory has no entry of payments')]);
});
