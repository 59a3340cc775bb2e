import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const workflow = readFileSync(new URL('../../.github/workflows/deploy.yml', import.meta.url), 'utf8');

describe('the deploy workflow', () => {
  test('uses actions by commit, with the version beside it: a tag can be moved', () => {
    const uses = [...workflow.matchAll(/uses: (.*)$/gm)].map(([, action]) => action);
    expect(uses.length).toBeGreaterThan(6);
    for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('gives a job no more than reading the code and asking AWS for a role', () => {
    expect(workflow).toMatch(/^permissions: \{\}$/m);
    const permissions = [...workflow.matchAll(/^ {6}([\w-]+): (read|write)$/gm)].map(
      ([, what, how]) => `${what}: ${how}`,
    );
    expect(new Set(permissions)).toEqual(new Set(['contents: read', 'id-token: write']));
  });

  test('holds no secret, and lets no pull request of a fork near a role', () => {
    expect(workflow).not.toMatch(/secrets\.|aws-access-key-id|pull_request_target/);
    expect(workflow).toContain('github.event.pull_request.head.repo.full_name == github.repository');
  });

  test('puts nothing that others may write into a script, but into its environment', () => {
    const scripts = workflow.split('\n').filter((line) => /^ {8,}(run:|npx|echo|\$\{PAGE)/.test(line));
    expect(scripts.length).toBeGreaterThan(6);
    expect(scripts.filter((line) => line.includes('${{'))).toEqual([]);
  });
});
