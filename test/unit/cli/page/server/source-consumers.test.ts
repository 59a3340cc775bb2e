import { expect, test } from 'vitest';
import { runQuietly } from '../../../../../cli/page/server/quiet-run.ts';
import { reportOf } from '../../../../../cli/terminal/terminal.ts';
import { MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { capturedIo } from '../../../../support/captured-io.ts';
import { mailroomInMemory } from '../../support/mailroom-in-memory.ts';
import { memoryDeployment } from '../../support/memory-deployment.ts';
import { startLedger } from '../../support/source-ledger.ts';
import { fine } from '../../support/why-rig.ts';
import { liveRig } from './live-rig.ts';

test('an open page shows a consumer of another source within a minute of its start', async () => {
  const rig = liveRig();
  const tab = rig.open();
  await rig.clock.advance(0);
  expect(tab.flow().status?.sourceConsumers).toEqual({});
  startLedger(rig);
  await rig.clock.advance(MINUTE_MS + 10_000);
  expect(tab.flow().status?.sourceConsumers).toMatchObject({ ledger: { from: 'Kafka', rejected: 0 } });
});

test('a reading of an open page knows a consumer of another source that has just started', async () => {
  const mailroom = mailroomInMemory([fine]);
  const deployment = memoryDeployment(mailroom, capturedIo().io, {});
  const read = () =>
    runQuietly(deployment, async ({ directory, consumer }) => {
      const names = directory.sourceConsumers?.map(({ name }) => name);
      return reportOf({ names, refusal: refusalOf(() => consumer('ledger')) }, null, () => '');
    });
  expect((await read()).document?.names).toEqual([]);
  startLedger(mailroom);
  await mailroom.clock.advance(1);
  const { document } = await read();
  expect(document?.names).toEqual(['ledger']);
  expect(document?.refusal).toContain('receives from Kafka');
});

function refusalOf(run: () => unknown): string {
  try {
    run();
    return '';
  } catch (error) {
    return String(error);
  }
}
