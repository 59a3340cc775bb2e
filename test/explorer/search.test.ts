import { describe, expect, it } from 'vitest';
import { type Guide, replay, searchSchedules } from '../../testing/explorer/search.ts';

/** Every schedule's choices, as the search walks them. */
async function walked(
  run: (guide: Guide) => Promise<unknown>,
  deviationsMax?: number,
): Promise<readonly string[]> {
  const schedules: string[] = [];
  await searchSchedules(run, {
    deviationsMax,
    onSchedule: (_result, choices) => schedules.push(choices.join('')) > 0,
  });
  return schedules;
}

/** Two branchings with these numbers of ways; no two states are alike. */
const branching =
  (...ways: readonly number[]) =>
  async (guide: Guide) => {
    let path = '';
    for (const count of ways) path += guide.choose(count, () => `after ${path}`, '');
  };

describe('a search', () => {
  it('walks every schedule once, the ordinary one first', async () => {
    expect(await walked(branching(2, 3))).toEqual(['00', '01', '02', '10', '11', '12']);
  });

  it('walks only those that leave the ordinary way as often as it may', async () => {
    expect(await walked(branching(2, 3), 1)).toEqual(['00', '01', '02', '10']);
    expect(await walked(branching(2, 3), 0)).toEqual(['00']);
  });

  it('goes on from a state once, however it is reached', async () => {
    const meeting = async (guide: Guide) => {
      if (guide.choose(2, () => 'start', '') === -1) return;
      guide.choose(2, () => 'where both ways meet', '');
    };
    expect(await walked(meeting)).toEqual(['00', '01', '1']);
  });

  it('goes on again from a state that it can leave more often than before', async () => {
    const meeting = async (guide: Guide) => {
      const first = guide.choose(2, () => 'start', '');
      if (first === 0 && guide.choose(2, () => 'a detour', '') === -1) return;
      guide.choose(2, () => 'where both ways meet', '');
    };
    expect(await walked(meeting, 1)).toEqual(['000', '001', '01', '1']);
  });

  it('reports a system that is not deterministic', async () => {
    let runs = 0;
    const fickle = async (guide: Guide) => {
      runs += 1;
      guide.choose(runs === 1 ? 2 : 3, () => 'start', '');
    };
    await expect(walked(fickle)).rejects.toThrow('not deterministic');
  });
});

describe('a replay', () => {
  it('follows the known choices, then the ordinary path', () => {
    const guide = replay([1, 2]);
    expect([2, 3, 4].map((ways) => guide.choose(ways, () => '', ''))).toEqual([1, 2, 0]);
  });

  it('refuses a way that there is not', () => {
    expect(() => replay([3]).choose(2, () => '', '')).toThrow('does not fit this version');
  });
});
