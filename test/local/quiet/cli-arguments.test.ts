import { describe, expect, inject, it } from 'vitest';
import { unwrapped } from '../../support/captured-io.ts';
import { mailroom, mailroomAt } from '../support/mailroom.ts';

describe('mailroom', () => {
  it('finds the only Mailroom with its stage, with its stack, and without either', async () => {
    for (const where of [['--stage', 'local'], ['--stack', 'mailroom-local'], []]) {
      const { json, code } = await mailroom('operations', '--json', ...where);
      expect(code).toBe(0);
      expect(json()).toHaveProperty('operations');
    }
  });

  it('accepts options before the command', async () => {
    const endpoint = inject('endpoint');
    const { code } = await mailroomAt('http://127.0.0.1:9', '--endpoint', endpoint, '--json', 'operations');
    expect(code).toBe(0);
  });

  it('names the known stacks for an unknown stage', async () => {
    const { code, out, err } = await mailroom('status', '--stage', 'prod');
    expect(code).toBe(3);
    expect(out).toBe('');
    expect(unwrapped(err)).toMatch(/NO_SUCH_STAGE: No Mailroom in us-east-1 at http.* matches stage "prod"/);
    expect(unwrapped(err)).toContain('Stacks with a Mailroom: mailroom-local');
  });

  it('names the known consumers for an unknown one', async () => {
    const { code, err } = await mailroom('messages', 'list', '--consumer', 'payment');
    expect(code).toBe(3);
    expect(unwrapped(err)).toContain('Consumers: inventory, notifications, order-status, payments');
  });
});
