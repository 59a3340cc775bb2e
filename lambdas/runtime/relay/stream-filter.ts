import { OUTBOX_PREFIX } from '../store/keys.ts';

/** The filter of the stream mapping: the stream relay receives new outbox rows only. */
export const STREAM_FILTER = {
  eventName: ['INSERT'],
  dynamodb: { Keys: { PK: { S: [{ prefix: OUTBOX_PREFIX }] } } },
};
