import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../lambdas/runtime/base/clock.ts';
import { recordedSpans } from '../../../support/otel-spans.ts';

type Adapter = typeof import('../../../../lambdas/runtime/observe/tracer.ts');

test('a function that is bundled with its own copy of the API uses the SDK that another copy registered', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-adapter-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const outfile = join(folder, 'adapter.mjs');
  const entryPoints = ['lambdas/runtime/observe/tracer.ts'];
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  const { createTracer, flushSpans } = (await import(pathToFileURL(outfile).href)) as Adapter;
  const ended: string[] = [];
  let flushed = 0;
  recordedSpans({
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: ({ name }) => void ended.push(name),
        shutdown: async () => {},
        forceFlush: async () => {
          flushed += 1;
        },
      },
    ],
  });
  const tracer = createTracer();
  const span = tracer.start({ name: 'once', kind: 'internal' });
  expect(span.run(() => tracer.current())).toEqual(span.context());
  expect(span.context()?.traceparent).toMatch(/-01$/);
  span.end();
  await flushSpans(systemClock);
  expect(ended).toEqual(['once']);
  expect(flushed).toBe(1);
});
