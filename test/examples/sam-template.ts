import { App, BootstraplessSynthesizer, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { CfnInclude } from 'aws-cdk-lib/cloudformation-include';
import type { CfnTemplate } from './cloudformation-parts.ts';

/** The file of the SAM template, from the repository's folder. */
export const SAM_FILE = 'docs/examples/sam/template.yaml';

/** The SAM template as JSON, before SAM's transform. */
export function samTemplate(): CfnTemplate {
  const stack = new Stack(new App({ analyticsReporting: false }), 'Shop', {
    synthesizer: new BootstraplessSynthesizer(),
  });
  new CfnInclude(stack, 'Template', { templateFile: SAM_FILE });
  return Template.fromStack(stack).toJSON() as CfnTemplate;
}
