import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { orderSystem } from '../lib/example/order-system.ts';
import { readStage } from '../lib/example/stage.ts';

const app = new App();
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
orderSystem(app, readStage(app.node.tryGetContext('stage'), process.env));
