import { type DeployedPart, REGION } from './deployed-parts.ts';
import type { Ask, Principal, Verdict } from './permissions.ts';

/** Every way to read or change rows that IAM tells apart. */
export const ROW_ACTIONS = [
  'GetItem',
  'BatchGetItem',
  'Query',
  'PartiQLSelect',
  'ConditionCheckItem',
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'BatchWriteItem',
  'PartiQLInsert',
  'PartiQLUpdate',
  'PartiQLDelete',
].map((action) => `dynamodb:${action}`);

/** Some other consumer than any of the app. */
const ANOTHER = 'another-consumer';

/** A partition key of each kind; where a role keeps no inbox, it has none. */
const KEY_KINDS: readonly { readonly title: string; readonly keyOf: (consumer: string) => string }[] = [
  ...['ORDER', 'REQUEST', 'PAYMENT', 'STOCK', 'RESERVATION', 'NOTIFICATION'].map((kind) => ({
    title: `${kind}#`,
    keyOf: () => `${kind}#1`,
  })),
  { title: 'OUTBOX#', keyOf: () => 'OUTBOX#2026-11-21T01:09#03' },
  { title: 'DEAD#', keyOf: () => 'DEAD#03' },
  { title: 'SWEEP#', keyOf: () => 'SWEEP#03' },
  { title: 'SWEEP', keyOf: () => 'SWEEP' },
  ...['INBOX', 'LAST', 'LIMIT', 'REJECTED', 'FAILED'].flatMap((kind) => {
    const tail =
      {
        INBOX: '#01a1fba6-4458-7a41-9c37-3f5d2b8e1103',
        LAST: '#strict#Order#1',
        LIMIT: '#orders#OrderPlaced#1',
      }[kind] ?? '';
    return [
      { title: `${kind}#own`, keyOf: (consumer: string) => `${kind}#${consumer}${tail}` },
      { title: `${kind}#other`, keyOf: () => `${kind}#${ANOTHER}${tail}` },
    ];
  }),
  { title: 'HEARTBEAT', keyOf: () => 'MAILROOM#HEARTBEAT' },
  { title: 'OPERATIONS#', keyOf: () => 'OPERATIONS#2026-11' },
];

/** The other actions, for each type of resource. */
const OTHER_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  'AWS::DynamoDB::GlobalTable': [
    'dynamodb:DescribeTable',
    'dynamodb:Scan',
    'dynamodb:UpdateTable',
    'dynamodb:DeleteTable',
    'dynamodb:UpdateTimeToLive',
    'dynamodb:PutResourcePolicy',
    'dynamodb:DeleteResourcePolicy',
  ],
  'a stream': ['dynamodb:DescribeStream', 'dynamodb:GetShardIterator', 'dynamodb:GetRecords'],
  'AWS::Events::EventBus': ['events:PutEvents', 'events:DeleteEventBus'],
  'AWS::Events::Rule': [
    'events:DescribeRule',
    'events:PutRule',
    'events:DisableRule',
    'events:RemoveTargets',
    'events:DeleteRule',
  ],
  'AWS::SQS::Queue': [
    'sqs:GetQueueAttributes',
    'sqs:ReceiveMessage',
    'sqs:ChangeMessageVisibility',
    'sqs:DeleteMessage',
    'sqs:SendMessage',
    'sqs:StartMessageMoveTask',
    'sqs:PurgeQueue',
    'sqs:SetQueueAttributes',
    'sqs:DeleteQueue',
  ],
  'AWS::Lambda::Function': ['lambda:InvokeFunction', 'lambda:UpdateFunctionCode'],
  'AWS::SSM::Parameter': [
    'ssm:GetParameter',
    'ssm:GetParameterHistory',
    'ssm:GetParametersByPath',
    'ssm:PutParameter',
    'ssm:DeleteParameter',
  ],
  'AWS::SNS::Topic': ['sns:Publish', 'sns:Subscribe'],
};

/** Who keeps which inbox: the consumer's name, by the ARN of its function's role. */
export function consumersByRole(parts: readonly DeployedPart[]): ReadonlyMap<string, string> {
  const functions = parts.filter(({ type }) => type === 'AWS::Lambda::Function');
  return new Map(
    functions.flatMap(({ properties: { Role, Environment } }) => {
      const consumer = Environment?.Variables?.MAILROOM_CONSUMER;
      return consumer === undefined ? [] : [[Role as string, consumer as string] as const];
    }),
  );
}

export function mailroomTable(parts: readonly DeployedPart[]): DeployedPart {
  const found = parts.find(
    ({ type, stack }) => type === 'AWS::DynamoDB::GlobalTable' && stack === 'Mailroom',
  );
  if (found === undefined) throw new Error('No Mailroom table is deployed');
  return found;
}

/** The permissions of a role on one type of resource: a line for each action (rows) or resource (all else). */
interface Block {
  /** The type, then the titles of the columns. */
  readonly head: readonly [string, ...string[]];
  readonly lines: readonly { readonly title: string; readonly cells: readonly Verdict[] }[];
}

/** The permissions of one role. */
export interface RolePermissions {
  readonly role: string;
  /** On the rows of the table: a line for each action, a column for each kind of partition key. */
  readonly rows: Block;
  /** On each other type of resource: only the resources to which the role may do, or is denied, anything. */
  readonly others: readonly Block[];
}

/** Asks what each role may do to the rows of each kind, and to whatever else is deployed. */
export async function permissionsOf(
  ask: Ask,
  roles: readonly Principal[],
  parts: readonly DeployedPart[],
): Promise<RolePermissions[]> {
  const permissions: RolePermissions[] = [];
  for (const role of roles) {
    const rows = await rowsBlock(ask, role, parts);
    permissions.push({ role: role.name, rows, others: await otherBlocks(ask, role, parts) });
  }
  return permissions;
}

/** The permissions as a text, with every verdict. */
export function roleTable(permissions: readonly RolePermissions[]): string {
  const roles = permissions.map(({ role, rows, others }) =>
    [`== ${role}`, ...[rows, ...others].map(aligned)].join('\n\n'),
  );
  return `${roles.join('\n\n\n')}\n`;
}

/** The permissions as a page of the documentation: a section for each role, in which resources with the same verdicts share a row. */
export function rolePage(permissions: readonly RolePermissions[]): string {
  return permissions
    .map(({ role, rows, others }) => {
      const lines = [...pageLines(turned(rows)), ...others.flatMap(pageLines)];
      const table = ['| resource | allowed | denied |', '| --- | --- | --- |', ...lines].join('\n');
      return `## ${role}\n\n${table}`;
    })
    .join('\n\n');
}

function pageLines({ head: [type, ...columns], lines }: Block): string[] {
  const titles = new Map<string, string[]>();
  for (const { title, cells } of lines) {
    const of = (verdict: Verdict) => columns.filter((_, at) => cells[at] === verdict).join(', ');
    const verdicts = `${of('allow')} | ${of('DENY')}`;
    if (verdicts !== ' | ') titles.set(verdicts, [...(titles.get(verdicts) ?? []), `\`${title}\``]);
  }
  return [...titles].map(([verdicts, same]) => `| ${type}: ${same.join(', ')} | ${verdicts} |`);
}

function turned({ head: [type, ...columns], lines }: Block): Block {
  return {
    head: [type, ...lines.map(({ title }) => title)],
    lines: columns.map((title, at) => ({ title, cells: lines.map(({ cells }) => cells[at] ?? '-') })),
  };
}

async function rowsBlock(ask: Ask, role: Principal, parts: readonly DeployedPart[]): Promise<Block> {
  const own = consumersByRole(parts).get(role.arn);
  const resource = mailroomTable(parts).arn;
  const kinds = KEY_KINDS.filter(({ title }) => own !== undefined || !title.endsWith('#own'));
  const lines: Block['lines'][number][] = [];
  for (const action of ROW_ACTIONS) {
    const cells = kinds.map(({ keyOf }) => ask(role, { action, resource, key: keyOf(own ?? ANOTHER) }));
    lines.push({ title: shortly(action), cells: await Promise.all(cells) });
  }
  return { head: ['rows', ...kinds.map(({ title }) => title)], lines };
}

/** A block for each type of resource, with a line for each resource to which anything may be done. */
async function otherBlocks(ask: Ask, role: Principal, parts: readonly DeployedPart[]): Promise<Block[]> {
  const blocks: Block[] = [];
  for (const [type, actions] of Object.entries(OTHER_ACTIONS)) {
    const lines: Block['lines'][number][] = [];
    for (const { label: title, arn } of targets(type, parts)) {
      const cells = await Promise.all(actions.map((action) => ask(role, { action, resource: arn })));
      if (cells.some((cell) => cell !== '-')) lines.push({ title, cells });
    }
    if (lines.length > 0) blocks.push({ head: [type.replace(/^.*::/, ''), ...actions.map(shortly)], lines });
  }
  return blocks;
}

function targets(
  type: string,
  parts: readonly DeployedPart[],
): { readonly label: string; readonly arn: string }[] {
  const table = mailroomTable(parts);
  const account = table.arn.split(':')[4];
  if (type === 'a stream')
    return [{ label: "the table's", arn: `${table.arn}/stream/2026-11-21T00:00:00.000` }];
  const found = parts
    .filter((part) => part.type === type)
    .map(({ stack, id, arn }) => ({ label: `${stack}/${id}`, arn }));
  const others: Readonly<Record<string, string>> = {
    'AWS::Events::EventBus': `arn:aws:events:${REGION}:${account}:event-bus/default`,
    'AWS::SQS::Queue': `arn:aws:sqs:${REGION}:${account}:of-another-app`,
    'AWS::Lambda::Function': `arn:aws:lambda:${REGION}:${account}:function:of-another-app`,
    'AWS::SSM::Parameter': `arn:aws:ssm:${REGION}:${account}:parameter/of-another-app`,
  };
  const directory =
    type === 'AWS::SSM::Parameter'
      ? [{ label: 'the directory', arn: `arn:aws:ssm:${REGION}:${account}:parameter/mailroom/${table.name}` }]
      : [];
  const other = others[type];
  return [...found, ...directory, ...(other === undefined ? [] : [{ label: 'of another app', arn: other }])];
}

/** An action without its service: the block says of what it is. */
function shortly(action: string): string {
  return action.replace(/^\w+:/, '');
}

function aligned({ head, lines: ofBlock }: Block): string {
  const lines = [head, ...ofBlock.map(({ title, cells }) => [title, ...cells])];
  const widths = head.map((_title, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
