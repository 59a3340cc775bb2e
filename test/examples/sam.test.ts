import { beforeAll, describe, expect, test } from 'vitest';
import { type CfnTemplate, cloudFormationParts, deployedBefore, keptParts } from './cloudformation-parts.ts';
import { constructsParts, constructsTemplate, nameOf } from './constructs-parts.ts';
import type { Parts } from './parts.ts';
import { samTemplate } from './sam-template.ts';

/** Fields that differ on purpose: the code is bundled from a file of the template. */
const HANDLERS = { PlaceOrder: 'place-order.handler', Receipts: 'receipts.handler' };

let template: CfnTemplate;
let sam: Parts;
const constructs = constructsParts();

beforeAll(() => {
  template = samTemplate();
  sam = cloudFormationParts(template);
});

describe('the SAM template', () => {
  test('the SAM template has exactly the resources that the constructs deploy', () => {
    expect(Object.keys(sam).sort()).toEqual(Object.keys(constructs).sort());
  });

  test.each(Object.keys(constructs))('the SAM template has the %s of the constructs', (name) => {
    const own = sam[name];
    const handler = HANDLERS[name as keyof typeof HANDLERS];
    if (handler !== undefined) expect(own?.properties.Handler).toBe(handler);
    const expected = constructs[name];
    expect(own).toEqual({
      ...expected,
      properties: { ...expected?.properties, ...(handler && { Handler: handler }) },
    });
  });

  test('keeps the parts that the constructs keep', () => {
    const kept = keptParts(constructsTemplate(), nameOf);
    expect(Object.keys(kept).length).toBeGreaterThan(5);
    expect(keptParts(template)).toEqual(kept);
  });

  test('deploys the rule after the function and its permissions, and the producer after the relay', () => {
    expect([...deployedBefore(template, 'ReceiptsRule')]).toEqual(
      expect.arrayContaining([
        'Receipts',
        'ReceiptsMapping',
        'ReceiptsQueuePolicy',
        'ReceiptsUndeliveredPolicy',
      ]),
    );
    expect([...deployedBefore(template, 'PlaceOrder')]).toEqual(
      expect.arrayContaining([
        'PlaceOrderGrants',
        'StreamRelayMapping',
        'SweepSchedule',
        'SweepSchedulePermission',
      ]),
    );
    expect([...deployedBefore(template, 'StreamRelayMapping')]).toContain('StreamRelayGrants');
  });
});
