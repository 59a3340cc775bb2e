import { App, Validations } from 'aws-cdk-lib';
import {
  AwsSolutionsChecks,
  HIPAASecurityChecks,
  NIST80053R5Checks,
  PCIDSS321Checks,
  ServerlessChecks,
} from 'cdk-nag';
import { orderSystem } from '../lib/example/order-system.ts';
import { readStage } from '../lib/example/stage.ts';

const app = new App();
const stage = readStage(app.node.tryGetContext('stage'), process.env);
Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
if (stage.audited)
  Validations.of(app).addPlugins(
    new NIST80053R5Checks(app),
    new PCIDSS321Checks(app),
    new HIPAASecurityChecks(app),
    new ServerlessChecks(app),
  );
orderSystem(app, stage);
