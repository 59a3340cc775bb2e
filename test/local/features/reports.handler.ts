import { createHash } from 'node:crypto';
import { S3 } from '@aws-sdk/client-s3';
import {
  clientSettings,
  lambdaConsumer,
  lambdaPayloads,
  transactional,
} from '../../../lambdas/runtime/index.ts';
import { ReportMade } from './report-made.ts';

const payloads = lambdaPayloads(new S3({ ...clientSettings, forcePathStyle: true }));

/** Writes down what it has received. */
const receive = transactional(ReportMade, async ({ eventId, data: { text } }) => ({
  writes: [
    {
      Put: {
        Item: {
          PK: `REPORT#${eventId}`,
          SK: 'REPORT',
          length: text.length,
          sha256: createHash('sha256').update(text).digest('hex'),
        },
      },
    },
  ],
}));

export const handler = lambdaConsumer([receive], { payloads });
