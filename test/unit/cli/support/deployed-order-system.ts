import { attributeOf } from '../../../../cli/deployment/declared-attributes.ts';
import { valueResolver } from '../../../../cli/deployment/template-values.ts';
import type {
  ConsumerEntry,
  Directory,
  MailroomEntry,
} from '../../../../lambdas/runtime/operations/directory.ts';
import { STACKS, synthStage } from '../../../infra/synth.ts';
import { cloudFormationInMemory, type StackInMemory } from './cloudformation-in-memory.ts';

const ACCOUNT = '111122223333';
const REGION = 'eu-central-1';

const PLACE = { partition: 'aws', region: REGION, account: ACCOUNT };

/** The form of the physical id that CloudFormation gives to a resource of a type, from a name. */
const PHYSICAL: Readonly<Record<string, (name: string) => string>> = {
  'AWS::Events::Rule': (name) => (/Schedule/.test(name) ? name : `bus|${name}`),
  'AWS::Lambda::EventSourceMapping': (name) => `uuid-of-${name}`,
  'AWS::SNS::Topic': (name) => `arn:aws:sns:${REGION}:${ACCOUNT}:${name}`,
  'AWS::SQS::Queue': (name) => `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/${name}`,
};

/** The templates of the order system as deployed stacks, and its directory as the entries in the templates have it. */
export function deployedOrderSystem() {
  const { templates } = synthStage('prod');
  const stacks: Record<string, StackInMemory> = {};
  const exports: Record<string, string> = {};
  const entries: Record<string, unknown>[] = [];
  for (const id of STACKS) {
    const template = templates[id].toJSON();
    const name = id === 'Mailroom' ? 'mailroom-prod' : `mailroom-prod-${id.toLowerCase()}`;
    const physicalIds = Object.fromEntries(
      Object.entries<{ readonly Type: string }>(template.Resources).map(([logicalId, { Type }]) => [
        logicalId,
        (PHYSICAL[Type] ?? String)(`${name}-${logicalId}-1`),
      ]),
    );
    const resolve = valueResolver(template, {
      reference: (name) => physicalIds[name] ?? name,
      attribute: (logicalId, name) => {
        const physicalId = physicalIds[logicalId] ?? '';
        return attributeOf({ type: template.Resources[logicalId].Type, physicalId, path: '/' }, name, PLACE);
      },
      imported: (name) => exports[name],
    });
    for (const { Value, Export } of Object.values<Record<string, unknown>>(template.Outputs ?? {}))
      if (Export !== undefined) exports[String(Object(Export).Name)] = String(resolve(Value));
    for (const [logicalId, { Properties }] of Object.entries<{ Properties: Record<string, unknown> }>(
      template.Resources,
    ))
      if (/DirectoryEntry/.test(logicalId)) entries.push(JSON.parse(String(resolve(Properties.Value))));
    stacks[name] = { body: JSON.stringify(template), physicalIds };
  }
  const directory = {
    mailroom: entries.find((entry) => 'sweepFunction' in entry) as unknown as MailroomEntry,
    consumers: entries.filter((entry) => 'deadLetterQueue' in entry) as unknown as ConsumerEntry[],
  } satisfies Directory;
  return { ...cloudFormationInMemory(stacks, exports), stacks, exports, directory };
}
