import { type Environment, integer, names, settings, text } from './config-codec.ts';

/** Settings of the payloads of a Mailroom. */
export interface PayloadConfig {
  /** The bucket of their objects. */
  readonly bucket: string;
  /** The size of a payload as JSON above which it becomes an object, bytes. */
  readonly aboveBytes: number;
  /** The longest time until an event with an object is published, days: the rest of the object's lifetime is for its consumers. */
  readonly aheadDays: number;
  /** The types of the function's own events that always carry their payload. */
  readonly inline: readonly string[];
}

/** The smallest threshold, bytes: below it, an object costs more than the units that it saves. */
export const ABOVE_MIN_BYTES = 1024;

/** The largest threshold, bytes: an outbox row always takes a payload of this size, and the envelope around it. */
export const ABOVE_MAX_BYTES = 384 * 1024;

/** The longest lifetime that a bucket can be given, days: an S3 lifecycle takes any, and an event can be scheduled a year ahead. */
export const LIFETIME_MAX_DAYS = 3_650;

/** The variable that says whether a function's Mailroom has payloads. */
export const PAYLOADS_VARIABLE = 'MAILROOM_PAYLOADS_BUCKET';

/** The settings of payloads, as variables. */
export const payloadSettings = settings<PayloadConfig>(
  {
    bucket: text(PAYLOADS_VARIABLE),
    aboveBytes: integer('MAILROOM_PAYLOADS_ABOVE', ABOVE_MIN_BYTES, ABOVE_MAX_BYTES),
    aheadDays: integer('MAILROOM_PAYLOADS_AHEAD_DAYS', 0, LIFETIME_MAX_DAYS),
    inline: names('MAILROOM_PAYLOADS_INLINE'),
  },
  'give the Mailroom `payloads`, or set the variable yourself (docs/payloads.md).',
);

/**
 * Reads the settings of payloads from a function's environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readPayloadConfig(env: Environment): PayloadConfig {
  return payloadSettings.read(env);
}
