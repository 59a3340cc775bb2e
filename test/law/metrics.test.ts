import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);

/** The names of the metrics, from the reviewed public surface. */
function metricNames(): string[] {
  const surface = readFileSync(new URL('test/unit/public-surface.txt', ROOT), 'utf8');
  return [...surface.matchAll(/^ {2}(\w+) (?:count|gauge|duration)$/gm)].map(([, name = '']) => name);
}

/** The runtime's tests, also those on PostgreSQL, each a text. */
function runtimeTests(): string[] {
  return ['test/unit/runtime/', 'test/postgres/'].flatMap((name) => {
    const folder = new URL(name, ROOT);
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts'))
      .map((path) => readFileSync(new URL(path, folder), 'utf8'));
  });
}

test('every metric is asserted by a test of the runtime', () => {
  const names = metricNames();
  expect(names.length).toBeGreaterThan(30);
  const tests = runtimeTests();
  // An asserted name is an argument of the telemetry in memory, or stands in a table of a test that passes it there.
  const asserted = (name: string) =>
    tests.some((text) => text.includes(`'${name}'`) && /\b(counted|durations|count|gauge)\b/.test(text));
  expect(names.filter((name) => !asserted(name))).toEqual([]);
});

test('docs/telemetry.md explains every metric, and no other', () => {
  const page = readFileSync(new URL('docs/telemetry.md', ROOT), 'utf8');
  const [, section = ''] = /^## Metrics\n(.*?)^### /ms.exec(page) ?? [];
  const explained = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(explained.sort()).toEqual(metricNames().sort());
});
