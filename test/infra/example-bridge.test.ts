import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { orderSystem } from '../../lib/example/order-system.ts';
import { readStage } from '../../lib/example/stage.ts';
import { resources, synthStage, testApp } from './synth.ts';

const bridged = { bridge: 'kafka', bridgeTo: '127.0.0.1:9092' };

/** The order system with some context values; the stack of the bridge may be missing. */
function bridgeOf(given: Readonly<Record<string, string>>) {
  const app = testApp(given);
  orderSystem(app, readStage('local', {}));
  return app.node.tryFindChild('Bridge');
}

describe('the bridge of the order system', () => {
  test('is missing unless the context names a broker', () => {
    expect(bridgeOf({})).toBeUndefined();
  });

  test.each(['jetstream', 'kafka', 'rabbitmq'])('forwards the events of orders to %s', (bridge) => {
    const template = Template.fromStack(bridgeOf({ ...bridged, bridge }) as never);
    const rules = Object.values(resources(template, 'AWS::Events::Rule'));
    const patterns = JSON.stringify(rules.map(({ Properties }) => Properties.EventPattern));
    expect([...patterns.matchAll(/"(Order\w+|Payment\w+|Stock\w+)"/g)].map(([, type]) => type)).toEqual([
      'OrderPlaced',
      'OrderCancelled',
    ]);
    const functions = Object.values(resources(template, 'AWS::Lambda::Function'));
    expect(functions.flatMap(({ Properties }) => Properties.Environment?.Variables ?? [])).toContainEqual(
      expect.objectContaining({ MAILROOM_CONSUMER: 'bridge', MAILROOM_BRIDGE_TO: '127.0.0.1:9092' }),
    );
    expect(Object.keys(template.findOutputs('*'))).toEqual(
      expect.arrayContaining(['BridgeQueueUrl', 'BridgeDlqUrl']),
    );
  });

  test('changes no other stack but the alarms', () => {
    const [plain, other] = [synthStage('local'), synthStage('local', bridged)];
    const { Operations: _, ...stacks } = plain.templates;
    for (const [name, template] of Object.entries(stacks)) {
      // The bridge imports names of the Mailroom.
      const { Outputs: _outputs, ...json } = other.templates[name as keyof typeof stacks].toJSON();
      const { Outputs: _before, ...before } = template.toJSON();
      expect(json, name).toEqual(before);
    }
  });

  test.each([{ bridge: 'rabbit', bridgeTo: '127.0.0.1:5672' }, { bridge: 'kafka' }])(
    'is refused with %o',
    (given) => {
      expect(() => bridgeOf(given as never)).toThrow(
        /^The context value bridge is ".+Set bridge to one of jetstream, kafka, rabbitmq/,
      );
    },
  );
});
