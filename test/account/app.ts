import { App } from 'aws-cdk-lib';
import { readName } from '../../verify/system-name.ts';
import { verifiedSystem, verifyStage } from './verified-system.ts';

const app = new App();
verifiedSystem(app, verifyStage(readName(app.node.tryGetContext('verify')), process.env));
