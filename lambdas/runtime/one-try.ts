import type { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import type { TransactWriteCommand } from '@aws-sdk/lib-dynamodb';

/** An error that the SDK's retry strategies do not recognize, so that they do not retry it. */
class OneTry extends Error {
  readonly inner: unknown;

  constructor(inner: unknown) {
    super('The one try failed');
    this.inner = inner;
  }
}

/** The part of a middleware stack that is used here; the SDK's own types differ from command to command. */
interface Stack {
  add(middleware: Middleware, options: object): void;
  addRelativeTo(middleware: Middleware, options: object): void;
}

type Call = (args: object) => Promise<object>;
type Middleware = (next: Call) => Call;

/**
 * Sends this one command at most once, whatever retries its client is configured to make; the client and its other commands
 * are not changed. The first middleware runs inside the SDK's retry loop, outside its signer, which goes on correcting the
 * client's clock: it disguises the failure, and sends nothing when a retry strategy tries again all the same. The second runs
 * outside the loop and removes the disguise.
 */
export function tryOnce(command: PutEventsCommand | TransactWriteCommand): void {
  const stack = command.middlewareStack as unknown as Stack;
  let failed: OneTry | undefined;
  stack.addRelativeTo(
    (next) => async (args) => {
      if (failed !== undefined) throw failed;
      try {
        return await next(args);
      } catch (error) {
        failed = new OneTry(error);
        throw failed;
      }
    },
    // The document client adds a command's middleware twice.
    { name: 'mailroomOneTry', relation: 'after', toMiddleware: 'retryMiddleware', override: true },
  );
  stack.add(
    (next) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        throw error instanceof OneTry ? error.inner : error;
      }
    },
    { name: 'mailroomOneTryError', step: 'initialize', priority: 'high', override: true },
  );
}
