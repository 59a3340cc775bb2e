import { MailroomError } from '../base/errors.ts';

/** The properties of an entry that name a part, and its kind. */
const PARTS = {
  queue: ['queue', 'deadLetterQueue', 'undeliveredQueue', 'failureQueue'],
  function: ['function', 'alias', 'streamFunction', 'sweepFunction', 'heartbeat.function'],
  table: ['table'],
  rule: ['rule', 'sweepRule', 'heartbeat.rule', 'externalRule.name'],
  bus: ['bus', 'externalRule.bus'],
  stack: ['stack'],
};

/** Hosts of a local engine, which also names queues `/queue/<region>/<account>/<name>` (LocalStack, SQS_ENDPOINT_STRATEGY=path). */
const LOCAL_HOST = String.raw`(?:[a-z0-9-]+\.)*(?:localhost(?:\.localstack\.cloud)?|127\.0\.0\.1)(?::\d{1,5})?`;

/** The forms in which AWS accepts each kind of part: a name, which is in the client's account and region, or an ARN or a URL. */
function formsIn(region: string, account: string): Record<keyof typeof PARTS, RegExp> {
  const arnOf = (service: string) => `arn:[a-z-]+:${service}:${region}:${account}:`;
  const named = (service: string) => new RegExp(`^(?:[^:]+|${arnOf(service)}.+)$`);
  return {
    queue: new RegExp(
      String.raw`^https?://(?:[^/?#]+|${LOCAL_HOST}/queue/[a-z]{2}(?:-[a-z]+)+-\d)/${account}/[\w-]{1,80}(?:\.fifo)?$`,
    ),
    // Lambda also accepts <account>:function:<name>.
    function: new RegExp(String.raw`^(?:(?:${arnOf('lambda')}|${account}:)function:)?[\w-]+(?::[\w$-]+)?$`),
    table: named('dynamodb'),
    rule: named('events'),
    bus: named('events'),
    stack: named('cloudformation'),
  };
}

/**
 * Refuses an entry that names a part of another account or region. A repair sends payloads to the queues of the directory, a check
 * before a redrive sends them to its functions, and a writer of parameters must not be able to redirect them to another account.
 * Within the account, only permissions limit which parts an entry names. The host of a URL is never used: every SQS client uses the
 * endpoint of its own region.
 *
 * @param name - of the parameter
 * @param arn - of the parameter
 * @throws `BAD_DIRECTORY`, naming the parameter and the property
 */
export function refusePartsElsewhere(
  name: string,
  entry: Readonly<Record<string, unknown>>,
  arn: string,
): void {
  // arn:aws:ssm:<region>:<account>:parameter/…
  const [, , , region = '', account = ''] = arn.split(':');
  const forms = formsIn(region, account);
  for (const kind of Object.keys(PARTS) as (keyof typeof PARTS)[]) {
    for (const path of PARTS[kind]) {
      const part = partAt(entry, path);
      if (part === undefined || (typeof part === 'string' && forms[kind].test(part))) continue;
      const where = kind === 'queue' ? `the account ${account}` : `the account ${account} in ${region}`;
      throw new MailroomError(
        'BAD_DIRECTORY',
        `The parameter ${name} names ${JSON.stringify(part)} as its ${path}, which is not a ${kind} of ${where}. It was changed by hand, and nothing was ` +
          'sent: deploy its stack again with `npx cdk deploy --revert-drift`.',
      );
    }
  }
}

/** The alias is checked behind its function, as it is invoked: each of two harmless names can be half of an ARN. */
function partAt(entry: Readonly<Record<string, unknown>>, path: string): unknown {
  if (path === 'alias' && entry.alias !== undefined) return `${entry.function}:${entry.alias}`;
  return path
    .split('.')
    .reduce<unknown>(
      (value, member) => (value as Readonly<Record<string, unknown>> | undefined)?.[member],
      entry,
    );
}
