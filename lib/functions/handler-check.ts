import { spawnSync } from 'node:child_process';
import { basename, dirname } from 'node:path';
import { Annotations, Token } from 'aws-cdk-lib';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { IConstruct } from 'constructs';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { refuse } from '../checks/refusal.ts';
import { bundleOf, noHandlerProblem } from './bundle-check.ts';
import { type ImportFailure, importRemedy, TOO_LONG } from './import-failure.ts';

/** Properties of a consumer that the check compares with its bundle. */
interface CheckedConsumer {
  readonly entry: string;
  readonly events: readonly EventRef[];
  readonly environment?: Readonly<Record<string, string>> | undefined;
  readonly checkHandlers?: boolean | undefined;
}

/** The events that a bundle handles, or why they are unknown. */
type BundleAnswer =
  | { readonly handles: readonly EventRef[] }
  | { readonly exports: readonly string[] }
  | UnknownHandlers;

interface UnknownHandlers {
  readonly unknown: string;
  /** Absent if the bundle was imported. */
  readonly failure?: ImportFailure;
}

/** An import that takes longer is ended, milliseconds. It takes 0.2 to 0.4 s; a machine under load is slower. */
const IMPORT_TIMEOUT_MS = 20_000;

/** Stands for the value of an environment variable that is known only at deployment. A URL, because modules may parse it as one. */
const UNRESOLVED = 'https://unresolved.invalid';

/**
 * Imports the bundle and prints what its handler handles, or, if no handler is exported, what is. Only in CommonJS, the exports are
 * also the default export's members. The last line counts, because the bundle may print too. It ends the process, because the
 * bundle may keep timers or connections open.
 */
const SCRIPT = `
const answer = (found) => process.stdout.write('\\n' + JSON.stringify(found), () => process.exit());
try {
  const { pathToFileURL } = await import('node:url');
  const file = process.argv[1];
  const imported = await import(pathToFileURL(file));
  const bundle = imported.handler || file.endsWith('.mjs') ? imported : Object(imported.default);
  const handles = bundle.handler?.handles;
  if (bundle.handler === undefined) answer({ exports: Object.keys(bundle) });
  else answer(Array.isArray(handles) ? { handles } : { unknown: 'its handler does not have the property "handles"' });
} catch (error) {
  const { name, code, path } = Object(error);
  answer({
    unknown: 'importing it failed: ' + String(error?.message ?? error).slice(0, 300),
    failure: { name: String(name), code: String(code), path: String(path) },
  });
}`;

/** The answers, by the hash of the bundle and its environment: one process may synthesize an app more than once. */
const answers = new Map<string, BundleAnswer>();

/**
 * Compares the handlers in the bundle of a consumer's function with its subscriptions, by importing the bundle in another process.
 * Without bundling (`aws:cdk:bundling-stacks`), there is nothing to compare.
 *
 * A subscribed event without a handler would be rejected (`UNKNOWN_EVENT_TYPE`), so it fails. A handler without a subscription only
 * warns: the removal of an event type passes through it (docs/deploying.md).
 *
 * @throws `BAD_SETTINGS` if a subscribed event has no handler, naming the events, or if the entry does not export `handler`
 */
export function checkHandlers(consumer: IConstruct, lambda: IFunction, props: CheckedConsumer): void {
  const bundle = props.checkHandlers === false ? undefined : bundleOf(lambda);
  if (bundle === undefined) return;
  const environment = JSON.stringify(
    Object.entries(props.environment ?? {}).map(([name, value]) => [
      name,
      Token.isUnresolved(value) ? UNRESOLVED : value,
    ]),
  );
  const key = `${basename(dirname(bundle))} ${environment}`;
  const answer = answers.get(key) ?? ask(bundle, environment);
  answers.set(key, answer);
  if ('exports' in answer)
    refuse(`The consumer ${consumer.node.path}`, [noHandlerProblem(props.entry, answer.exports)]);
  else if ('handles' in answer) compare(consumer, props.events, answer.handles);
  else warn(consumer, 'handlersUnknown', unknownText(bundle, answer));
}

/** @throws `BAD_SETTINGS` */
function compare(consumer: IConstruct, events: readonly EventRef[], handles: readonly EventRef[]): void {
  const missing = without(events, handles);
  refuse(
    `The consumer ${consumer.node.path}`,
    missing.map(
      (event) =>
        `events contains ${named(event)}, but the handlers of its entry do not include one for it: its messages would be rejected ` +
        '(UNKNOWN_EVENT_TYPE). Add a handler, or remove the event from events.',
    ),
  );
  const idle = without(handles, events).map(named);
  if (idle.length === 0) return;
  warn(
    consumer,
    'idleHandlers',
    `the entry handles ${idle.join(', ')}, but events does not contain it, so the consumer never receives it. Add it to events; or, if you are ` +
      'removing it in two deployments, acknowledge this warning.',
  );
}

/** @param environment - the consumer's own, as JSON: without what only Lambda sets, the runtime reads no settings */
function ask(bundle: string, environment: string): BundleAnswer {
  const { stdout, error, signal } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', SCRIPT, bundle],
    {
      encoding: 'utf8',
      timeout: IMPORT_TIMEOUT_MS,
      env: {
        PATH: process.env.PATH,
        AWS_REGION: 'us-east-1',
        ...Object.fromEntries(JSON.parse(environment)),
      },
    },
  );
  if (signal !== null)
    return {
      unknown: `importing it took longer than ${IMPORT_TIMEOUT_MS / 1_000} s`,
      failure: { name: TOO_LONG },
    };
  try {
    return JSON.parse(stdout.slice(stdout.lastIndexOf('\n') + 1)) as BundleAnswer;
  } catch {
    return {
      unknown: `importing it ended without an answer${error ? `: ${error.message}` : ''}`,
      failure: {},
    };
  }
}

function without(events: readonly EventRef[], others: readonly EventRef[]): EventRef[] {
  return events.filter(
    ({ source, type }) => !others.some((other) => other.source === source && other.type === type),
  );
}

function named({ source, type }: EventRef): string {
  return `${type} of "${source}"`;
}

const WRAPPED =
  'If a function wraps the handler, copy the property to the wrapper: Object.assign(wrapper, { handles: handler.handles }). Otherwise set ' +
  'function.checkHandlers: false.';

function unknownText(bundle: string, answer: UnknownHandlers): string {
  const { unknown, failure } = answer;
  const remedy = failure === undefined ? WRAPPED : importRemedy(bundle, failure);
  return `the handlers of its entry could not be compared with events: ${unknown.replace(/\.$/, '')}. ${remedy}`;
}

function warn(consumer: IConstruct, id: string, text: string): void {
  Annotations.of(consumer).addWarningV2(`cdk-mailroom:${id}`, text);
}
