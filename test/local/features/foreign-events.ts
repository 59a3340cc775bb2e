import { z } from 'zod/mini';
import { foreignEvent } from '../../../lambdas/runtime/index.ts';

/** An event as S3 sends it to the default bus. */
export const ObjectCreated = foreignEvent({
  source: 'test.s3',
  type: 'Object Created',
  id: ['bucket.name', 'object.key', 'object.sequencer'],
  schema: z.object({ object: z.object({ key: z.string() }) }),
});

/** A message of a queue that any sender fills. */
export const Charged = foreignEvent({
  source: 'webhooks',
  type: 'charge.succeeded',
  id: 'id',
  time: 'created',
  schema: z.object({ id: z.string(), amount: z.int().check(z.positive()) }),
});
