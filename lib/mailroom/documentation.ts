/**
 * The address of this version's documentation. Written out, because the constructs are loaded as ES modules, as CommonJS and in
 * bundles, and find no package.json in all of them; `test/infra/documentation.test.ts` compares it with package.json.
 */
const DOCUMENTATION_URL = 'https://github.com/cdk-mailroom/cdk-mailroom/blob/v0.1.0/docs';

/** The address of docs/operating.md, which alarms link to by default. */
export const RUNBOOK_URL = `${DOCUMENTATION_URL}/operating.md`;
