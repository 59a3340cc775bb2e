import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { clientSettings } from '../../base/client-settings.ts';
import { readAtOnceConfig } from '../../base/config.ts';
import { eventBridgeBus } from '../../bus/eventbridge-bus.ts';
import { type AtOncePublisher, createAtOncePublisher } from './publish-at-once.ts';

/**
 * Creates the publisher of a function whose `mailroom.addProducer` call has `publishAtOnce`: {@link createAtOncePublisher} with the
 * settings from the environment and its own SDK client. Only functions that import it bundle the EventBridge client.
 *
 * @returns `undefined`, with a warning, if the function has no such setting: then the relay publishes. A deployment applies the
 * settings and the code of a function one after the other.
 * @throws `BAD_CONFIG`, naming the variable, if a setting is out of range or only some are there
 *
 * @example
 * ```ts
 * const outbox = lambdaOutbox({ publishAtOnce: lambdaPublisher });
 * ```
 */
export function lambdaPublisher(): AtOncePublisher | undefined {
  if (process.env.MAILROOM_AT_ONCE_TIMEOUT_MS === undefined) {
    console.warn(
      'lambdaPublisher: MAILROOM_AT_ONCE_TIMEOUT_MS is not set, so the relay publishes. Pass publishAtOnce to the mailroom.addProducer call.',
    );
    return undefined;
  }
  const config = readAtOnceConfig(process.env);
  // One try per call: the stream relay publishes what failed.
  const client = new EventBridgeClient({ logger: clientSettings.logger, maxAttempts: 1 });
  return createAtOncePublisher({ config, bus: eventBridgeBus({ client, busName: config.busName }) });
}
