import { section } from './explanation.ts';

/** Failures of `mailroom local`. */
export const LOCAL = section({
  title: 'Local AWS',
  text: '`npx cdk-mailroom local` could not start an engine on this machine, or deploy to it.',
  codes: {
    BAD_PORT: {
      cause: '`--port` or `MAILROOM_PORT` is not a whole number from 1 to 65535.',
      result: 'Nothing was started.',
      action: 'Correct it.',
    },
    DEPLOY_FAILED: {
      cause: '`cdk deploy` failed. The message has the last lines of its output.',
      result: 'Some stacks may be deployed.',
      action: 'Fix what the output says, and run the command again.',
    },
    ENGINE_START: {
      cause: 'The engine did not start or ended early. The message has the last lines of its log.',
      result: 'Nothing was deployed.',
      action: 'Choose another port, or install Python 3.10 or later to use MiniStack.',
    },
    ENGINE_UNREACHABLE: {
      cause: 'Nothing responds at `AWS_ENDPOINT_URL`, or it is not a URL.',
      result: 'Nothing was started.',
      action: 'Start an engine there, or unset the variable to start one automatically.',
    },
    NO_ENGINE: {
      cause: 'Neither Python 3.10 or later nor a running Docker was found.',
      result: 'Nothing was started.',
      action: 'Install one of them, or set `AWS_ENDPOINT_URL` to a running engine.',
    },
    PORT_IN_USE: {
      cause: 'Another program uses the port.',
      result: 'Nothing was started.',
      action: 'Stop that program, or choose another port with `--port` or `MAILROOM_PORT`.',
    },
    PYTHON_ENVIRONMENT: {
      cause: 'The engine could not be installed with Python. The message has the output of pip.',
      result: 'Nothing was started.',
      action:
        'Install `python3-venv`, or check the network and the package index of pip. Then repeat the command.',
    },
  },
});

/** Failures of the tools in the repository. */
export const REPOSITORY = section({
  title: 'Example, demo, verification and benchmarks',
  text: 'Tools of the repository, which the package does not contain.',
  codes: {
    BAD_NAME: {
      cause: 'The name is not one that `npm run verify` has printed.',
      result: 'Nothing was deployed or destroyed.',
      action: 'Use the printed name, such as `verify-x7k2q9mt`.',
    },
    BAD_STAGE: {
      cause: 'The stage of the example is not `local`, `dev` or `prod`.',
      result: 'Synthesis failed.',
      action: 'Choose one with `-c stage=dev`.',
    },
    DEMO_OVER: {
      cause: 'The demo places no more orders, so a fault would affect nothing.',
      result: 'The fault was not made.',
      action: 'Start a new run.',
    },
    DESTROY_FAILED: {
      cause: '`cdk destroy` failed. The message has the last lines of its output.',
      result: 'Stacks of the verification may be left, and cost money.',
      action: 'Fix what the output says, and destroy the stacks whose names begin with the printed name.',
    },
    NO_ACCOUNT: {
      cause: 'The profile does not lead to an AWS account.',
      result: 'Nothing was deployed.',
      action: 'Check it with `aws sts get-caller-identity --profile <profile>`.',
    },
    NO_CONSENT: {
      cause: 'The deployment to an account was not confirmed.',
      result: 'Nothing was changed.',
      action: 'Repeat the command with `--yes`, or type the printed name.',
    },
    NOT_BOOTSTRAPPED: {
      cause: 'The CDK is not bootstrapped in the account and region.',
      result: 'Nothing was deployed.',
      action: 'Run the printed `npx cdk bootstrap`.',
    },
    NOT_THIS_ENGINE: {
      cause: 'The demo did not start the engine on this port.',
      result: 'The fault was not made, or the bridge of `--bridge` not deployed.',
      action: 'Stop that engine with `npm run local:stop`, or choose another `--port`.',
    },
    NO_BROKER: {
      cause: 'The broker of `--bridge` cannot run on this machine. The message has the reason.',
      result: 'Nothing was deployed.',
      action: 'Fix the reason, choose the other broker, or run the demo without `--bridge`.',
    },
    OTHER_ENDPOINT: {
      cause: '`--profile` means AWS, but a variable `AWS_ENDPOINT_URL…` leads elsewhere.',
      result: 'Nothing was deployed.',
      action: 'Unset the variable, or use `--local`.',
    },
    UNKNOWN_PART: {
      cause: 'The benchmark has no part of this name.',
      result: 'Nothing was measured.',
      action: 'Use one of the listed parts.',
    },
    WHICH_TARGET: {
      cause: 'Neither or both of `--profile` and `--local` are given, or `--region` with `--local`.',
      result: 'Nothing was deployed.',
      action: 'Use `--profile <name>` for an account that may be charged, or `--local` for a local engine.',
    },
  },
});
