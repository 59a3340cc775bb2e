import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ROOT } from './pages.ts';

const FOLDER = `${ROOT}.github/ISSUE_TEMPLATE/`;
const templates = readdirSync(FOLDER).map((file) => ({ file, text: readFileSync(FOLDER + file, 'utf8') }));
const forms = templates.filter(({ file }) => file !== 'config.yml');
const { bugs } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { bugs: string };
const repository = bugs.replace(/\/issues$/, '');

describe('the issue templates', () => {
  test('there is a form for a bug, a feature and a question', () => {
    expect(forms.map(({ file }) => file).sort()).toEqual(['bug.yml', 'feature.yml', 'question.yml']);
  });

  test('every form has fields with id and label, and at least one required field', () => {
    for (const { file, text } of forms) {
      const ids = [...text.matchAll(/^ {4}id: (\S+)$/gm)].map(([, id]) => id);
      const labels = [...text.matchAll(/^ {6}label: \S/gm)];
      expect(new Set(ids).size, file).toBe(ids.length);
      expect(labels, file).toHaveLength(ids.length);
      expect(text, file).toContain('required: true');
    }
  });

  test('send a vulnerability to a private report, not to an issue', () => {
    const config = templates.find(({ file }) => file === 'config.yml')?.text;
    expect(config).toContain('blank_issues_enabled: false');
    expect(config).toContain(`url: ${repository}/security/advisories/new`);
  });

  test('link only to pages of this repository that exist', () => {
    const pages = templates.flatMap(({ text }) =>
      [...text.matchAll(/\/blob\/main\/([\w./-]+\.md)/g)].map(([, path = '']) => path),
    );
    expect(pages.length).toBeGreaterThan(3);
    expect(pages.filter((path) => !existsSync(ROOT + path))).toEqual([]);
    const addresses = templates.flatMap(({ text }) => text.match(/https:\/\/[^\s)]+/g) ?? []);
    expect(addresses.filter((address) => !address.startsWith(`${repository}/`))).toEqual([]);
  });
});
