import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { expect, onTestFinished, test } from 'vitest';
import { recordedSpans } from '../../../support/otel-spans.ts';

type Adapter = typeof import('../../../../lambdas/runtime/opentelemetry.ts');

test('an adapter that is bundled with its own copy of the API uses the SDK that another copy registered', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mailroom-adapter-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const outfile = join(folder, 'adapter.mjs');
  const entryPoints = ['lambdas/runtime/opentelemetry.ts'];
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  const { openTelemetry } = (await import(pathToFileURL(outfile).href)) as Adapter;
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
  const tracer = openTelemetry();
  const span = tracer.start({ name: 'once', kind: 'internal' });
  expect(span.run(() => tracer.current())).toEqual(span.context());
  expect(span.context()?.traceparent).toMatch(/-01$/);
  span.end();
  await tracer.flush?.();
  expect(ended).toEqual(['once']);
  expect(flushed).toBe(1);
});
