import { EXIT } from '../../cli/terminal/io.ts';
import { passed, type VerifyCheck } from './check.ts';

/** The command finds nothing to do, once all faults are repaired. */
export const statusCheck: VerifyCheck = {
  name: 'mailroom status: nothing requires action',
  run: async ({ mailroom, until }) => {
    let last = '';
    await until('mailroom status exits with 0', async () => {
      const { code, out, err } = await mailroom('status');
      last = `${out}${err}`.trim();
      return code === EXIT.ok;
    }).catch((error) => {
      throw new Error(`${(error as Error).message}\n${last}`);
    });
    return passed(last.split('\n')[0] ?? '');
  },
};
