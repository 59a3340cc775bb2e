import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { chooseMailroom } from '../../cli/deployment/choose-mailroom.ts';
import type { Deployment } from '../../cli/deployment/deployment.ts';
import { examine } from '../../cli/reports/findings/examination.ts';
import { busText, createBusReader } from '../../cli/reports/status/bus-status.ts';
import { verdictOf } from '../../cli/reports/why/chain-verdict.ts';
import { readTrace } from '../../cli/reports/why/trace-reader.ts';
import { matchesFilter } from '../../lambdas/runtime/events/data-filter.ts';
import { createAudit } from '../../lambdas/runtime/operations/audit/audit.ts';
import { busFaults, neighborsOf, withNeighbors } from '../../lambdas/runtime/operations/bus-consumers.ts';
import {
  busPath,
  consumerClaimName,
  encodeClaim,
  readBusDirectories,
  serviceClaimName,
} from '../../lambdas/runtime/operations/bus-directory.ts';
import {
  consumerEntryName,
  type Directory,
  mailroomEntryName,
  servicePath,
} from '../../lambdas/runtime/operations/directory.ts';
import { type DirectoryReading, readDirectories } from '../../lambdas/runtime/operations/directory-reader.ts';
import { runs } from '../property/support/runs.ts';
import { withStored } from '../support/with-stored.ts';
import { mailroomInMemory, directory as own, worker } from '../unit/cli/support/mailroom-in-memory.ts';
import { resourcesInMemory } from '../unit/cli/support/resources-in-memory.ts';
import { drained, fine } from '../unit/cli/support/why-rig.ts';

const parameter = (name: string, value: unknown) => ({
  name,
  value: typeof value === 'string' ? value : JSON.stringify(value),
});
const OTHER = { ...own.mailroom, table: 'Other', stack: 'other-dev' };
const ours = [
  parameter(mailroomEntryName(own.mailroom.table), own.mailroom),
  parameter(consumerEntryName(own.mailroom.table, worker.name), worker),
];
const parcels = { ...worker, name: 'parcels', stack: 'other-dev' };
const theirs = (mailroom: unknown = OTHER, consumer: unknown = parcels) => [
  parameter(mailroomEntryName('Other'), mailroom),
  parameter(consumerEntryName('Other', 'parcels'), consumer),
];
const choice = { stack: own.mailroom.stack, variable: undefined, appStacks: [], where: 'eu-west-1' };

/** Chooses the own Mailroom beside that of another team. */
function chosenBeside(others: readonly { name: string; value: string }[]) {
  const reading = readDirectories([...ours, ...others]);
  const { directory } = chooseMailroom(reading, choice);
  const neighbors = neighborsOf(directory, reading.directories);
  return { directory, neighbors, broken: reading.broken };
}

const deepFilter = (levels: number) => `${'{"a":'.repeat(levels)}[1]${'}'.repeat(levels)}`;

/** Entries of another team that stopped every command: what is wrong with the consumer's, by the text of the finding. */
const BAD_CONSUMERS: readonly (readonly [string, unknown, RegExp])[] = [
  ['is not JSON', 'not JSON', /: it is not JSON\./],
  ['is null', 'null', /: it is not a JSON object\./],
  ['has no events', { ...parcels, events: null }, /: its events is not a list of events/],
  ['has an event that is null', { ...parcels, events: [null] }, /: its events is not a list/],
  [
    'has a filter that is text',
    { ...parcels, events: [{ source: 's', type: 't', filter: 'x' }] },
    /: its events is not a list/,
  ],
  [
    'has a deep filter',
    JSON.stringify({ ...parcels, events: [{ source: 's', type: 't', filter: 0 }] }).replace(
      '"filter":0',
      `"filter":${deepFilter(1_000)}`,
    ),
    /: The JSON is nested more than 256 levels deep/,
  ],
  [
    'has the name of another',
    { ...parcels, name: 'worker' },
    /: its name is "worker", which is not that of its name/,
  ],
  ['has endless attempts', { ...parcels, maxAttempts: 1e300 }, /: its maxAttempts is not a whole number/],
  ['has no queue', { ...parcels, queue: undefined }, /: queue is missing/],
];

const BAD_MAILROOMS: readonly (readonly [string, unknown, RegExp])[] = [
  ['is not JSON', '{', /: it is not JSON\./],
  ['is a list', '[]', /: it is not a JSON object\./],
  ['has endless shards', { ...OTHER, shards: Number.MAX_SAFE_INTEGER }, /: its shards is not a whole number/],
  [
    'has the table of another',
    { ...OTHER, table: own.mailroom.table },
    /: its table is ".*", which is not that of its name/,
  ],
];

const claimed = () =>
  readBusDirectories([
    parameter(
      consumerClaimName(own.mailroom.bus, own.mailroom.table, worker.name),
      encodeClaim({ stack: 'a', owner: 'a' }),
    ),
    parameter(
      consumerClaimName(own.mailroom.bus, 'Other', 'parcels'),
      encodeClaim({ stack: 'other-dev', owner: 'b' }),
    ),
  ])[0];

describe('the entry of another team’s consumer', () => {
  test.each(BAD_CONSUMERS)('that %s is its finding, and stops nothing', async (_what, consumer, text) => {
    const bus = chosenBeside(theirs(OTHER, consumer));
    expect(bus.directory.consumers).toEqual([expect.objectContaining({ name: worker.name })]);
    const name = consumerEntryName('Other', 'parcels');
    expect(bus.neighbors).toEqual([
      {
        mailroom: OTHER,
        consumers: [],
        unlisted: [{ name: 'parcels', parameter: name, fault: expect.stringMatching(text) }],
      },
    ]);
    await expectFinding(bus, name, text);
  });
});

describe('the entry of another team’s Mailroom', () => {
  test.each(BAD_MAILROOMS)('that %s is its finding, and stops nothing', async (_what, mailroom, text) => {
    const bus = chosenBeside(theirs(mailroom));
    expect(bus.neighbors).toEqual([]);
    await expectFinding(bus, mailroomEntryName('Other'), text);
  });

  test('that names the stack of this one under the name of its own table is the fault of its own parameter', () => {
    const usurper = { ...OTHER, stack: own.mailroom.stack };
    const listed = parameter(
      servicePath('Other', 'parcels'),
      encodeClaim({ stack: 'other-dev', owner: 'b' }),
    );
    const { directory, broken } = chosenBeside([...theirs(usurper), listed]);
    expect(directory.mailroom.table).toBe(own.mailroom.table);
    expect(broken).toMatchObject([
      {
        parameter: mailroomEntryName('Other'),
        fault: expect.stringContaining(
          `its stack is "${own.mailroom.stack}", but that of ${listed.name} is "other-dev"`,
        ),
      },
    ]);
  });

  test('on another bus is not a finding of this one', () => {
    const elsewhere = readDirectories([...ours, ...theirs({ ...OTHER, shards: 0, bus: 'another' })]);
    expect(busFaults({ directory: own, ...elsewhere }, undefined)).toEqual([]);
  });
});

test('a claim of another team that is not JSON is its finding, and still claims its name', async () => {
  const names = [consumerClaimName('bus', 'Other', 'parcels'), serviceClaimName('bus', 'parcels')];
  const [claims] = readBusDirectories(names.map((name) => parameter(name, 'not JSON')));
  const faults = busFaults({ directory: own }, claims);
  expect(faults.map((fault) => fault.parameter)).toEqual(names);
  expect(withNeighbors(own, [], claims).unlisted?.map(({ name }) => name)).toEqual(['Other/parcels']);
  const { problems } = await examine({ ...resourcesInMemory().deps, faults });
  expect(problems.map(({ part, problem }) => [part, problem])).toEqual(
    names.map((name) => [name, 'bad-entry']),
  );
});

describe('the chosen Mailroom', () => {
  const name = consumerEntryName(own.mailroom.table, worker.name);

  test('with a consumer’s entry that cannot be used is refused, by the parameter', () => {
    const reading = readDirectories([
      ...ours.slice(0, 1),
      parameter(name, { ...worker, events: null }),
      ...theirs(),
    ]);
    expect(() => chooseMailroom(reading, choice)).toThrow(`The parameter ${name} does not have the form`);
    expect(chooseMailroom(reading, { ...choice, stack: 'other-dev' }).directory.mailroom.table).toBe('Other');
  });

  test('whose own entry cannot be used is refused, by the parameter', () => {
    const broken = parameter(mailroomEntryName(own.mailroom.table), { ...own.mailroom, shards: '4' });
    const reading = readDirectories([broken, ...theirs()]);
    expect(() => chooseMailroom(reading, choice)).toThrow(
      `The parameter ${broken.name} does not have the form`,
    );
    expect(() => chooseMailroom(reading, { ...choice, stack: 'no-such' })).toThrow('matches stack "no-such"');
  });

  test('is not the only one that can be used, as long as no stack is named', () => {
    const reading = readDirectories([...ours, ...theirs('{')]);
    expect(() => chooseMailroom(reading, { ...choice, stack: undefined })).toThrow(
      'There are several Mailrooms in eu-west-1: mailroom-dev, one whose entry /mailroom/Other/mailroom cannot be used. Choose one with --stack',
    );
  });
});

/** Status, doctor, audit and why name the parameter, each with a code, and go on with everything else. */
async function expectFinding(
  bus: { directory: Directory; neighbors: readonly Directory[]; broken: DirectoryReading['broken'] },
  name: string,
  text: RegExp,
) {
  const mailroom = mailroomInMemory([fine]);
  const eventId = await drained(mailroom);
  const { table, queues, clock } = mailroom;
  const claims = claimed();
  const neighbors = bus.neighbors.map((directory) => ({ directory, table }));
  const deps = { table, directory: bus.directory, neighbors, broken: bus.broken, queues, clock };

  const audit = createAudit({ ...deps, claims, rules: { describe: async () => undefined } });
  const report = await audit.run({ since: clock.now() - 3_600_000, until: clock.now() + 1, graceMs: 0 });
  expect(report.consumers).toMatchObject({ worker: { expected: 1, processed: 1 } });
  expect(report.incomplete.filter((one) => text.test(one) && one.includes(name))).toHaveLength(1);

  const faults = busFaults(deps, claims);
  const { problems } = await examine({ ...resourcesInMemory().deps, faults });
  expect(problems).toMatchObject([{ part: name, problem: 'bad-entry', text: expect.stringMatching(text) }]);

  const deployment = {
    ...deps,
    neighbors: [],
    commandLine: (line: string) => line,
    claims: async () => claims,
  };
  const others = bus.neighbors.map((directory) => ({ directory }));
  const rows = busFaults({ ...deps, neighbors: others }, claims);
  expect(rows).toEqual(faults);
  if (others.length === 0) {
    const status = await createBusReader(deployment as unknown as Deployment)();
    expect(status).toMatchObject([
      { stack: null, parameter: name, state: null, code: 'BAD_DIRECTORY', next: 'doctor' },
    ]);
    expect(busText(status).join().replace(/\s+/g, ' ')).toContain(
      `${name} could not be read (BAD_DIRECTORY: The parameter ${name}`,
    );
  }

  const trace = await readTrace(
    withStored({ ...deps, neighbors: deps.neighbors.map(withStored), claims: async () => claims }),
    [eventId],
  );
  const context = {
    now: clock.now(),
    commandLine: (line: string) => line,
    awsLine: (line: string) => line,
    tableName: table.name,
  };
  expect(verdictOf(trace, () => context)).toMatchObject({
    state: 'unproven',
    text: expect.stringContaining(name),
  });
}

test('claims that cannot be read now are named, and read again', async () => {
  const claims = vi.fn(async () => undefined as never);
  claims.mockRejectedValueOnce(Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' }));
  const deployment = { directory: own, neighbors: [], claims, commandLine: (line: string) => line };
  const read = createBusReader(deployment as unknown as Deployment);
  expect(await read()).toMatchObject([
    { stack: null, parameter: busPath(own.mailroom.bus), state: null, code: 'ThrottlingException' },
  ]);
  expect(await read()).toEqual([]);
  await read();
  expect(claims).toHaveBeenCalledTimes(2);
});

describe('the reader of directories', () => {
  const times = runs(300);
  const member = (entry: object) =>
    fc.constantFrom(...Object.keys(entry), 'stackPath', 'order', 'slo', 'heartbeat', '__proto__');
  const json = fc.jsonValue({ maxDepth: 4 });

  test('takes any value at any member of any entry, and leaves the own Mailroom as it is', () => {
    fc.assert(
      fc.property(member({ ...OTHER, ...parcels }), json, json, (at, value, whole) => {
        const set = (entry: object) => JSON.stringify({ ...entry, [at]: value });
        for (const others of [
          theirs(set(OTHER)),
          theirs(OTHER, set(parcels)),
          theirs(JSON.stringify(whole)),
        ]) {
          const { directory, neighbors, broken } = chosenBeside(others);
          expect(directory.consumers).toHaveLength(1);
          busFaults({ directory, neighbors: neighbors.map((one) => ({ directory: one })), broken });
          for (const { events } of withNeighbors(directory, neighbors).consumers)
            for (const { filter } of events)
              if (filter !== undefined) matchesFilter(filter, { a: [1, { b: 'x' }] });
        }
      }),
      times,
    );
  });

  test('takes any filter, and no filter makes a payload throw', () => {
    fc.assert(
      fc.property(json, json, (filter, payload) => {
        const entry = { ...parcels, events: [{ source: 's', type: 't', filter }] };
        const { neighbors } = chosenBeside(theirs(OTHER, entry));
        for (const { consumers } of neighbors)
          for (const { events } of consumers)
            for (const one of events)
              if (one.filter !== undefined) expect(matchesFilter(one.filter, payload)).toBeTypeOf('boolean');
      }),
      times,
    );
  });

  test('takes any text as the value of a claim', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (value) => {
        const names = [consumerClaimName('bus', 'Other', 'parcels'), serviceClaimName('bus', 'a/b')];
        const [claims] = readBusDirectories(names.map((name) => ({ name, value })));
        expect(claims?.consumers).toHaveLength(1);
        expect(claims?.services).toHaveLength(1);
      }),
      times,
    );
  });
});
