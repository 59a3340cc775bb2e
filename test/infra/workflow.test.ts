import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const FOLDER = new URL('../../.github/workflows/', import.meta.url);

const workflows = readdirSync(FOLDER).map((name) => [name, read(name)] as const);
const deploy = read('deploy.yml');
const ci = read('ci.yml');

describe.each(workflows)('%s', (_, text) => {
  const jobs = jobsOf(text);

  test('uses actions by commit, with the version beside it: a tag can be moved', () => {
    const uses = [...text.matchAll(/uses: (.*)$/gm)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThanOrEqual(4);
    for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('grants nothing by default, and each job requests what it needs', () => {
    expect(text).toMatch(/^permissions: \{\}$/m);
    expect(jobs.size).toBeGreaterThanOrEqual(2);
    for (const [job, lines] of jobs) expect(lines, job).toMatch(/^ {4}permissions:/m);
  });

  test('ends each job that hangs', () => {
    for (const [job, lines] of jobs) expect(lines, job).toMatch(/^ {4}timeout-minutes: \d+$/m);
  });

  test('leaves no token behind in what it checked out', () => {
    const checkouts = text.match(/uses: actions\/checkout@/g) ?? [];
    expect(checkouts.length).toBeGreaterThan(0);
    expect(text.match(/^ {10}persist-credentials: false$/gm)).toHaveLength(checkouts.length);
  });

  test('puts nothing that others may write into a script, but into its environment', () => {
    const scripts = scriptsOf(text);
    expect(scripts.length).toBeGreaterThan(3);
    expect(scripts.filter((script) => script.includes('${{'))).toEqual([]);
  });

  test('holds no secret, and runs no pull request with the rights of main', () => {
    expect(text).not.toMatch(/secrets\.|aws-access-key-id|pull_request_target|workflow_run/);
  });
});

describe('the deploy workflow', () => {
  test('lets a job only read the code and request a role from AWS', () => {
    expect(permissions(deploy)).toEqual(new Set(['contents: read', 'id-token: write']));
  });

  test('lets no pull request of a fork near a role', () => {
    expect(deploy).toContain('github.event.pull_request.head.repo.full_name == github.repository');
  });

  test("runs a pull request with prod's role only where that was chosen", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as GitHub reads it
    expect(deploy).toContain('stage: ${{ fromJSON(vars.DIFF_STAGES || \'["dev"]\') }}');
  });

  test('deploys dev only after the check, and prod only after dev', () => {
    expect(jobsOf(deploy).get('dev')).toMatch(/^ {4}needs: check$/m);
    expect(jobsOf(deploy).get('prod')).toMatch(/^ {4}needs: dev$/m);
  });
});

describe('the ci workflow', () => {
  test('may only read the code', () => {
    expect(permissions(ci)).toEqual(new Set(['contents: read']));
  });

  test('tests each Node that package.json supports, from its oldest on', () => {
    const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const [, oldest] = /^>=(\d+)/.exec(engines.node) ?? [];
    const [, tested = ''] = /^ {8}node: \[(.*)\]$/m.exec(ci) ?? [];
    expect(tested.split(', ')).toEqual([oldest, '22', '24']);
  });

  test('the workflow has one required job, which is red unless all others are green', () => {
    const jobs = jobsOf(ci);
    const last = jobs.get('ci');
    const others = [...jobs.keys()].filter((job) => job !== 'ci');
    expect(last).toMatch(/^ {4}if: always\(\)$/m);
    expect(last).toContain(`\n    needs: [${others.join(', ')}]\n`);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as GitHub reads it
    expect(last).toContain("RESULTS: ${{ join(needs.*.result, ' ') }}");
    expect(last).toContain('test "$result" = success || exit 1');
  });

  test('stops what a newer commit of the same pull request has superseded, and nothing else', () => {
    expect(ci).toContain(`
concurrency:
  group: ci-\${{ github.event.pull_request.number || github.run_id }}
  cancel-in-progress: true
`);
  });
});

describe('the release workflow', () => {
  const release = read('release.yml');

  test('publishes with provenance, only after the tests, and only the version of its tag', () => {
    const [build = '', publish = ''] = ['build', 'publish'].map((job) => jobsOf(release).get(job));
    expect(build).toMatch(/^ {4}needs: test$/m);
    expect(build).toContain('test "$GITHUB_REF_NAME" = "v$(node -p');
    expect(publish).toMatch(/^ {4}needs: build$/m);
    expect(publish).toMatch(/npm publish .*--provenance/);
  });

  test('holds no token: the registry trusts the workflow', () => {
    expect(permissions(release)).toEqual(new Set(['contents: read', 'id-token: write']));
    expect(release).not.toMatch(/NODE_AUTH_TOKEN|NPM_TOKEN/);
  });
});

describe('the docs workflow', () => {
  const docs = read('docs.yml');

  test('builds the site of a pull request, which fails on a dead link, and publishes only what was pushed', () => {
    expect(docs).toMatch(/^ {2}pull_request:$/m);
    expect(jobsOf(docs).get('build')).toContain('npm run docs:build');
    const publish = jobsOf(docs).get('publish') ?? '';
    expect(publish).toMatch(/^ {4}needs: build$/m);
    expect(publish).toContain("github.event_name == 'push'");
  });

  test('may write to the repository only where it publishes, and never drops a waiting release', () => {
    expect(permissions(docs)).toEqual(new Set(['contents: read', 'contents: write']));
    expect(jobsOf(docs).get('build')).not.toContain('contents: write');
    expect(jobsOf(docs).get('publish')).toContain(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the workflow
      'group: docs-${{ github.ref_type }}\n      cancel-in-progress: false',
    );
  });

  test('publishes each release under its version, and main as the next one', () => {
    expect(docs).toContain("push:\n    branches: [main]\n    tags: ['v*']\n");
    expect(docs).toContain(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as a shell reads it
      'npx tsx tools/site/publish.ts .local/pages "/${GITHUB_REPOSITORY#*/}/" "$GITHUB_REF_NAME"',
    );
  });
});

test('Dependabot watches every kind of dependency', () => {
  const dependabot = readFileSync(new URL('../dependabot.yml', FOLDER), 'utf8');
  expect([...dependabot.matchAll(/package-ecosystem: (\S+)/g)].map(([, name]) => name)).toEqual([
    'npm',
    'pip',
    'github-actions',
  ]);
});

function read(name: string): string {
  return readFileSync(new URL(name, FOLDER), 'utf8');
}

/** The lines of each job, by its name. */
function jobsOf(text: string): Map<string, string> {
  const [, jobs = ''] = text.split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}(\w+):\n/m).slice(1);
  return new Map(parts.flatMap((part, index) => (index % 2 === 0 ? [[part, parts[index + 1] ?? '']] : [])));
}

/** What a shell runs: the text of each `run`, on its line or below it. */
function scriptsOf(text: string): string[] {
  return [...text.matchAll(/^( *)(?:- )?run: (.*(?:\n\1 {2,}.*)*)/gm)].map(([, , script = '']) => script);
}

function permissions(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/^ {6}([\w-]+): (read|write)$/gm)].map(([, what, how]) => `${what}: ${how}`),
  );
}
