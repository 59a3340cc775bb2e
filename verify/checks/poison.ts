import { SendMessageCommand } from '@aws-sdk/client-sqs';
import { EXIT } from '../../cli/terminal/io.ts';
import { passed, type VerifyCheck } from './check.ts';

const SOURCE = 'consumer:notifications';

/** The part of `dlq list --json` that is read. */
interface Listed {
  readonly deadLetterSources: readonly { readonly deadLetters: readonly { readonly id: string }[] }[];
}

/** A message that no handler can read. */
export const poisonCheck: VerifyCheck = {
  name: 'a poison message is rejected, listed and discarded; others pass',
  run: async ({ consumer, sqs, mailroom, until, placeOrder, confirmed }) => {
    const MessageBody = 'this is not JSON';
    await sqs.send(new SendMessageCommand({ QueueUrl: consumer('notifications').queue, MessageBody }));
    const customers = 'verify-poison';
    const orderId = await placeOrder(customers);
    await confirmed(customers, [orderId]);
    const id = await until('mailroom dlq list shows the poison message', async () => {
      const { out } = await mailroom('dlq', 'list', SOURCE, '--json');
      return (JSON.parse(out) as Listed).deadLetterSources[0]?.deadLetters[0]?.id;
    });
    const discard = ['dlq', 'discard', SOURCE, id, '--apply', '--reason', 'sent by npm run verify'];
    const { code, out, err } = await mailroom(...discard);
    if (code !== EXIT.ok) throw new Error(`mailroom ${discard.join(' ')} exited with ${code}:\n${out}${err}`);
    return passed(`message ${id}`);
  },
};
