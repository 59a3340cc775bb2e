import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { LOCAL_REGION } from '../../localstack/workspace.ts';

/** A statement of a resource policy. */
export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Condition?: unknown;
}

/** The stack that has the table. */
const STACK = 'mailroom-local';

/**
 * The statements of the Mailroom table's own policy, as they were deployed: read from the stack's template, because
 * the engine takes a table's policy and keeps none of it.
 *
 * @throws `CHAOS_TEMPLATE` when the deployed stack has no such table
 */
export async function tablePolicy(endpoint: string): Promise<readonly Statement[]> {
  const { Resources } = JSON.parse(await templateOf(endpoint)) as Template;
  const table = Object.values(Resources).find(({ Type }) => Type === 'AWS::DynamoDB::GlobalTable');
  if (table === undefined) throw new MailroomError('CHAOS_TEMPLATE', `The stack ${STACK} has no table.`);
  return (table.Properties.Replicas ?? []).flatMap(
    ({ ResourcePolicy }) => ResourcePolicy?.PolicyDocument.Statement ?? [],
  );
}

interface Template {
  readonly Resources: Readonly<
    Record<string, { readonly Type: string; readonly Properties: TableProperties }>
  >;
}

interface TableProperties {
  readonly Replicas?: readonly {
    readonly ResourcePolicy?: { readonly PolicyDocument: { readonly Statement: readonly Statement[] } };
  }[];
}

/** Asked without an SDK client: it is one call, and the engine checks no signature. */
async function templateOf(endpoint: string): Promise<string> {
  const scope = `19700101/${LOCAL_REGION}/cloudformation/aws4_request`;
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `AWS4-HMAC-SHA256 Credential=test/${scope}, SignedHeaders=host, Signature=none`,
    },
    body: new URLSearchParams({ Action: 'GetTemplate', Version: '2010-05-15', StackName: STACK }),
  });
  const [, escaped] = /<TemplateBody>(.*)<\/TemplateBody>/s.exec(await response.text()) ?? [];
  if (escaped === undefined)
    throw new MailroomError('CHAOS_TEMPLATE', `The engine has no template of ${STACK}.`);
  return unescapeXml(escaped);
}

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return ENTITIES[name] ?? whole;
  });
}
