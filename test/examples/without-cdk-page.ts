import { Duration } from 'aws-cdk-lib';
import { maxReceiveCount, OUTAGE_TOLERANCE, RETRY } from '../../lib/checks/receives.ts';
import { type ConfigVariable, configVariables } from './config-variables.ts';
import { constructsParts } from './constructs-parts.ts';
import type { Parts, Properties } from './parts.ts';

/** The functions: the configuration that each reads, and the folder of its code in `dist/functions`. */
const FUNCTIONS = [
  { part: 'StreamRelay', config: 'RelayConfig', built: 'relay-stream' },
  { part: 'Sweep', config: 'RelayConfig', built: 'relay-sweep' },
  { part: 'Audit', config: 'AuditConfig', built: 'audit' },
  { part: 'Heartbeat', config: 'HeartbeatConfig', built: 'heartbeat' },
  { part: 'PlaceOrder', config: 'ProducerConfig', built: undefined },
  { part: 'Receipts', config: 'ConsumerConfig', built: undefined },
] as const;

/** Parts that are shown as they are. */
const SETTINGS = [
  'Table',
  'StreamRelayMapping',
  'SweepSchedule',
  'AuditSchedule',
  'HeartbeatSchedule',
  'RelayFailures',
  'ReceiptsQueue',
  'ReceiptsDeadLetters',
  'ReceiptsUndelivered',
  'ReceiptsMapping',
  'ReceiptsRule',
] as const;

const POLICIES = [
  'Table',
  'Bus',
  'RelayFailuresPolicy',
  'ReceiptsQueuePolicy',
  'ReceiptsDeadLettersPolicy',
  'ReceiptsUndeliveredPolicy',
] as const;

/**
 * The page with its generated parts as they should be: everything between `<!-- generated: <name> -->` and `<!-- end -->`.
 *
 * @throws Error if the page lacks one of them, or has one that is not known here
 */
export function renderPage(page: string): string {
  const parts = constructsParts({ audit: {}, heartbeat: {} });
  const atOnce = constructsParts({}, { publishAtOnce: {} });
  const blocks: Readonly<Record<string, string>> = {
    functions: functionsTable(parts),
    variables: variables(parts, atOnce),
    roles: FUNCTIONS.map(({ part }) => `**${part}**\n\n${statements(parts[`${part}Grants`])}`).join('\n\n'),
    policies: POLICIES.map((part) => `**${part.replace(/Policy$/, '')}**\n\n${statements(parts[part])}`).join(
      '\n\n',
    ),
    atOnce: ['PlaceOrderGrants', 'StreamRelayGrants', 'Bus']
      .map((part) => `**${part.replace(/Grants$/, '')}**\n\n${statements(added(atOnce[part], parts[part]))}`)
      .join('\n\n'),
    receives: receives(),
    settings: SETTINGS.map((part) => `**${part}**\n\n${json(withoutPolicy(parts[part]?.properties))}`).join(
      '\n\n',
    ),
    directory: ['DirectoryEntry', 'ReceiptsDirectoryEntry']
      .map((part) => parts[part]?.properties ?? {})
      .map(({ Name, Value }) => `**\`${Name}\`**\n\n${json(Value)}`)
      .join('\n\n'),
  };
  const left = new Set(Object.keys(blocks));
  const rendered = page.replaceAll(
    /(<!-- generated: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      if (!left.delete(name)) throw new Error(`The page has a part "${name}", which is not generated here`);
      return `${begin}\n${blocks[name]}\n\n${end}`;
    },
  );
  if (left.size > 0) throw new Error(`The page lacks the generated parts ${[...left].join(', ')}`);
  return rendered;
}

function functionsTable(parts: Parts): string {
  const rows = FUNCTIONS.map(({ part, built }) => {
    const { MemorySize, Timeout } = parts[part]?.properties ?? {};
    const { ScheduleExpression } = parts[`${part}Schedule`]?.properties ?? {};
    const { MaximumEventAgeInSeconds: age } = parts[`${part}Invoke`]?.properties ?? {};
    return [
      part,
      built === undefined ? 'yours' : `\`dist/functions/${built}\``,
      MemorySize,
      Timeout,
      ScheduleExpression === undefined ? '-' : `\`${ScheduleExpression}\``,
      age === undefined ? '-' : `0, ${age} s`,
    ];
  });
  return table(['function', 'code', 'MB', 'timeout, s', 'schedule', 'retries, maximum age'], rows);
}

function variables(parts: Parts, atOnce: Parts): string {
  const block = (title: string, config: string, environment: Properties) => {
    const rows = configVariables(config).map((one) => row(one, environment));
    return `**${title}**\n\n${table(['variable', 'meaning', 'allowed', 'the constructs set'], rows)}`;
  };
  const environmentOf = (from: Parts, part: string) => from[part]?.properties.Environment.Variables ?? {};
  return [
    block('Producer', 'ProducerConfig', environmentOf(parts, 'PlaceOrder')),
    block(
      'Producer that publishes at once, in addition',
      'AtOnceConfig',
      environmentOf(atOnce, 'PlaceOrder'),
    ),
    block('Consumer', 'ConsumerConfig', environmentOf(parts, 'Receipts')),
    block('StreamRelay and Sweep', 'RelayConfig', environmentOf(parts, 'Sweep')),
    block('Audit', 'AuditConfig', environmentOf(parts, 'Audit')),
    block('Heartbeat', 'HeartbeatConfig', environmentOf(parts, 'Heartbeat')),
  ].join('\n\n');
}

function row({ name, meaning, allowed, optional }: ConfigVariable, environment: Properties): string[] {
  const set = environment[name];
  if (set === undefined && !optional) throw new Error(`The constructs do not set ${name}`);
  return [
    `\`${name}\``,
    meaning,
    optional ? `${allowed}; optional` : allowed,
    set === undefined ? '-' : `\`${set}\``,
  ];
}

function statements(part: Parts[string] | undefined): string {
  const list: readonly Properties[] = part?.properties.Statement ?? [];
  const rows = list.map(({ Effect, Principal, Action, Resource, Condition = {} }) => [
    Effect,
    ...(Principal === undefined ? [] : [code(Object.values(Principal))]),
    code(Action),
    code(Resource),
    conditions(Condition),
  ]);
  const principal = list[0]?.Principal === undefined ? [] : ['principal'];
  return table(['effect', ...principal, 'actions', 'resources', 'condition'], rows);
}

/** The statements that a part has in addition to those of another. */
function added(part: Parts[string] | undefined, without: Parts[string] | undefined): Parts[string] {
  const known = new Set(without?.properties.Statement.map((one: Properties) => JSON.stringify(one)));
  const Statement = part?.properties.Statement.filter((one: Properties) => !known.has(JSON.stringify(one)));
  return { type: part?.type ?? '', properties: { Statement } };
}

function conditions(operators: Properties): string {
  const shown = Object.entries(operators).flatMap(([operator, keys]) =>
    Object.entries(keys as Properties).map(([key, values]) => `${operator} \`${key}\`: ${code(values)}`),
  );
  return shown.length === 0 ? '-' : shown.join('; ');
}

function receives(): string {
  const rows = [60, 180, 360, 900].map((seconds) => {
    const visibilityTimeout = Duration.seconds(seconds);
    return [seconds, maxReceiveCount({ retry: RETRY, outageTolerance: OUTAGE_TOLERANCE, visibilityTimeout })];
  });
  return table(['visibility timeout, s', 'maxReceiveCount'], rows);
}

function withoutPolicy({ Statement, ...rest }: Properties = {}): Properties {
  return rest;
}

const code = (values: readonly unknown[]) => values.map((value) => `\`${value}\``).join(', ');

function json(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines
    .map((cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}
