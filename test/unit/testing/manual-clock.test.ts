import { describe, expect, it } from 'vitest';
import { lambdaContext, manualClock } from '../../../testing/index.ts';

describe('the manual clock', () => {
  it('time advances only when a test advances it', async () => {
    const clock = manualClock(1_000);
    expect(clock.now()).toBe(1_000);
    await clock.advance(500);
    expect(clock.now()).toBe(1_500);
  });

  it('wakes sleepers in their order, each at its own time', async () => {
    const clock = manualClock(0);
    const woken: string[] = [];
    const sleep = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push(`${name} ${clock.now()}`);
    };
    void sleep('late', 300);
    void sleep('early', 100);
    void sleep('twice', 150).then(() => sleep('twice', 100));
    expect(clock.sleeping()).toBe(3);
    await clock.advance(260);
    expect(woken).toEqual(['early 100', 'twice 150', 'twice 250']);
    expect(clock.sleeping()).toBe(1);
    await clock.advance(40);
    expect(woken.at(-1)).toBe('late 300');
  });

  it('wakes a sleeper whose signal is aborted, before or while it sleeps', async () => {
    const clock = manualClock(0);
    const controller = new AbortController();
    const slept = clock.sleep(1_000, controller.signal);
    controller.abort();
    await slept;
    await clock.sleep(1_000, controller.signal);
    expect([clock.now(), clock.sleeping()]).toEqual([0, 0]);
  });

  it('returns from a sleep of nothing on the next turn', async () => {
    const clock = manualClock(0);
    await clock.sleep(0);
    await clock.sleep(-5);
    expect(clock.now()).toBe(0);
  });

  it('can be set back without waking sleepers', async () => {
    const clock = manualClock(10_000);
    let woken = false;
    void clock.sleep(1_000).then(() => {
      woken = true;
    });
    clock.jumpTo(4_000);
    expect(clock.now()).toBe(4_000);
    await clock.advance(6_999);
    expect(woken).toBe(false);
    await clock.advance(1);
    expect(woken).toBe(true);
  });

  it('runs the time of a Lambda context down', async () => {
    const clock = manualClock();
    const context = lambdaContext({ clock, timeoutMs: 1_000 });
    await clock.advance(400);
    expect(context.getRemainingTimeInMillis()).toBe(600);
    await clock.advance(1_000);
    expect(context.getRemainingTimeInMillis()).toBe(0);
  });
});
