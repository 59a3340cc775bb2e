# The stream relay publishes new outbox rows as the stream of the table reports them.

resource "aws_cloudwatch_log_group" "stream_relay" {
  name              = "/aws/lambda/${var.name}-stream-relay"
  retention_in_days = 30
}

resource "aws_iam_role" "stream_relay" {
  name               = "${var.name}-stream-relay"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
  tags               = local.tags
}

data "aws_iam_policy_document" "stream_relay" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.stream_relay.arn}:*"]
  }
  statement {
    actions   = ["dynamodb:PartiQLUpdate", "dynamodb:UpdateItem"]
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
    actions   = ["dynamodb:DeleteItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DEAD#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["events:PutEvents"]
    resources = [aws_cloudwatch_event_bus.bus.arn]
    condition {
      test     = "ForAllValues:StringEquals"
      variable = "events:source"
      values   = local.sources
    }
    condition {
      test     = "Null"
      variable = "events:source"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["SWEEP"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:PutItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["SWEEP#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.relay_failures.arn]
  }
  statement {
    actions   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"]
    resources = [aws_dynamodb_table.table.stream_arn]
  }
}

resource "aws_iam_role_policy" "stream_relay" {
  role   = aws_iam_role.stream_relay.name
  policy = data.aws_iam_policy_document.stream_relay.json
}

resource "aws_lambda_function" "stream_relay" {
  function_name    = "${var.name}-stream-relay"
  description      = "Mailroom relay, stream path"
  filename         = local.zips.stream_relay
  source_code_hash = filebase64sha256(local.zips.stream_relay)
  handler          = "index.handler"
  runtime          = var.runtime
  architectures    = ["arm64"]
  memory_size      = 512
  timeout          = 90
  role             = aws_iam_role.stream_relay.arn
  tags             = local.tags
  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.stream_relay.name
  }
  environment {
    variables = {
      POWERTOOLS_SERVICE_NAME           = "mailroom-relay"
      POWERTOOLS_METRICS_NAMESPACE      = "Mailroom"
      MAILROOM_TABLE                    = aws_dynamodb_table.table.name
      MAILROOM_BUS                      = aws_cloudwatch_event_bus.bus.name
      MAILROOM_SHARDS                   = local.shards
      MAILROOM_CLAIM_LEASE_MS           = "30000"
      MAILROOM_PUBLISH_TIMEOUT_MS       = "5000"
      MAILROOM_MAX_ATTEMPTS             = "10"
      MAILROOM_PUBLISHED_RETENTION_DAYS = "7"
      MAILROOM_SWEEP_EVERY_MS           = "60000"
      MAILROOM_SOURCES                  = jsonencode(local.sources)
    }
  }
  depends_on = [aws_iam_role_policy.stream_relay]
}

locals {
  new_outbox_rows = {
    eventName = ["INSERT"]
    dynamodb  = { Keys = { PK = { S = [{ prefix = "OUTBOX#" }] } } }
  }
}

resource "aws_lambda_event_source_mapping" "stream_relay" {
  function_name                  = aws_lambda_function.stream_relay.function_name
  event_source_arn               = aws_dynamodb_table.table.stream_arn
  starting_position              = "TRIM_HORIZON"
  batch_size                     = 100
  parallelization_factor         = 1
  bisect_batch_on_function_error = true
  function_response_types        = ["ReportBatchItemFailures"]
  maximum_retry_attempts         = 10
  maximum_record_age_in_seconds  = 3600
  filter_criteria {
    filter {
      pattern = jsonencode(local.new_outbox_rows)
    }
  }
  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.relay_failures.arn
    }
  }
}

resource "aws_sqs_queue" "relay_failures" {
  name                      = "${var.name}-relay-failures"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_redrive_allow_policy" "relay_failures" {
  queue_url            = aws_sqs_queue.relay_failures.url
  redrive_allow_policy = jsonencode(local.redrive_deny)
}

data "aws_iam_policy_document" "relay_failures" {
  statement {
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.relay_failures.arn]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_sqs_queue_policy" "relay_failures" {
  queue_url = aws_sqs_queue.relay_failures.url
  policy    = data.aws_iam_policy_document.relay_failures.json
}

# The sweep publishes, on a schedule, what the stream relay missed.

resource "aws_cloudwatch_log_group" "sweep" {
  name              = "/aws/lambda/${var.name}-sweep"
  retention_in_days = 30
}

resource "aws_iam_role" "sweep" {
  name               = "${var.name}-sweep"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
  tags               = local.tags
}

data "aws_iam_policy_document" "sweep" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.sweep.arn}:*"]
  }
  statement {
    actions   = ["dynamodb:PartiQLUpdate", "dynamodb:UpdateItem"]
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
    actions   = ["dynamodb:DeleteItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["DEAD#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["events:PutEvents"]
    resources = [aws_cloudwatch_event_bus.bus.arn]
    condition {
      test     = "ForAllValues:StringEquals"
      variable = "events:source"
      values   = local.sources
    }
    condition {
      test     = "Null"
      variable = "events:source"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["OUTBOX#*", "DEAD#*", "SWEEP#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:DeleteItem", "dynamodb:PutItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["SWEEP#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["SWEEP"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["dynamodb:DescribeTable"]
    resources = [aws_dynamodb_table.table.arn]
  }
  statement {
    actions   = ["ssm:GetParametersByPath"]
    resources = [local.parameters]
  }
  statement {
    actions   = ["sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.relay_failures.arn]
  }
  statement {
    actions   = ["dynamodb:Query"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["REJECTED#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
}

resource "aws_iam_role_policy" "sweep" {
  role   = aws_iam_role.sweep.name
  policy = data.aws_iam_policy_document.sweep.json
}

resource "aws_lambda_function" "sweep" {
  function_name    = "${var.name}-sweep"
  description      = "Mailroom relay, sweep path"
  filename         = local.zips.sweep
  source_code_hash = filebase64sha256(local.zips.sweep)
  handler          = "index.handler"
  runtime          = var.runtime
  architectures    = ["arm64"]
  memory_size      = 512
  timeout          = 55
  role             = aws_iam_role.sweep.arn
  tags             = local.tags
  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.sweep.name
  }
  environment {
    variables = {
      POWERTOOLS_SERVICE_NAME           = "mailroom-relay"
      POWERTOOLS_METRICS_NAMESPACE      = "Mailroom"
      MAILROOM_TABLE                    = aws_dynamodb_table.table.name
      MAILROOM_BUS                      = aws_cloudwatch_event_bus.bus.name
      MAILROOM_SHARDS                   = local.shards
      MAILROOM_CLAIM_LEASE_MS           = "30000"
      MAILROOM_PUBLISH_TIMEOUT_MS       = "5000"
      MAILROOM_MAX_ATTEMPTS             = "10"
      MAILROOM_PUBLISHED_RETENTION_DAYS = "7"
      MAILROOM_SWEEP_EVERY_MS           = "60000"
      MAILROOM_SOURCES                  = jsonencode(local.sources)
    }
  }
  depends_on = [aws_iam_role_policy.sweep]
}

resource "aws_lambda_function_event_invoke_config" "sweep" {
  function_name                = aws_lambda_function.sweep.function_name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0
}

resource "aws_cloudwatch_event_rule" "sweep_schedule" {
  name                = "${var.name}-sweep-schedule"
  description         = "Runs the sweep of the Mailroom outbox."
  schedule_expression = "rate(1 minute)"
}

resource "aws_cloudwatch_event_target" "sweep_schedule" {
  rule  = aws_cloudwatch_event_rule.sweep_schedule.name
  arn   = aws_lambda_function.sweep.arn
  input = jsonencode(local.scheduled)
  retry_policy {
    maximum_event_age_in_seconds = 60
    maximum_retry_attempts       = 0
  }
}

resource "aws_lambda_permission" "sweep_schedule" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.sweep.arn
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.sweep_schedule.arn
}
