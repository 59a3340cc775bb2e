import { expect, test, vi } from 'vitest';
import { startBridge } from '../../../demo/bridge.ts';

test('a broker that cannot run here is refused with the reason, before anything is started', async () => {
  vi.stubEnv('PATH', '/nowhere');
  const step = vi.fn();
  await expect(startBridge('kafka', { step })).rejects.toMatchObject({ code: 'NO_BROKER' });
  expect(step).not.toHaveBeenCalled();
});
