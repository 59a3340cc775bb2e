import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { appStacks } from '../../../cli/deployment/app-stacks.ts';
import { chooseMailroom } from '../../../cli/deployment/choose-mailroom.ts';
import { directoryPath } from '../../../lambdas/runtime/operations/directory.ts';
import { directory } from './support/mailroom-in-memory.ts';

const deployed = (...stacks: string[]) => ({
  directories: stacks.map((stack) => ({ ...directory, mailroom: { ...directory.mailroom, stack } })),
  broken: [],
});
const choice = { variable: undefined, appStacks: [], where: 'eu-west-1' };
const two = deployed('ShopStack', 'billing-dev');

describe('the Mailroom of a run, of several in the region', () => {
  test('is that of the CDK app in the folder, and printed commands name its stack', () => {
    expect(chooseMailroom(two, { ...choice, appStacks: ['Network', 'ShopStack'] })).toEqual({
      directory: two.directories[0],
      byApp: true,
      unnamedStack: 'ShopStack',
    });
  });

  test('is that of MAILROOM_STACK before the app’s, and that of an option before both', () => {
    const more = { ...choice, variable: 'billing-dev', appStacks: ['ShopStack'] };
    expect(chooseMailroom(two, more)).toMatchObject({
      directory: two.directories[1],
      byApp: false,
      unnamedStack: 'billing-dev',
    });
    expect(chooseMailroom(two, { ...more, stack: 'ShopStack' })).toEqual({
      directory: two.directories[0],
      byApp: false,
      unnamedStack: undefined,
    });
    const dev = { ...more, variable: 'ShopStack', stage: 'DEV' };
    expect(chooseMailroom(two, dev)).toMatchObject({
      directory: two.directories[1],
      unnamedStack: undefined,
    });
  });

  test('is never that of an app which the options exclude', () => {
    const apps = deployed('a-dev', 'b-dev', 'ShopStack');
    expect(() => chooseMailroom(apps, { ...choice, stage: 'dev', appStacks: ['ShopStack'] })).toThrow(
      'There are several Mailrooms in eu-west-1: a-dev, b-dev. ',
    );
  });

  test.each([[[]], [['ShopStack', 'billing-dev']]])(
    'is refused with the command that chooses one, where the app has %j',
    (stacks) => {
      expect(() => chooseMailroom(two, { ...choice, appStacks: stacks })).toThrow(
        'There are several Mailrooms in eu-west-1: ShopStack, billing-dev. Choose one with --stack or --stage, run the command ' +
          'in the folder of its synthesized CDK app, or set it for this shell: `export MAILROOM_STACK=ShopStack`',
      );
    },
  );

  test('is not found by a name that no stack has, whichever names it', () => {
    const all = 'Stacks with a Mailroom: ShopStack, billing-dev.';
    for (const [given, named] of [
      [{ stack: 'shop' }, 'stack "shop"'],
      [{ stage: 'prod' }, 'stage "prod"'],
      [{ variable: 'shop' }, 'the stack "shop" of MAILROOM_STACK'],
    ] as const)
      expect(() => chooseMailroom(two, { ...choice, ...given })).toThrow(
        `No Mailroom in eu-west-1 matches ${named}. ${all}`,
      );
    expect(() => chooseMailroom(deployed(), choice)).toThrow('No Mailroom is deployed in eu-west-1.');
  });
});

describe('the Mailroom of a stack that another team’s entry names as well', () => {
  const usurper = { ...directory, mailroom: { ...directory.mailroom, table: 'Other', stack: 'ShopStack' } };
  const own = deployed('ShopStack').directories[0] as typeof directory;
  const reading = { directories: [own, usurper], broken: [] };
  const path = directoryPath(own.mailroom.table);

  test('is chosen by the path of its directory, which the error and printed commands name', () => {
    expect(() => chooseMailroom(reading, { ...choice, stack: 'ShopStack' })).toThrow(
      `There are several Mailrooms in eu-west-1: ${path}, /mailroom/Other. Choose one with --stack`,
    );
    expect(chooseMailroom(reading, { ...choice, stack: path }).directory).toBe(own);
    const chosen = chooseMailroom(reading, { ...choice, variable: path });
    expect(chosen).toEqual({ directory: own, byApp: false, unnamedStack: path });
  });

  test('is chosen even if the other names that path its stack, or has an entry that cannot be used', () => {
    const named = { ...usurper, mailroom: { ...usurper.mailroom, stack: path } };
    const broken = [
      { table: 'Third', parameter: '/mailroom/Third/mailroom', fault: 'bad', hints: { stack: path } },
    ];
    const hostile = { directories: [named, own, usurper], broken };
    expect(chooseMailroom(hostile, { ...choice, stack: path }).directory).toBe(own);
  });

  test('is not the other one, whose table has the name of the stack', () => {
    const named = { ...usurper, mailroom: { ...usurper.mailroom, table: 'ShopStack', stack: 'other' } };
    const hostile = { directories: [named, own], broken: [] };
    expect(chooseMailroom(hostile, { ...choice, stack: 'ShopStack' }).directory).toBe(own);
  });
});

test('a single Mailroom needs no choice, and is used from the folder of any app', () => {
  const {
    directories: [only],
  } = deployed('ShopStack');
  expect(chooseMailroom(deployed('ShopStack'), { ...choice, appStacks: ['Network'] })).toEqual({
    directory: only,
    byApp: false,
    unnamedStack: undefined,
  });
});

describe('the stacks of the CDK app in a folder', () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
  });

  async function folderWith(files: Readonly<Record<string, unknown>>): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'mailroom-app-'));
    folders.push(folder);
    for (const [file, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content));
    }
    return folder;
  }

  const stack = (stackName?: string) => ({ type: 'aws:cloudformation:stack', properties: { stackName } });
  const assembly = {
    'cdk.out/manifest.json': {
      artifacts: {
        Tree: { type: 'cdk:tree' },
        ShopStack: stack(),
        'assembly-Prod': { type: 'cdk:cloud-assembly', properties: { directoryName: 'assembly-Prod' } },
      },
    },
    'cdk.out/assembly-Prod/manifest.json': { artifacts: { ProdShop: stack('Prod-Shop') } },
  };

  test('are those of its last synth, in stages too, by the names that they have in AWS', async () => {
    expect(await appStacks(await folderWith(assembly))).toEqual(['ShopStack', 'Prod-Shop']);
  });

  test('are found where cdk.json puts them', async () => {
    const elsewhere = Object.entries(assembly).map(([file, content]) => [
      file.replace('cdk.out', 'build'),
      content,
    ]);
    const files = { ...Object.fromEntries(elsewhere), 'cdk.json': { output: 'build' } };
    expect(await appStacks(await folderWith(files))).toEqual(['ShopStack', 'Prod-Shop']);
  });

  test.each([
    {},
    { 'cdk.out/manifest.json': 'not JSON' },
    { 'cdk.out/manifest.json': 'null' },
    { 'cdk.json': '[]' },
  ])('are none in a folder without a readable app: %j', async (files) => {
    expect(await appStacks(await folderWith(files))).toEqual([]);
  });
});
