import { expect, test, vi } from 'vitest';
import { startBridge } from '../../../demo/bridge.ts';

test('a broker that cannot run here is refused with the reason, before anything is started', async () => {
  vi.stubEnv('PATH', '/nowhere');
  const step = vi.fn();
  await expect(startBridge('kafka', { step })).rejects.toMatchObject({
    code: 'NO_BROKER',
    message:
      '--bridge is "kafka", but Kafka cannot be started: Java was not found: install 17 or later. Run the demo without --bridge, or choose another broker.',
  });
  expect(step).not.toHaveBeenCalled();
});
