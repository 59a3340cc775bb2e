import { readFileSync } from 'node:fs';
import { App } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { orderSystem } from '../../lib/example/order-system.ts';
import { readStage, type StageName } from '../../lib/example/stage.ts';

/** One resource of a template, as far as the tests look into it. */
export interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: a template is JSON of any shape
  readonly Properties: any;
  readonly DependsOn?: readonly string[];
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

/** The stacks of the order system, in the order of the app. */
export const STACKS = [
  'Mailroom',
  'Orders',
  'Bank',
  'Payments',
  'Inventory',
  'Notifications',
  'Operations',
] as const;

/** The addresses that docs/deploying.md passes on every deployment. */
export const ADDRESSES = { pageEmail: 'oncall@example.com', ticketEmail: 'team@example.com' } as const;

type StackName = (typeof STACKS)[number];

const { context } = JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8'));

/** An app with the feature flags of `cdk.json` that bundles nothing: templates need no code. */
export function testApp(given: Readonly<Record<string, unknown>> = {}): App {
  return new App({
    context: { ...context, 'aws:cdk:bundling-stacks': [], ...given },
    analyticsReporting: false,
    // What only a deployment needs takes half of the time.
    builtinCloudFormationValidation: false,
    stackTraces: false,
    treeMetadata: false,
  });
}

type SynthesizedStage = ReturnType<typeof synthStageAnew>;

const synthesized = new Map<string, SynthesizedStage>();

/** The order system in one stage, and its templates: read only, because equal calls share them. */
export function synthStage(name: StageName, given: Readonly<Record<string, string>> = {}): SynthesizedStage {
  const key = JSON.stringify([name, given]);
  const made = synthesized.get(key) ?? synthStageAnew(name, given);
  synthesized.set(key, made);
  return made;
}

/** The same, made for the caller alone. */
export function synthStageAnew(name: StageName, given: Readonly<Record<string, string>> = {}) {
  const app = testApp(given);
  orderSystem(app, readStage(name, {}));
  const templates = Object.fromEntries(
    STACKS.map((stack) => [stack, Template.fromStack(app.node.findChild(stack) as never)]),
  ) as Record<StackName, Template>;
  return { app, templates };
}

/** The resources of one type, by logical id. */
export function resources(template: Template, type: string): Record<string, Resource> {
  return template.findResources(type) as Record<string, Resource>;
}

/** A template as text that changes only when the infrastructure does: no hashes of assets, no bootstrap rules. */
export function stable(template: Template): string {
  const { Parameters, Rules, ...json } = template.toJSON();
  const text = JSON.stringify(json, null, 2);
  return `${text.replace(/\b[0-9a-f]{64}(?=\.zip)/g, '<asset>')}\n`;
}
