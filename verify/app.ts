import { App } from 'aws-cdk-lib';
import { verifiedSystem } from './probes-stack.ts';
import { readName } from './system-name.ts';
import { verifyStage } from './verify-stage.ts';

const app = new App();
verifiedSystem(app, verifyStage(readName(app.node.tryGetContext('verify')), process.env));
