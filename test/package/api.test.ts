import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiReport, apiReport, ENTRIES } from '../../tools/site/api/extraction.ts';
import { step } from './step.ts';
import { ROOT } from './tarball.ts';

const reports = new Map<string, ApiReport>();
let folder = '';

beforeAll(async () => {
  await mkdir(join(ROOT, '.local'), { recursive: true });
  folder = await mkdtemp(join(ROOT, '.local', 'api-'));
  const built = join(folder, 'dist');
  await step(ROOT, 'npx', [
    '--no',
    '--',
    'tsc',
    '-p',
    'tsconfig.build.json',
    '--outDir',
    built,
    '--declarationDir',
    built,
  ]);
  for (const [name, { types }] of Object.entries(ENTRIES)) {
    const own = join(folder, name);
    await mkdir(own);
    reports.set(name, await apiReport(join(built, types), own));
  }
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

function report(name: string): ApiReport {
  const found = reports.get(name);
  if (found === undefined) throw new Error(`There is no report of ${name}`);
  return found;
}

function exportedNames(text: string): string[] {
  const declared = /^export (?:declare |abstract )*(?:class|const|function|interface|type) (\w+)/gm;
  return [...text.matchAll(declared)].map(([, name = '']) => name);
}

describe.each(Object.keys(ENTRIES))('the public names of %s', (name) => {
  test('its public names are those that were reviewed', async () => {
    await expect(
      report(name).text,
      'The public surface has changed. See docs/versioning.md for what that makes of the next version, and renew the reviewed ' +
        'text with: npx vitest run --project package test/package/api.test.ts -u',
    ).toMatchFileSnapshot(`api/${name}.api.md`);
  });

  test('can be read without a name that no entry exports', () => {
    const exported = Object.keys(ENTRIES).flatMap((entry) => exportedNames(report(entry).text));
    const problems = report(name).problems.filter((problem) => {
      const forgotten = /^ae-forgotten-export: The symbol "(\w+)"/.exec(problem)?.[1];
      return forgotten === undefined || ![...exported, ...COMPUTED].includes(forgotten);
    });
    expect(problems).toEqual([]);
  });
});

/** An application's own declarations can write only names of an entry that it imports. */
test('the runtime exports at most 64 names, and the types that its functions return', () => {
  const { text } = report('runtime');
  const names = exportedNames(text);
  expect(names.length).toBeLessThanOrEqual(64);
  const returned = [...text.matchAll(/^export function \w+.*\): (?<type>\w+)(?:\[\])?;$/gm)].map(
    ({ groups }) => groups?.type ?? '',
  );
  expect(returned).toContain('Handler');
  const ownTypes = returned.filter((name) => /^[A-Z]\w/.test(name) && !/^(?:Promise|Record)$/.test(name));
  expect([...names, ...OF_CONSTRUCTS]).toEqual(expect.arrayContaining(ownTypes));
});

test('docs/versioning.md says who needs each name of the internals', async () => {
  const page = await readFile(join(ROOT, 'docs/versioning.md'), 'utf8');
  const section = page.split('### Names in `cdk-mailroom/internals`')[1]?.split('\n#')[0] ?? '';
  const cells = section.split('\n').map((row) => row.split(' | ')[1] ?? '');
  const listed = [...cells.join().matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  expect(listed.sort()).toEqual(exportedNames(report('internals').text).sort());
});

/** Returned by `strict` and `latest`, and exported by `cdk-mailroom`, which a stack imports. */
const OF_CONSTRUCTS = ['LatestOrder', 'StrictOrder'];

/** Parts of `EventFilter`, which only the compiler reads: it computes the type of a filter from an event's. */
const COMPUTED = ['FilterOf', 'PublishedData'];

describe('what the constructs take', () => {
  const constructs = () => report('constructs').text;

  test('no export of the constructs has a type parameter', () => {
    const generic = /^export (?:declare |abstract )*(?:class|function|interface|type) \w+<.*$/gm;
    expect(constructs().match(generic) ?? []).toEqual([]);
  });

  test('all props are interfaces of readonly members', () => {
    const text = constructs();
    const taken = exportedNames(text).filter((name) => /(?:Props|Options)$/.test(name));
    expect(taken).toContain('MailroomProps');
    for (const name of taken) {
      const body = new RegExp(
        `^export interface ${name}(?: extends [^{]+)? \\{\\n(?<members>[\\s\\S]*?)^\\}`,
        'm',
      ).exec(text);
      const members = body?.groups?.members?.split('\n').filter((line) => /^ {4}\w/.test(line));
      expect(members, `${name} is not an interface`).toBeDefined();
      for (const member of members ?? []) expect(member, name).toMatch(/^ {4}readonly \w+\??: \S/);
    }
  });
});
