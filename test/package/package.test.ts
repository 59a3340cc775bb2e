import { readFile, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BUILT_FUNCTIONS } from '../../tools/pack/functions.ts';
import { linksOf } from '../docs/links.ts';
import { compileProducer, ENTRIES, evaluate, makeBareApp } from './bare-app.ts';
import { reachedPackages, smallBundle } from './bundles.ts';
import { packageOf, specifiersOf } from './imports.ts';
import { step } from './step.ts';
import { linkIn, makeApp } from './stranger.ts';
import { type Packages, pack, packageFolder, type Tarball } from './tarball.ts';

/** The peers that every app has. */
const REQUIRED_PEERS = ['@aws-sdk/client-dynamodb', '@aws-sdk/util-dynamodb'];

/** The packages, packed once: their files, their bundles, and a user's app. */
let packed: Packages;
let tarball: Tarball;
let folder = '';

beforeAll(async () => {
  folder = await packageFolder();
  packed = await pack(folder);
  tarball = packed.library;
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const read = (file: string) => readFile(join(tarball.unpacked, file), 'utf8');

/** The packages that the code and the declarations of a package name, each with one of its files. */
async function importedBy({ unpacked, files, manifest }: Tarball): Promise<ReadonlyMap<string, string>> {
  const imported = new Map<string, string>();
  for (const file of files.filter((name) => /\.(?:c?js|d\.ts)$/.test(name)))
    for (const specifier of specifiersOf(await readFile(join(unpacked, file), 'utf8'))) {
      const name = packageOf(specifier);
      // Of a package that is written in JavaScript, declarations need the types.
      const types = `@types/${name}`;
      const declared = file.endsWith('.d.ts') && types in manifest.dependencies ? types : name;
      if (!specifier.startsWith('.') && !isBuiltin(specifier)) imported.set(declared, file);
    }
  return imported;
}

describe('the tarball', () => {
  test('the package contains the built files, the license and the pages, and nothing else', () => {
    const pages = ['CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md', 'llms.txt'];
    const others = tarball.files.filter((file) => !/^(?:dist|docs)\//.test(file));
    expect(others.sort()).toEqual([...pages, 'LICENSE', 'package.json', 'bin/mailroom.cjs'].sort());
    const external =
      /^docs\/(?:adr|api)\/|^docs\/images\/(?!flow\.svg$|ui-[a-z-]+\.png$)|^dist\/(?!functions\/|cjs\/package(?:s\/|\.json$)|(?:cjs\/)?(?:lib|lambdas|testing)\/)|\/(?:test|bench|demo|example)\/|\.test\./;
    expect(tarball.files.filter((file) => external.test(file))).toEqual([]);
    for (const name of BUILT_FUNCTIONS) expect(tarball.files).toContain(`dist/functions/${name}/index.mjs`);
  });

  test('the package of the command contains it, the web console and the files of the local AWS', () => {
    const { files } = packed.command;
    expect(
      files.filter(
        (file) => !/^dist\/(?:cli|lambdas\/runtime)\/.*\.js$|^dist\/localstack\/.*\.js$/.test(file),
      ),
    ).toEqual([
      'LICENSE',
      'README.md',
      'bin/command.js',
      'bin/mailroom.js',
      'bin/missing-packages.js',
      'bin/node-version.js',
      'dist/help.json',
      'dist/localstack/compose.yml',
      'dist/localstack/engine.py',
      'dist/localstack/requirements.txt',
      'dist/ui/THIRD-PARTY-LICENSES.txt',
      'dist/ui/index.html',
      'dist/ui/page.css',
      'dist/ui/page.js',
      'package.json',
    ]);
    expect(files).toContain('dist/cli/main.js');
  });

  test('both packages have one version, license, address and minimum of Node.js', async () => {
    const { library, command } = packed;
    for (const member of ['version', 'license', 'engines', 'homepage', 'bugs'])
      expect(command.manifest[member], member).toEqual(library.manifest[member]);
    expect(command.manifest.repository).toEqual({
      ...(library.manifest.repository as object),
      directory: 'cli',
    });
    expect(await readFile(join(command.unpacked, 'LICENSE'), 'utf8')).toBe(await read('LICENSE'));
  });

  test('the package contains every page that README.md links to, except decision records, and names its repository', async () => {
    const linked = linksOf(await read('README.md')).map((target) => target.replace(/#.*$/, ''));
    expect(linked.length).toBeGreaterThan(10);
    // npm links it to the repository, which alone has the decision records.
    expect(linked.filter((target) => !tarball.files.includes(target))).toEqual(['docs/adr/README.md']);
    const { repository, homepage, bugs } = tarball.manifest;
    const at = /^git\+(?<url>https:\S+)\.git$/.exec((repository as { readonly url: string }).url)?.groups
      ?.url;
    expect([homepage, bugs]).toEqual([`${at}#readme`, `${at}/issues`]);
  });

  test.each(['library', 'command'] as const)('the %s runs nothing when it is installed', (name) => {
    const { manifest, files } = packed[name];
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(manifest.scripts ?? {}).filter((script) => hooks.includes(script))).toEqual([]);
    expect(files).not.toContain('binding.gyp');
  });

  /** Packages that another one loads, or that only the repository has, each with the reason. */
  const EXCEPTIONS = {
    library: { unnamed: ['esbuild', 'mysql2'] }, // the CDK bundles handlers with it; users pass a pool of the driver
    command: { unnamed: [], named: ['tsx'] }, // the repository runs the command from its sources
  };

  test.each(['library', 'command'] as const)(
    'the %s declares every package that its files name, and no other',
    async (name) => {
      const { dependencies, peerDependencies } = packed[name].manifest;
      const { unnamed, named = [] } = { named: [], ...EXCEPTIONS[name] };
      const imported = await importedBy(packed[name]);
      const declared = Object.keys({ ...dependencies, ...peerDependencies }).concat(named);
      expect([...imported.keys(), ...unnamed].sort()).toEqual(declared.sort());
    },
  );

  test('the package has source maps for its functions only', async () => {
    const functions = tarball.files.filter((file) => /^dist\/functions\/.*\.mjs$/.test(file));
    expect(functions.length).toBeGreaterThanOrEqual(BUILT_FUNCTIONS.length);
    expect(tarball.files.filter((file) => file.endsWith('.map'))).toEqual(
      functions.map((file) => `${file}.map`),
    );
    for (const file of tarball.files.filter((name) => /^dist\/.*\.js$/.test(name)))
      expect(await read(file), file).not.toContain('//# sourceMappingURL=');
  });
});

describe('what is bundled of it', () => {
  /** 1,953 bytes at the last look. Any library that slips in is more than the difference. */
  const EVENT_BYTES_MAX = 2_000;

  test('a bundle that only defines an event contains neither the SDK nor Powertools', async () => {
    const { bytes, packages } = await smallBundle(
      tarball,
      "export { defineEvent } from 'cdk-mailroom/runtime';",
    );
    expect(packages).toEqual(['cdk-mailroom']);
    expect(bytes).toBeLessThanOrEqual(EVENT_BYTES_MAX);
  });

  test("a producer's bundle contains only the DynamoDB client", async () => {
    const { packages } = await smallBundle(tarball, "export { lambdaOutbox } from 'cdk-mailroom/runtime';");
    expect(packages.filter((name) => name.startsWith('@aws-sdk/client-'))).toEqual([
      '@aws-sdk/client-dynamodb',
    ]);
  });

  test("a consumer's bundle contains only the DynamoDB and SQS clients", async () => {
    const { packages } = await smallBundle(tarball, "export { lambdaConsumer } from 'cdk-mailroom/runtime';");
    expect(packages.filter((name) => name.startsWith('@aws-sdk/client-'))).toEqual([
      '@aws-sdk/client-dynamodb',
      '@aws-sdk/client-sqs',
    ]);
  });
});

describe('importing', () => {
  const CDK = /^(?:aws-cdk-lib|constructs)$/;
  const IN_AWS = /^@aws-(?:sdk|lambda-powertools)\//;

  test('cdk-mailroom loads the CDK, and neither the SDK nor Powertools', async () => {
    const packages = await reachedPackages(tarball, 'cdk-mailroom');
    expect(packages.filter((name) => CDK.test(name))).toEqual(['aws-cdk-lib', 'constructs']);
    expect(packages.filter((name) => IN_AWS.test(name))).toEqual([]);
  });

  test.each(['cdk-mailroom/runtime', 'cdk-mailroom/http', 'cdk-mailroom/testing'])(
    '%s loads nothing of the CDK',
    async (entry) => {
      const packages = await reachedPackages(tarball, entry);
      expect(packages.some((name) => IN_AWS.test(name))).toBe(true);
      expect(packages.filter((name) => CDK.test(name))).toEqual([]);
    },
  );
});

describe('Powertools Idempotency', () => {
  const reached = async (entry: string) =>
    (await reachedPackages(tarball, entry)).includes('@aws-lambda-powertools/idempotency');

  test('is loaded by cdk-mailroom/http only', async () => {
    expect(await reached('cdk-mailroom/http')).toBe(true);
    for (const entry of ENTRIES.filter((name) => name !== 'cdk-mailroom/http'))
      expect(await reached(entry), entry).toBe(false);
  });
});

describe('the clients of a bridge', () => {
  const CLIENT = /^(?:kafkajs|@nats-io\/[\w-]+|amqplib|@aws-sdk\/client-(?:sns|kinesis))$/;

  test('are loaded by no entry, because a bridge passes its own; cdk-mailroom/bridge loads nothing of AWS', async () => {
    for (const entry of ENTRIES) {
      const packages = await reachedPackages(tarball, entry);
      expect(
        packages.filter((name) => CLIENT.test(name)),
        entry,
      ).toEqual([]);
    }
    expect(await reachedPackages(tarball, 'cdk-mailroom/bridge')).toEqual([]);
  });
});

describe('an entry', () => {
  /** Where ES modules cannot be required, as in Jest. */
  const NO_ES_MODULES = '--no-experimental-require-module';
  let app = '';

  beforeAll(async () => {
    app = await makeBareApp(tarball, Object.keys(tarball.manifest.peerDependencies));
  });

  afterAll(async () => {
    await rm(app, { recursive: true, force: true });
  });

  const names = (module: string) =>
    `Object.keys(${module}).filter((name) => !['default', 'module.exports'].includes(name)).sort()`;

  test.each(ENTRIES)('%s has the same names for require, for import and for a bundler', async (entry) => {
    const { module = '' } = tarball.manifest.exports[entry.replace('cdk-mailroom', '.')] ?? {};
    const bundled = pathToFileURL(join(app, 'node_modules', 'cdk-mailroom', module)).href;
    const expected = await evaluate(app, names(`await import('${bundled}')`));
    expect(expected).not.toEqual([]);
    expect(await evaluate(app, names(`require('${entry}')`), NO_ES_MODULES)).toEqual(expected);
    expect(await evaluate(app, names(`await import('${entry}')`))).toEqual(expected);
  });

  test('require and import load the same classes and state', async () => {
    const one = `require('cdk-mailroom/runtime').MailroomError === (await import('cdk-mailroom/runtime')).MailroomError`;
    expect(await evaluate(app, one)).toBe(true);
  });
});

describe('an app that only produces', () => {
  let app = '';

  beforeAll(async () => {
    app = await makeBareApp(tarball, [...REQUIRED_PEERS, '@types/node']);
  });

  afterAll(async () => {
    await rm(app, { recursive: true, force: true });
  });

  test('needs the client of DynamoDB, and no other peer', () => {
    const { peerDependencies, peerDependenciesMeta } = tarball.manifest;
    const required = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
    expect(required).toEqual(REQUIRED_PEERS);
  });

  test.each(['require', 'await import'])('starts with %s', async (load) => {
    const outbox = `Object.keys((${load}('cdk-mailroom/runtime')).lambdaOutbox())`;
    expect(await evaluate(app, outbox)).toEqual([
      'commit',
      'entries',
      'cancel',
      'cancellation',
      'reschedule',
    ]);
    expect(await evaluate(app, `typeof (${load}('cdk-mailroom/testing')).memoryTable`)).toBe('function');
    // Neither the driver nor the clients for its password are loaded before they are used.
    expect(await evaluate(app, `typeof (${load}('cdk-mailroom/postgres')).nodePostgres`)).toBe('function');
  });

  test('starts as a bundle that leaves the other clients out', async () => {
    const contents = `import { lambdaOutbox } from 'cdk-mailroom/runtime'; console.log(Object.keys(lambdaOutbox()).join());`;
    await build({
      stdin: { contents, resolveDir: app },
      outfile: join(app, 'bundle.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      external: ['@aws-sdk/client-eventbridge', '@aws-sdk/client-sqs'],
      banner: {
        js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url); var __filename = import.meta.filename, __dirname = import.meta.dirname;",
      },
      logLevel: 'silent',
    });
    expect(await step(app, process.execPath, ['bundle.mjs'])).toBe(
      'commit,entries,cancel,cancellation,reschedule\n',
    );
  });

  test('gets an error that names the package to install when it uses a missing one', async () => {
    const consume = `require('cdk-mailroom/runtime').sqsQueue({ client: {}, queueUrl: '' }).changeVisibility('', 0)`;
    expect(await evaluate(app, `${consume}.catch(({ message }) => message)`)).toBe(
      'cdk-mailroom uses @aws-sdk/client-sqs here, which is not installed. Run: npm install @aws-sdk/client-sqs',
    );
  });

  test.each(['require', 'await import'])(
    'gets an error that names Powertools when it answers an HTTP request without it, by %s',
    async (load) => {
      const request = `{ idempotencyKey: 'a', payload: {}, remainingMs: 1, first: async () => '{}', earlier: async () => undefined }`;
      const oncePerKey = `(${load}('cdk-mailroom/http')).createOncePerKey({ client: {}, tableName: '', operation: 'a' })`;
      expect(await evaluate(app, `${oncePerKey}(${request}).catch(({ message }) => message)`)).toBe(
        'cdk-mailroom uses @aws-lambda-powertools/idempotency here, which is not installed. Run: npm install @aws-lambda-powertools/idempotency',
      );
    },
  );

  test('has a command that says which package to install, and runs it once it is installed', async () => {
    const { bin } = tarball.manifest;
    expect(Object.keys(packed.command.manifest.bin)).toEqual(Object.keys(bin));
    for (const file of Object.values(bin))
      await expect(
        step(app, process.execPath, [`node_modules/cdk-mailroom/${file}`, 'status']),
      ).rejects.toThrow(
        'failed:\nThe mailroom command is the package @cdk-mailroom/cli, which is not installed. Run: npm install --save-dev @cdk-mailroom/cli',
      );
    for (const option of ['--version', '--help'])
      expect(
        await step(app, process.execPath, [`node_modules/cdk-mailroom/${bin.mailroom}`, option]),
      ).toMatch(
        option === '--version' ? tarball.manifest.version : 'npm install --save-dev @cdk-mailroom/cli',
      );
    const both = await makeBareApp(packed.library, [], packed.command);
    try {
      const run = async (file: string) =>
        await step(both, process.execPath, [`node_modules/${file}`, '--version']);
      expect(await run('cdk-mailroom/bin/mailroom.cjs')).toBe(`${packed.command.manifest.version}\n`);
      expect(await run('@cdk-mailroom/cli/bin/mailroom.js')).toBe(`${packed.command.manifest.version}\n`);
    } finally {
      await rm(both, { recursive: true, force: true });
    }
  });

  test.each([
    ['commonjs', 'nodenext', 'nodenext'],
    ['module', 'nodenext', 'nodenext'],
    ['commonjs', 'node16', 'node16'],
    ['module', 'esnext', 'bundler'],
  ])(
    'compiles as "type": "%s" with module %s, resolution %s and every declaration checked',
    async (type, module, resolution) => {
      await compileProducer(app, { type, module, resolution });
    },
  );
});

describe('the command without the SDK and other packages', () => {
  let app = '';

  beforeAll(async () => {
    app = await makeBareApp(packed.library, [], packed.command);
    const folder = join(app, 'node_modules');
    for (const name of ['@aws-sdk', 'pg', 'commander']) await rm(join(folder, name), { recursive: true });
  });

  afterAll(async () => {
    await rm(app, { recursive: true, force: true });
  });

  const run = async (...args: readonly string[]) =>
    await step(app, process.execPath, ['node_modules/cdk-mailroom/bin/mailroom.cjs', ...args]);

  /** What is printed when the help of each command is asked for, in one process. */
  const printedFor = async (commands: readonly string[]) =>
    await evaluate(
      app,
      `import('./node_modules/@cdk-mailroom/cli/bin/missing-packages.js').then(({ withoutPackages }) => {
        const { write } = process.stdout;
        const printed = ${JSON.stringify(commands)}.map((words) => {
          let out = '';
          process.stdout.write = (text) => (out += text, true);
          withoutPackages(new Error('not installed'), [...words.split(' ').filter(Boolean), '--stage', 'dev', '--help']);
          return [words, out];
        });
        process.stdout.write = write;
        return Object.fromEntries(printed);
      })`,
    );

  test('prints its version', async () => {
    expect(await run('--version')).toBe(`${packed.command.manifest.version}\n`);
  });

  test('prints the help of every command', async () => {
    const help = JSON.parse(
      await readFile(join(packed.command.unpacked, 'dist', 'help.json'), 'utf8'),
    ) as Record<string, string>;
    expect(Object.keys(help)).toEqual(expect.arrayContaining(['', 'why', 'dlq redrive', 'local stop']));
    for (const [words, text] of Object.entries(help))
      expect(text).toMatch(`Usage: npx cdk-mailroom ${words}`.trim());
    expect(await run('dlq', 'redrive', '--stage', 'dev', '--help')).toBe(help['dlq redrive']);
    // The import that fails before is the same for each command.
    expect(await printedFor(Object.keys(help))).toEqual(help);
  });

  test('names the missing packages, with the package manager of the app', async () => {
    await writeFile(join(app, 'pnpm-lock.yaml'), '');
    await expect(run('status')).rejects.toThrow(
      /@cdk-mailroom\/cli needs packages that are not installed: @aws-sdk\/client-cloudformation, .* Run: pnpm add --save-dev @aws-sdk\/client-cloudformation .*commander/,
    );
  });
});

// Run on a local AWS, bundled, and as CommonJS: the nightly tests.
test("a user's app, made by cdk init with the files of docs/getting-started.md, compiles and lists its stack, and has the command, which exports its catalog", async () => {
  const app = join(folder, 'ESM', 'shop');
  await makeApp(app, 'ESM');
  await linkIn(app, packed);
  expect(await step(app, 'npx', ['--no', '--', 'cdk', 'list'])).toContain('ShopStack'); // runs tsc first
  expect(await step(app, 'npx', ['--no', '--', 'cdk-mailroom', '--help'])).toContain(
    'Usage: npx cdk-mailroom',
  );
  const catalog = await step(app, 'npx', ['--no', '--', 'cdk-mailroom', 'events', 'export', 'src/events.ts']);
  expect(Object.keys((JSON.parse(catalog) as { channels: object }).channels)).toContain('orders.OrderPlaced');
});
