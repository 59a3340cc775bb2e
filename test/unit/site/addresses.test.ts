import { readdirSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { addressOf, pageOf, pictureOf } from '../../../tools/site/addresses.ts';
import { headingId, twoPictures } from '../../../tools/site/markdown.ts';
import { headingIds } from '../../docs/links.ts';
import { ROOT } from '../../docs/pages.ts';

const repository = { url: 'https://example.com/shop', ref: 'v0.1.0' };
const kind = (path: string) => {
  const found = statSync(ROOT + path, { throwIfNoEntry: false });
  return found?.isDirectory() ? 'folder' : found?.isFile() ? 'file' : undefined;
};
const address = (from: string, link: string) => addressOf(from, link, repository, kind);

test.each([
  ['docs/operating.md', 'cli.md#exit-codes', '/cli.md#exit-codes'],
  ['docs/recipes/middy.md', '../cost.md', '/cost.md'],
  ['docs/faq.md', 'recipes/README.md', '/recipes/'],
  ['README.md', 'docs/adr/README.md', '/adr/'],
  ['docs/cost.md', '../bench/README.md#on-aws', '/benchmarks.md#on-aws'],
  ['docs/security.md', '../SECURITY.md', '/reporting.md'],
])('%s links to another page by %s', (from, link, expected) => {
  expect(address(from, link)).toBe(expected);
});

test.each([
  ['docs/guarantees.md', '../lib/mailroom.ts', 'https://example.com/shop/blob/v0.1.0/lib/mailroom.ts'],
  ['README.md', 'LICENSE', 'https://example.com/shop/blob/v0.1.0/LICENSE'],
  ['docs/faq.md', '../lambdas/example/orders', 'https://example.com/shop/tree/v0.1.0/lambdas/example/orders'],
])('%s links to a file that is not a page, %s, at the tag of its version', (from, link, expected) => {
  expect(address(from, link)).toBe(expected);
});

test.each(['https://example.com/a', '#here', 'mailto:a@example.com'])('%s stays as it is', (link) => {
  expect(address('README.md', link)).toBe(link);
});

test.each(['no-such-page.md', '../../outside.md'])('a link to %s is refused with its page', (link) => {
  expect(() => address('docs/cost.md', link)).toThrow(
    `docs/cost.md links to "${link}", which the repository does not have`,
  );
});

test('a file outside docs/ is a page only where the site lists it', () => {
  expect(pageOf('CHANGELOG.md')).toBe('changelog.md');
  expect(pageOf('test/package/api/runtime.api.md')).toBeUndefined();
});

test.each([
  ['README.md', './docs/images/ui-flow.png'],
  ['docs/console.md', './images/ui-flow.png'],
])('a picture of the repository is shown on the site from its file: in %s', (from, expected) => {
  const source = `${repository.url}/raw/main/docs/images/ui-flow.png`;
  expect(pictureOf(from, source, repository, kind)).toBe(expected);
  expect(pictureOf(from, './local.png', repository, kind)).toBe('./local.png');
});

test('the pictures of the README have addresses that work on npm, and files', () => {
  const readme = readFileSync(`${ROOT}README.md`, 'utf8');
  const pictures = [...readme.matchAll(/(?<=!\[[^\]]+\]\(|\b(?:src|srcset)=")[^)"]+/g)].map(
    ([source]) => source,
  );
  expect(pictures.length).toBeGreaterThan(2);
  const own = { url: 'https://github.com/cdk-mailroom/cdk-mailroom' };
  for (const source of pictures)
    expect(pictureOf('README.md', source, own, kind)).toMatch(/^\.\/docs\/images\//);
  expect(pictures.filter((source) => !source.startsWith('https://'))).toEqual([]);
});

test('a picture for each scheme becomes two images, and any other form is refused', () => {
  const [picture = ''] = readFileSync(`${ROOT}README.md`, 'utf8').match(/<picture>[\s\S]*<\/picture>/) ?? [];
  const made = twoPictures(picture, (source) => source.replace(/^.*\//, ''));
  expect(made).toMatch(/^<img class="light-only" alt="[^"]+" src="console\.png">/);
  expect(made).toMatch(/<img class="dark-only" alt="[^"]+" src="console-dark\.png">$/);
  expect(() => twoPictures('<picture><img src="a.png"></picture>', String)).toThrow(
    'is not a picture that the site can show',
  );
});

test('every Markdown file of the root folder is a page under a name of lower case', () => {
  const files = readdirSync(ROOT).filter((file) => file.endsWith('.md'));
  expect(files.filter((file) => !/^[a-z-]+\.md$/.test(pageOf(file) ?? ''))).toEqual([]);
});

test('a heading has the same id as on GitHub', () => {
  for (const heading of ['What is `why`?', "AWS's own_name", 'Logs, metrics and traces', 'Can I …?'])
    expect([headingId(heading.replaceAll('`', ''))]).toEqual(headingIds(`# ${heading}`));
});
