import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lazy, Stack } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { OutputFormat } from 'aws-cdk-lib/aws-lambda-nodejs';
import { describe, expect, test } from 'vitest';
import { importRemedy, TOO_LONG } from '../../lib/functions/import-failure.ts';
import { InboxConsumer, type InboxConsumerProps, Mailroom } from '../../lib/index.ts';
import { testApp } from './synth.ts';

const placed = { source: 'orders', type: 'OrderPlaced' };
const shipped = { source: 'orders', type: 'OrderShipped' };

/** Makes a consumer whose function alone is bundled. @returns the warnings about its handlers */
function warningsOf(
  props: Partial<InboxConsumerProps> & { readonly entry: string },
  bundled: readonly string[] = ['Bundled'],
): string[] {
  const app = testApp({ 'aws:cdk:bundling-stacks': bundled });
  const mailroom = new Mailroom(new Stack(app, 'Shared'), 'Mailroom', { sources: ['orders'] });
  const stack = new Stack(app, 'Bundled');
  const own = { mailroom, name: 'one', service: 'payments', events: [placed] };
  new InboxConsumer(stack, 'Consumer', {
    ...own,
    ...props,
    entry: `test/infra/handler-check/${props.entry}`,
  });
  const found = Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('handle'));
  return found.map(({ entry }) => String(entry.data));
}

const wrapped = (environment: Readonly<Record<string, string>>, more: Partial<InboxConsumerProps> = {}) =>
  warningsOf({ entry: 'wrapped.ts', ...more, function: { environment, ...more.function } });

test('a consumer whose handlers need the table and an address known at deployment is compared with its events', () => {
  const functionProps = {
    environment: { BANK_URL: Lazy.string({ produce: () => 'https://bank.example' }) },
  };
  expect(warningsOf({ entry: 'consumer.ts', function: functionProps })).toEqual([]);
  expect(() =>
    warningsOf({ entry: 'consumer.ts', function: functionProps, events: [placed, shipped] }),
  ).toThrow(
    'The consumer Bundled/Consumer has invalid settings: events contains OrderShipped of "orders", but the handlers of its entry do not include ' +
      'one for it: its messages would be rejected (UNKNOWN_EVENT_TYPE). Add a handler, or remove the event from events.',
  );
});

test('a handler of another service’s event of the same type does not count', () => {
  const HANDLES = JSON.stringify([{ source: 'shop', type: 'OrderPlaced' }]);
  expect(() => wrapped({ HANDLES })).toThrow('events contains OrderPlaced of "orders"');
});

test('a handler without a subscription only causes a warning: an event type is removed in two deployments', () => {
  expect(wrapped({ HANDLES: JSON.stringify([placed, shipped]) })).toEqual([
    expect.stringMatching(/^the entry handles OrderShipped of "orders", but events does not contain it/),
  ]);
});

test.each([
  [
    { FAILS: 'no database' },
    'importing it failed: no database. The function would fail in the same way, unless',
  ],
  [{ ENDS: 'yes' }, 'importing it ended without an answer. The function would fail in the same way, unless'],
  [
    {},
    'its handler does not have the property "handles". If a function wraps the handler, copy the property',
  ],
])('a bundle that does not answer causes a warning: %j', (environment, why) => {
  expect(wrapped(environment)).toEqual([
    expect.stringContaining(`the handlers of its entry could not be compared with events: ${why}`),
  ]);
});

test('an entry in CommonJS that exports no handler fails, because Lambda could not call it', () => {
  const functionProps = { bundling: { format: OutputFormat.CJS } };
  expect(() => warningsOf({ entry: 'renamed.ts', function: functionProps })).toThrow(
    'entry is "test/infra/handler-check/renamed.ts", which does not export handler, which Lambda calls (exported: main). Export it by that name',
  );
});

test('a bundle in CommonJS is compared, too', () => {
  const functionProps = { bundling: { format: OutputFormat.CJS } };
  expect(wrapped({ HANDLES: JSON.stringify([placed]) }, { function: functionProps })).toEqual([]);
  expect(() => wrapped({ HANDLES: '[]' }, { function: functionProps })).toThrow(
    'events contains OrderPlaced of "orders"',
  );
});

test('the check imports nothing if it is off or if bundling is off', () => {
  expect(wrapped({ FAILS: 'never imported' }, { function: { checkHandlers: false } })).toEqual([]);
  expect(
    warningsOf({ entry: 'wrapped.ts', function: { environment: { FAILS: 'never imported' } } }, []),
  ).toEqual([]);
});

test('the same bundle is imported once', () => {
  const COUNTED = join(mkdtempSync(join(tmpdir(), 'handler-check-')), 'count');
  const environment = { COUNTED, HANDLES: JSON.stringify([placed]) };
  expect([...wrapped(environment), ...wrapped(environment)]).toEqual([]);
  expect(readFileSync(COUNTED, 'utf8')).toBe('imported\n');
});

describe('a bundled library in CommonJS', () => {
  test('has its names, also in a bundle whose own code declares them', () => {
    expect(wrapped({ HANDLES: JSON.stringify([placed]), LIBRARY: 'names' })).toEqual([]);
    expect(warningsOf({ entry: 'own-names.ts' })).toEqual([]);
  });

  test('cannot read a file beside it, and the warning says how to keep that file', () => {
    const [warning] = wrapped({ LIBRARY: 'file' });
    expect(warning).toContain('ENOENT');
    expect(warning).toContain('Add the package that reads the file to bundling.nodeModules');
    expect(warning).not.toContain('checkHandlers');
  });
});

test.each([
  [
    { code: 'ERR_MODULE_NOT_FOUND', name: 'Error' },
    'Install the package, or remove it from bundling.externalModules',
  ],
  [
    { code: 'MODULE_NOT_FOUND', name: 'Error' },
    'Install the package, or remove it from bundling.externalModules',
  ],
  [
    { code: 'ENOENT', name: 'Error', path: '/opt/data.json' },
    'unless it has what is missing here, such as a layer',
  ],
  [{ code: 'ENOENT', name: 'Error', path: '/out/bundle-2/data.json' }, 'unless it has what is missing here'],
  [
    { code: 'ENOENT', name: 'Error', path: '/out/bundle/data.json' },
    'Add the package that reads the file to bundling.nodeModules',
  ],
  [{ name: 'ReferenceError' }, 'A banner in bundling replaces that of Mailroom'],
  [{ name: 'SyntaxError' }, 'correct the code'],
  [{ code: 'ECONNREFUSED', name: 'Error' }, 'Connect to databases and other services in the handler'],
  [{ name: TOO_LONG }, 'Connect to databases and other services in the handler'],
  [{}, 'then set function.checkHandlers: false'],
])('the remedy fits the error of an import: %j', (failure, remedy) => {
  expect(importRemedy('/out/bundle/index.mjs', failure)).toContain(remedy);
});
