import { describe, expect, test } from 'vitest';
import { ADDRESSES, STACKS, stable, synthStage } from './synth.ts';

describe('the templates of the order system', () => {
  const { templates } = synthStage('prod', ADDRESSES);

  test.each(STACKS)('%s is what was reviewed', async (stack) => {
    await expect(stable(templates[stack])).toMatchFileSnapshot(
      `__snapshots__/${stack.toLowerCase()}.template.json`,
    );
  });
});
