import { expect, test } from 'vitest';
import { errorHelp } from '../../lambdas/runtime/base/documentation.ts';
import { EXPLANATIONS, errorsPage, SECTIONS } from '../../tools/errors/errors-page.ts';
import { headingIds } from './links.ts';
import { ROOT } from './pages.ts';

const explained = SECTIONS.flatMap(({ codes }) => Object.entries(codes));

test('docs/errors.md has the explanations of tools/errors', async () => {
  await expect(
    errorsPage(),
    'docs/errors.md is made of tools/errors. Renew it with: npx vitest run --project fast test/docs/errors.test.ts -u',
  ).toMatchFileSnapshot(`${ROOT}docs/errors.md`);
});

test('every code is explained once, in at most 70 words and whole sentences', () => {
  expect(explained.map(([code]) => code).sort()).toEqual(Object.keys(EXPLANATIONS).sort());
  const long = explained.filter(([, parts]) => Object.values(parts).join(' ').split(/\s+/).length > 70);
  expect(long.map(([code]) => code)).toEqual([]);
  const unended = explained.filter(([, parts]) =>
    Object.values(parts).some((text) => !/^[A-Z`].*\.$/.test(text)),
  );
  expect(unended.map(([code]) => code)).toEqual([]);
});

test('the link of an error leads to the entry of its code', () => {
  const ids = headingIds(errorsPage());
  const lost = explained.filter(([code]) => !ids.includes(errorHelp(code as never).split('#')[1] ?? ''));
  expect(lost).toEqual([]);
});
