# The audit compares the outbox with every inbox, on a schedule.

resource "aws_cloudwatch_log_group" "audit" {
  name              = "/aws/lambda/${var.name}-audit"
  retention_in_days = 30
}

resource "aws_iam_role" "audit" {
  name               = "${var.name}-audit"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
  tags               = local.tags
}

data "aws_iam_policy_document" "audit" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.audit.arn}:*"]
  }
  statement {
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["OUTBOX#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:BatchGetItem", "dynamodb:GetItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["INBOX#*", "SWEEP"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["ssm:GetParametersByPath"]
    resources = [local.bus_parameters, local.parameters]
  }
  statement {
    actions   = ["ssm:GetParameterHistory"]
    resources = ["${local.parameters}/consumers/*"]
  }
  statement {
    actions   = ["events:DescribeRule", "events:ListTargetsByRule"]
    resources = [local.rules]
  }
  statement {
    actions   = ["cloudwatch:GetMetricData"]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "audit" {
  role   = aws_iam_role.audit.name
  policy = data.aws_iam_policy_document.audit.json
}

resource "aws_lambda_function" "audit" {
  function_name    = "${var.name}-audit"
  description      = "Mailroom audit: accounts for every published event"
  filename         = local.zips.audit
  source_code_hash = filebase64sha256(local.zips.audit)
  handler          = "index.handler"
  runtime          = var.runtime
  architectures    = ["arm64"]
  memory_size      = 1769
  timeout          = 840
  role             = aws_iam_role.audit.arn
  tags             = local.tags
  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.audit.name
  }
  environment {
    variables = {
      POWERTOOLS_SERVICE_NAME      = "mailroom-audit"
      POWERTOOLS_METRICS_NAMESPACE = "Mailroom"
      MAILROOM_TABLE               = aws_dynamodb_table.table.name
      MAILROOM_AUDIT_SINCE_MS      = "3600000"
      MAILROOM_AUDIT_EVERY_MS      = "900000"
    }
  }
  depends_on = [aws_iam_role_policy.audit]
}

resource "aws_lambda_function_event_invoke_config" "audit" {
  function_name                = aws_lambda_function.audit.function_name
  maximum_event_age_in_seconds = 900
  maximum_retry_attempts       = 0
}

resource "aws_cloudwatch_event_rule" "audit_schedule" {
  name                = "${var.name}-audit-schedule"
  description         = "Runs the audit of the Mailroom."
  schedule_expression = "rate(15 minutes)"
}

resource "aws_cloudwatch_event_target" "audit_schedule" {
  rule  = aws_cloudwatch_event_rule.audit_schedule.name
  arn   = aws_lambda_function.audit.arn
  input = jsonencode(local.scheduled)
  retry_policy {
    maximum_event_age_in_seconds = 900
    maximum_retry_attempts       = 0
  }
}

resource "aws_lambda_permission" "audit_schedule" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.audit.arn
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.audit_schedule.arn
}
