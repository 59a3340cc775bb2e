import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { SYSTEM_PREFIXES } from '../../lambdas/runtime/store/keys.ts';
import { unwrapped } from '../support/captured-io.ts';
import { headingIds, linksOf } from './links.ts';
import { pageCode } from './page-code.ts';
import { ROOT, readPages } from './pages.ts';
import { commandsOf, shownCommandsOf } from './shell.ts';

const pages = readPages();
const blocks = pages.flatMap(({ path, blocks }) => blocks.map((block) => ({ path, ...block })));
const { scripts, repository } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
  scripts: Record<string, string>;
  repository: { url: string };
};

/** What `tsc` reads of a page: the blocks named `ts`. Anything else is checked below, or is output. */
const LANGUAGES = ['ts', 'json', 'sh', 'yaml', 'mermaid', 'text', ''];

describe('the pages', () => {
  test('every page is found', () => {
    const paths = pages.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'README.md',
        'docs/testing.md',
        'docs/recipes/README.md',
        'test/chaos/README.md',
      ]),
    );
  });

  test('README.md has under 150 lines and shows how to get the repository, run the demo and run the tests', () => {
    const readme = readFileSync(`${ROOT}README.md`, 'utf8');
    expect(readme.split('\n').length - 1).toBeLessThan(150);
    const clone = `git clone ${repository.url.replace('git+', '')} && cd cdk-mailroom`;
    expect(readme).toContain(`\n\`\`\`sh\n${clone}\nnpm ci && npm run demo\n\`\`\`\n`);
    expect(readme).toContain('`npm ci && npm test`');
  });

  test('llms.txt names every key prefix that only Mailroom may write', () => {
    const llms = readFileSync(`${ROOT}llms.txt`, 'utf8');
    expect(SYSTEM_PREFIXES.filter((prefix) => !llms.includes(`\`${prefix}\``))).toEqual([]);
  });

  test('pages contain code only in languages that are checked', () => {
    const others = blocks.filter(({ language }) => !LANGUAGES.includes(language));
    expect(others.map(({ path, line, language }) => `${path}:${line} ${language}`)).toEqual([]);
  });

  test('no block without a language contains code', () => {
    const hidden = blocks.filter(
      ({ language, code }) =>
        ['', 'text'].includes(language) && /^(import|export|const|await|npx|npm) .*/m.test(code),
    );
    expect(hidden.map(({ path, line }) => `${path}:${line}`)).toEqual([]);
  });

  test('every ts block compiles', () => {
    const fences = pages.map(({ path, text }) => {
      // Counted by another rule than the one that takes them out.
      return [path, text.split('\n').filter((line) => line.trimStart().startsWith('```ts')).length];
    });
    const written = pages.map((page) => [page.path, pageCode(page, { path: '', blocks: [] }).size]);
    expect(written).toEqual(fences);
  });

  test('every json block parses', () => {
    const json = blocks.filter(({ language }) => language === 'json');
    expect(json.length).toBeGreaterThan(10);
    const broken = json.filter(({ code }) => !parses(code));
    expect(broken.map(({ path, line }) => `${path}:${line}`)).toEqual([]);
  });

  test('every link leads to an existing page and heading', () => {
    const links = pages.flatMap(({ path, text }) => linksOf(text).map((link) => ({ path, link })));
    expect(links.length).toBeGreaterThan(50);
    const broken = links.filter(({ path, link }) => !leadsSomewhere(path, link));
    expect(broken.map(({ path, link }) => `${path}: ${link}`)).toEqual([]);
  });
});

describe('the commands that the pages show', () => {
  const commands = pages.flatMap(({ path, text, blocks }) => {
    const inBlocks = blocks.flatMap(({ language, code }) => (language === 'sh' ? commandsOf(code) : []));
    return [...inBlocks, ...shownCommandsOf(text)].map((words) => ({ path, words }));
  });
  const starting = (...first: string[]) =>
    commands.filter(({ words }) => first.every((word, at) => words[at] === word));

  test('every npm script that a page shows exists', () => {
    const scripted = starting('npm', 'run');
    expect(scripted.length).toBeGreaterThan(20);
    const unknown = scripted.filter(({ words }) => !Object.hasOwn(scripts, words[2] ?? ''));
    expect(unknown.map(({ path, words }) => `${path}: ${words.join(' ')}`)).toEqual([]);
  });

  test('the program accepts every command that a page shows', async () => {
    const complaints: string[] = [];
    const shown = starting('npx', 'cdk-mailroom');
    expect(shown.length).toBeGreaterThan(50);
    for (const { path, words } of shown) {
      const complaint = await complaintAbout(words.slice(2));
      if (complaint !== undefined) complaints.push(`${path}: ${words.join(' ')}: ${complaint}`);
    }
    expect(complaints).toEqual([]);
  });

  test('the check refuses commands that the program does not accept', async () => {
    expect(await complaintAbout(['dlq', 'redrive'])).toContain("missing required argument 'source'");
    expect(await complaintAbout(['sweep', '--since', 'yesterday'])).toContain('a whole number with a unit');
    expect(await complaintAbout(['statsu'])).toContain("unknown command 'statsu'");
  });
});

function parses(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}

function leadsSomewhere(path: string, link: string): boolean {
  const [file = '', heading] = link.split('#');
  const target = ROOT + (file === '' ? path : posix.join(posix.dirname(path), decodeURI(file)));
  if (!existsSync(target)) return false;
  if (heading === undefined || !target.endsWith('.md')) return true;
  return headingIds(readFileSync(target, 'utf8')).includes(heading);
}

/**
 * What the real program says against a call, before it looks at anything: behind the call's own words stands an
 * endpoint that it refuses once it has read them all.
 */
async function complaintAbout(argv: readonly string[]): Promise<string | undefined> {
  let said = '';
  // A command of a database calls no endpoint.
  const isDatabase = argv[0] === 'postgres' || argv[0] === 'mysql';
  const words = argv.filter((word, n) => word !== '--database' && argv[n - 1] !== '--database');
  const nowhere = isDatabase ? [...words, '--database', 'nowhere'] : [...argv, '--endpoint', 'nowhere'];
  const code = await runMailroom(nowhere, {
    env: {},
    out: () => {},
    err: (text) => {
      said += text;
    },
    outIsTerminal: false,
    outSize: () => undefined,
    errIsTerminal: false,
    signal: new AbortController().signal,
    exitCode: 0,
  });
  const complaint = unwrapped(said);
  const refused = isDatabase ? /is not a (postgresql|mysql):/ : /--endpoint is \\?"nowhere/;
  return code === 0 || refused.test(complaint) ? undefined : complaint;
}

test('the index of decision records lists each record, by its title', () => {
  const folder = new URL('../../docs/adr/', import.meta.url);
  const index = readFileSync(new URL('README.md', folder), 'utf8');
  const records = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));
  expect(records.length).toBeGreaterThan(30);
  const titled = records.map((name) => {
    const [, title = ''] = /^# (.+)$/m.exec(readFileSync(new URL(name, folder), 'utf8')) ?? [];
    return `[${title}](${name})`;
  });
  expect(titled.filter((link) => !index.includes(link))).toEqual([]);
});
