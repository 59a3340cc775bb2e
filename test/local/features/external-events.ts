import { z } from 'zod/mini';
import { externalEvent } from '../../../lambdas/runtime/index.ts';

/** An event as S3 sends it to the default bus. */
export const ObjectCreated = externalEvent({
  source: 'test.s3',
  type: 'Object Created',
  id: ['bucket.name', 'object.key', 'object.sequencer'],
  schema: z.object({ object: z.object({ key: z.string() }) }),
});

/** A message of a queue that any sender fills. */
export const Charged = externalEvent({
  source: 'webhooks',
  type: 'charge.succeeded',
  id: 'id',
  time: 'created',
  schema: z.object({ id: z.string(), amount: z.int().check(z.positive()) }),
});
