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
    receives: receives(),
    statements: [
      `**Heartbeat**\n\n${statements(parts.HeartbeatGrants)}`,
      ...['PlaceOrderGrants', 'StreamRelayGrants', 'Bus'].map((part) => {
        const title = `${part.replace(/Grants$/, '')}, to publish at once`;
        return `**${title}**\n\n${statements(added(atOnce[part], parts[part]))}`;
      }),
    ].join('\n\n'),
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
  const environmentOf = (from: Parts, part: string): Properties =>
    from[part]?.properties.Environment.Variables ?? {};
  const producer = configVariables('ProducerConfig');
  const producerEnvironment = environmentOf(parts, 'PlaceOrder');
  const above = new Set<string>();
  const remembered = (rows: readonly string[][]) => {
    for (const cells of rows) above.add(cells.join('|'));
    return table(VARIABLE_HEAD, rows);
  };
  /** A row that an earlier table has is only named. */
  const own = (title: string, config: string, part: string) => {
    const rows = configVariables(config).map((one) => row(one, environmentOf(parts, part)));
    const isAbove = (cells: readonly string[]) => above.has(cells.join('|'));
    const names = rows.filter(isAbove).map(([name]) => name);
    const given = names.length === 0 ? '' : `: ${names.join(', ')}, as above, and`;
    return `**${title}**${given}\n\n${remembered(rows.filter((cells) => !isAbove(cells)))}`;
  };
  /** Only those that a producer does not have; of the others, the values that differ. */
  const further = (title: string, config: string, environment: Properties) => {
    const isShown = ({ name, meaning }: ConfigVariable) =>
      producer.some((other) => other.name === name && other.meaning === meaning);
    const others = configVariables(config);
    const changed = others
      .filter((one) => isShown(one) && environment[one.name] !== producerEnvironment[one.name])
      .map(({ name }) => `\`${name}\` = \`${environment[name]}\``);
    const rows = others.filter((one) => !isShown(one)).map((one) => row(one, environment));
    const given = changed.length === 0 ? '' : `, with ${changed.join(' and ')}`;
    return `**${title}**: those of a producer${given}, and\n\n${remembered(rows)}`;
  };
  return [
    own('Producer', 'ProducerConfig', 'PlaceOrder'),
    further('Producer that publishes at once', 'AtOnceConfig', {
      ...producerEnvironment,
      ...environmentOf(atOnce, 'PlaceOrder'),
    }),
    further('Consumer', 'ConsumerConfig', environmentOf(parts, 'Receipts')),
    own('StreamRelay and Sweep', 'RelayConfig', 'Sweep'),
    own('Audit', 'AuditConfig', 'Audit'),
    further('Heartbeat', 'HeartbeatConfig', environmentOf(parts, 'Heartbeat')),
  ].join('\n\n');
}

/** Units, which the name of a variable has, and ranges, which the next column has. */
const SAID_ELSEWHERE =
  /,(?<!epoch) milliseconds(?=[.;])|,? days(?=\.)|, 1 to 256(?::[^.]*)?(?=\.)| Milliseconds, [^.]*\./g;

const VARIABLE_HEAD = ['variable', 'meaning', 'allowed', 'set to'];

function row({ name, meaning, allowed, optional }: ConfigVariable, environment: Properties): string[] {
  const set = environment[name];
  if (set === undefined && !optional) throw new Error(`The constructs do not set ${name}`);
  const short = allowed
    .replace(/^a whole number from (\d+) to (\d+)$/, '$1 to $2')
    .replace('a non-empty string', 'text')
    .replace(/^a JSON list of strings.*/, 'JSON list');
  return [
    `\`${name}\``,
    meaning.replaceAll(SAID_ELSEWHERE, ''),
    optional ? `${short}; optional` : short,
    set === undefined ? '-' : `\`${set}\``,
  ];
}

/** The statements of a role, which all allow something, or of a resource policy, with effect and principal. */
function statements(part: Parts[string] | undefined): string {
  const list: readonly Properties[] = part?.properties.Statement ?? [];
  const isRole = list.every(({ Effect, Principal }) => Effect === 'Allow' && Principal === undefined);
  const rows = list.map(({ Effect, Principal, Action, Resource, Condition = {} }) => [
    ...(isRole ? [] : [Effect, code(Object.values(Principal))]),
    code(Action),
    code(Resource),
    conditions(Condition),
  ]);
  const head = ['actions', 'resources', 'condition'];
  return table(isRole ? head : ['effect', 'principal', ...head], rows);
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

const code = (values: readonly unknown[]) => values.map((value) => `\`${value}\``).join(', ');

function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines
    .map((cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}
