import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { expect, test } from 'vitest';
import { Mailroom, type MailroomProps } from '../../lib/index.ts';

/** The code of the relay's two functions. */
function bundles(file: string, relay: MailroomProps['relay']): string[] {
  const app = new App({ analyticsReporting: false });
  new Mailroom(new Stack(app, 'Stack'), 'Mailroom', { relay });
  // The assets are there before the app is synthesized.
  const assets = readdirSync(app.outdir).filter((name) => name.startsWith('asset.'));
  expect(assets).toHaveLength(2);
  return assets.map((name) => readFileSync(join(app.outdir, name, `${file}.mjs`), 'utf8'));
}

/** The name under which the OpenTelemetry API shares its SDK with other copies of itself. */
const API = 'opentelemetry.js.api.';

test('the relay contains the OpenTelemetry API only if that is configured', () => {
  expect(bundles('traced', { openTelemetry: true }).map((code) => code.includes(API))).toEqual([true, true]);
  expect(bundles('index', undefined).map((code) => code.includes(API))).toEqual([false, false]);
});
