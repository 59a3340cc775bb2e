import { Validations } from 'aws-cdk-lib';
import {
  AwsSolutionsChecks,
  HIPAASecurityChecks,
  NIST80053R5Checks,
  PCIDSS321Checks,
  ServerlessChecks,
} from 'cdk-nag';
import type { IConstruct } from 'constructs';
import { describe, expect, test } from 'vitest';
import { ADDRESSES, synthStage } from './synth.ts';

const { app } = synthStage('prod', ADDRESSES);

test.each(['local', 'dev'] as const)('AwsSolutions finds nothing unexplained in %s', (stage) => {
  const { app } = synthStage(stage, ADDRESSES);
  expect(new AwsSolutionsChecks(app).validateScope(app).violations).toEqual([]);
});

describe('in prod, nothing unexplained is found by', () => {
  test.each([AwsSolutionsChecks, NIST80053R5Checks, PCIDSS321Checks, HIPAASecurityChecks, ServerlessChecks])(
    '%o',
    (Checks) => {
      const { violations } = new Checks(app).validateScope(app);
      expect(violations).toEqual([]);
    },
  );
});

describe('what is acknowledged', () => {
  const acknowledged = app.node.findAll().flatMap(acknowledgements);

  test('every acknowledgment gives its reason in a sentence', () => {
    expect(acknowledged.length).toBeGreaterThan(100);
    for (const { reason } of acknowledged) expect(reason).toMatch(/^[A-Z].{30,}\.$/);
  });

  test('docs/nag-findings.md shows every acknowledgment', async () => {
    await expect(`${HEAD}\n\n${table(acknowledged)}`).toMatchFileSnapshot('../../docs/nag-findings.md');
  });
});

const HEAD =
  "# Accepted cdk-nag findings\n\nThe tests run the cdk-nag packs AWS Solutions, NIST 800-53 R5, PCI DSS 3.2.1, HIPAA and Serverless on the example's stage `prod`, with its\nown " +
  'key and X-Ray. They allow only these findings; this page is generated from the acknowledgments in the code.';

/** A row for each reason: its rules, and for each rule the number of constructs and the packs. */
function table(acknowledged: readonly Acknowledgement[]): string {
  const reasons = new Map<string, Map<string, { packs: Set<string>; paths: Set<string> }>>();
  for (const { path, rule, reason } of acknowledged) {
    const [pack = '', name = ''] = rule.replace(/\[.*/, '').split(/-(?=[A-Za-z0-9]+$)/);
    const rules = reasons.get(reason) ?? new Map<string, { packs: Set<string>; paths: Set<string> }>();
    const { packs, paths } = rules.get(name) ?? { packs: new Set(), paths: new Set() };
    reasons.set(reason, rules.set(name, { packs: packs.add(pack), paths: paths.add(path) }));
  }
  const lines = [...reasons].map(([reason, rules]) => {
    const findings = [...rules].sort().map(([name, { packs, paths }]) => {
      return `${name}: ${paths.size} (${[...packs].sort().join(', ')})`;
    });
    return `| ${findings.join('; ')} | ${reason} |`;
  });
  return ['| rule: constructs (packs) | reason |', '| --- | --- |', ...lines.sort(), ''].join('\n');
}

interface Acknowledgement {
  readonly path: string;
  readonly rule: string;
  readonly reason: string;
}

function acknowledgements({ node }: IConstruct): Acknowledgement[] {
  return node.metadata
    .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
    .flatMap(({ data }) => Object.entries(data as Record<string, string>))
    .map(([rule, reason]) => ({ path: node.path, rule: rule.replace('Annotation::', ''), reason }));
}
