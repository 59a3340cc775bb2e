import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const FOLDERS = ['bench', 'bin', 'cli', 'demo', 'lambdas', 'lib', 'localstack', 'testing', 'tools', 'verify'];

test('no two types share a name', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).map(
      (file) => `${folder}/${file}`,
    ),
  );
  const declared = new Map<string, string[]>();
  for (const file of files.filter((name) => /\.tsx?$/.test(name))) {
    const text = readFileSync(new URL(file, ROOT), 'utf8');
    for (const [, name = ''] of text.matchAll(
      /^(?:export )?(?:abstract )?(?:type|interface|class) (\w+)[ <{]/gm,
    ))
      declared.set(name, [...(declared.get(name) ?? []), file]);
  }
  expect(declared.size).toBeGreaterThan(300);
  expect([...declared].filter(([, places]) => new Set(places).size > 1)).toEqual([]);
});
