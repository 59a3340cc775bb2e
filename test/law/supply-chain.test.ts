import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../docs/pages.ts';

const read = (file: string) => readFileSync(ROOT + file, 'utf8');

type Manifest = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The packages that are published, by their folders. */
const MANIFESTS = ['package.json', 'cli/package.json'].map((file) => JSON.parse(read(file)) as Manifest);

/** Workflows, and each of their jobs as text. */
const workflows = filesIn('.github/workflows', /\.ya?ml$/).map((file) => ({ file, text: read(file) }));
const jobs = workflows.flatMap(({ file, text }) => {
  const [head = '', body = ''] = text.split(/^jobs:$/m);
  // A job's steps may be another's, by their anchor.
  const anchors = new Map(
    [...body.matchAll(/steps: &(\w+)\n((?: {6,}.*\n|\n)*)/g)].map(([, name, steps]) => [name, steps]),
  );
  return body.split(/^(?= {2}[\w-]+:$)/m).flatMap((job) => {
    const name = /^ {2}([\w-]+):$/m.exec(job)?.[1];
    const steps = anchors.get(/steps: \*(\w+)/.exec(job)?.[1]) ?? '';
    return name === undefined ? [] : [{ name: `${file} ${name}`, text: head + job + steps }];
  });
});

/** Images without a digest, each with the reason. Empty: add one only with the reason why nothing can be pinned. */
const UNPINNED: Readonly<Record<string, string>> = {};

/** The images that files run: of containers and services in workflows and compose files, of Dockerfiles, and of commands in docs. */
function imagesIn(text: string): string[] {
  const patterns = [
    /^\s*(?:image|container):\s*["']?([\w./${}:@-]+)["']?\s*$/gm,
    /^FROM\s+(?:--\S+\s+)*(\S+)/gm,
    /docker:\/\/(\S+)/g,
    /\b(?:docker|podman) (?:run|pull|create)\b[^\n]*?\s([a-z][\w.-]*(?:\/[\w.-]+)*(?::[a-z\d][\w.-]*)?(?:@sha256:[\da-f]+)?)/g,
  ];
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, image = '']) => image));
}

function filesIn(folder: string, name: RegExp): string[] {
  if (!existsSync(ROOT + folder)) return [];
  return readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file))
    .map((file) => `${folder}/${file}`)
    .sort();
}

describe('dependencies', () => {
  test.each(['dependencies', 'devDependencies', 'optionalDependencies', 'overrides'])(
    '%s are exact versions',
    (kind) => {
      const ranges = MANIFESTS.flatMap((manifest) => Object.entries(manifest[kind] ?? {})).filter(
        ([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version),
      );
      expect(ranges).toEqual([]);
    },
  );

  test('both packages have one version, and one version of each package that both use', () => {
    const [library, command] = MANIFESTS;
    expect(command?.version).toEqual(library?.version);
    const versions = { ...library?.devDependencies, ...library?.dependencies };
    const own = Object.entries(command?.dependencies ?? {});
    expect(own.length).toBeGreaterThan(10);
    expect(own.filter(([name, version]) => (versions[name] ?? version) !== version)).toEqual([]);
  });

  test('every file that pip installs has a version and hashes', () => {
    const files = [
      ...filesIn('localstack', /requirements.*\.txt$/),
      ...filesIn('test/examples', /requirements.*\.txt$/),
    ];
    expect(files).toContain('localstack/requirements.txt');
    for (const file of files) {
      const lines = read(file).replaceAll('\\\n', ' ').split('\n');
      for (const line of lines.filter((one) => /^\w/.test(one)))
        expect(line, file).toMatch(/^[\w.[\]-]+==\S+ .*--hash=sha256:[\da-f]{64}/);
    }
  });
});

describe('workflows', () => {
  test('pin every action by its commit', () => {
    const uses = workflows.flatMap(({ text }) =>
      [...text.matchAll(/^\s*(?:- )?uses:\s*(\S+)/gm)].map(([, action]) => action),
    );
    expect(uses.length).toBeGreaterThan(20);
    expect(uses.filter((action) => !/^[\w-]+\/[\w./-]+@[\da-f]{40}$/.test(action ?? ''))).toEqual([]);
  });

  test('give no token for other services to a job that runs the install scripts of packages', () => {
    const tokens = jobs.filter(({ text }) => /id-token:\s*write/.test(text));
    expect(tokens.map(({ name }) => name)).toEqual([
      '.github/workflows/deploy.yml diff',
      '.github/workflows/deploy.yml dev',
      '.github/workflows/deploy.yml prod',
      '.github/workflows/release.yml publish',
    ]);
    for (const { name, text } of tokens) {
      const installs = [...text.matchAll(/\bnpm (?:ci|install|i|exec)\b.*/g)].map(([line]) => line);
      expect(
        installs.filter((line) => !line.includes('--ignore-scripts')),
        name,
      ).toEqual([]);
    }
  });

  test('publish a file that another job has built, and install nothing beside the token', () => {
    const publish = jobs.find(({ name }) => name.endsWith('release.yml publish'))?.text ?? '';
    const runs = [...publish.matchAll(/^ +(?:- )?run: (.*)$/gm)].map(([, run]) => run);
    expect(runs).toEqual([
      'echo "$SHA256" | sha256sum --check --strict',
      'npm publish "./$PACKAGE.tgz" --provenance --access public --ignore-scripts',
    ]);
    expect(publish).toMatch(/^ +package: \[cdk-mailroom, cdk-mailroom-cli\]$/m);
    expect(publish).not.toContain('actions/checkout@');
  });
});

test('container images are pinned by digest', () => {
  const files = [
    ...workflows.map(({ file }) => file),
    ...['localstack', 'docs', 'test', 'bench', 'verify'].flatMap((folder) =>
      filesIn(folder, /(?:compose[\w.-]*\.ya?ml|Dockerfile[\w.-]*|\.md)$/),
    ),
    ...['README.md', 'CONTRIBUTING.md'],
  ];
  const images = files.flatMap((file) => imagesIn(read(file)).map((image) => ({ file, image })));
  expect(images.map(({ file }) => file)).toEqual(
    expect.arrayContaining(['.github/workflows/nightly.yml', 'localstack/compose.yml']),
  );
  const isPinned = (image: string) => /@sha256:[\da-f]{64}$/.test(image) || image in UNPINNED;
  expect(images.filter(({ image }) => !isPinned(image))).toEqual([]);
});

test.each([
  ['    container: node:24-bookworm', 'node:24-bookworm'],
  ['    image: "localstack/localstack:4.14.0"', 'localstack/localstack:4.14.0'],
  ['FROM --platform=linux/arm64 node:24 AS build', 'node:24'],
  ['      - uses: docker://alpine:3', 'alpine:3'],
  ['docker run --rm -p 5432:5432 postgres:17', 'postgres:17'],
])('%j is an image without a digest', (line, image) => {
  expect(imagesIn(line)).toContain(image);
});
