import { describe, expect, test } from 'vitest';
import { resourceLines } from './resource-lines.ts';
import { ADDRESSES, STACKS, stable, synthStage } from './synth.ts';

/** The stacks whose whole templates are reviewed: the shared parts, and one consumer like all others. */
const WHOLE: readonly string[] = ['Mailroom', 'Payments'];

describe('the templates of the order system', () => {
  const { templates } = synthStage('prod', ADDRESSES);

  test.each(STACKS.filter((stack) => WHOLE.includes(stack)))(
    'the template of %s is what was reviewed',
    async (stack) => {
      await expect(stable(templates[stack])).toMatchFileSnapshot(
        `__snapshots__/${stack.toLowerCase()}.template.json`,
      );
    },
  );

  test.each(STACKS.filter((stack) => !WHOLE.includes(stack)))(
    'the resources of %s are what was reviewed, a line each',
    async (stack) => {
      const lines = `${resourceLines(templates[stack])}\n`;
      await expect(lines).toMatchFileSnapshot(`__snapshots__/${stack.toLowerCase()}.resources.txt`);
    },
  );
});
