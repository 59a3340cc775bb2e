import { expect, test } from 'vitest';
import { newest, replacedAtRoot, versionMenu, versionOf } from '../../../tools/site/versions.ts';

test('a tag publishes its version, and main the next one', () => {
  expect(versionOf('v0.1.0')).toBe('0.1.0');
  expect(versionOf('v1.0.0-rc.1')).toBe('1.0.0-rc.1');
  expect(versionOf('main')).toBe('next');
});

test.each(['0.1.0', 'v1', 'feature', 'v1.0.0/../..'])('%s publishes nothing', (ref) => {
  expect(() => versionOf(ref)).toThrow(`"${ref}" is not published: use main, or the tag of a release`);
});

test('the newest release is the greatest number, not the last name and no pre-release', () => {
  expect(newest(['0.9.0', '0.10.0', '1.0.0-rc.1', 'next'])).toBe('0.10.0');
  expect(newest(['next'])).toBeUndefined();
});

test('the menu has the newest release at the root, and every other version in its folder', () => {
  const folders = ['0.1.0', '0.10.0', '0.2.0', '1.0.0-rc.1', 'assets', 'next', 'index.html'];
  expect(versionMenu(folders, '/mailroom/')).toEqual([
    { version: '1.0.0-rc.1', base: '/mailroom/1.0.0-rc.1/' },
    { version: '0.10.0', base: '/mailroom/' },
    { version: '0.2.0', base: '/mailroom/0.2.0/' },
    { version: '0.1.0', base: '/mailroom/0.1.0/' },
    { version: 'next', base: '/mailroom/next/' },
  ]);
});

test('a newer release replaces the root, but no version, nor the domain of GitHub Pages', () => {
  const names = ['.git', '.nojekyll', 'CNAME', '0.1.0', '1.0.0-rc.1', 'next', 'assets', 'index.html'];
  expect(replacedAtRoot(names)).toEqual(['.nojekyll', 'assets', 'index.html']);
});
