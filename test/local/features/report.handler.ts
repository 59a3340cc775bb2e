import { S3 } from '@aws-sdk/client-s3';
import { clientSettings, lambdaOutbox, lambdaPayloads } from '../../../lambdas/runtime/index.ts';
import { ReportMade } from './report-made.ts';

const outbox = lambdaOutbox({
  payloads: lambdaPayloads(new S3({ ...clientSettings, forcePathStyle: true })),
});

/** Commits a report. @returns the id of its event */
export async function handler({ text }: { readonly text: string }): Promise<string | undefined> {
  const [event] = await outbox.commit({
    events: [ReportMade.create({ aggregateId: 'report', data: { text } })],
  });
  return event?.eventId;
}
