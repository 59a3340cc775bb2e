import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/index.ts';

/** An event whose payload can be an object in S3. */
export const ReportMade = defineEvent({
  source: 'reports',
  version: 1,
  aggregateType: 'Report',
  type: 'ReportMade',
  schema: z.object({ text: z.string() }),
});
