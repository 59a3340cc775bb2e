import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  DynamoDBClient,
  PutResourcePolicyCommand,
  paginateListTables,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { LOCAL_ACCOUNT, LOCAL_REGION } from './workspace.ts';

/** The properties of a table in a template that MiniStack's CloudFormation leaves out. */
interface TableProperties {
  readonly TimeToLiveSpecification?: { readonly AttributeName?: string };
  readonly Replicas?: readonly { readonly ResourcePolicy?: { readonly PolicyDocument: object } }[];
}

interface TemplateText {
  readonly Resources?: Readonly<
    Record<string, { readonly Type: string; readonly Properties?: TableProperties }>
  >;
}

/**
 * Applies the TTL and the policy of each table of a synthesized app: MiniStack's CloudFormation creates global tables without them.
 *
 * @param assembly - the folder with the templates
 */
export async function applyTableSettings(endpoint: string, assembly: string): Promise<void> {
  const client = new DynamoDBClient({
    endpoint,
    region: LOCAL_REGION,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  const names: string[] = [];
  for await (const { TableNames = [] } of paginateListTables({ client }, {})) names.push(...TableNames);
  const templates = (await readdir(assembly)).filter((file) => file.endsWith('.template.json'));
  for (const file of templates) {
    const { Resources = {} } = JSON.parse(await readFile(join(assembly, file), 'utf8')) as TemplateText;
    for (const [logicalId, { Type, Properties = {} }] of Object.entries(Resources)) {
      if (Type !== 'AWS::DynamoDB::GlobalTable') continue;
      // CloudFormation names a table `<stack>-<logical id>-<random>`, and logical ids contain a hash of the path.
      const own = names.filter((name) => name.includes(`-${logicalId}-`));
      for (const name of own) await applyTo(client, name, Properties);
    }
  }
}

async function applyTo(
  client: DynamoDBClient,
  TableName: string,
  { TimeToLiveSpecification, Replicas = [] }: TableProperties,
): Promise<void> {
  const { AttributeName } = TimeToLiveSpecification ?? {};
  if (AttributeName !== undefined) {
    const on = { Enabled: true, AttributeName };
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification: on }));
  }
  const policy = Replicas[0]?.ResourcePolicy?.PolicyDocument;
  if (policy === undefined) return;
  const ResourceArn = `arn:aws:dynamodb:${LOCAL_REGION}:${LOCAL_ACCOUNT}:table/${TableName}`;
  await client.send(new PutResourcePolicyCommand({ ResourceArn, Policy: JSON.stringify(policy) }));
}
