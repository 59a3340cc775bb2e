# The consumer: a rule, a queue with its dead-letter queue, and the function.

locals {
  receipts_events = [
    { source = "orders", type = "OrderPlaced" },
    { source = "mailroom", type = "Heartbeat" },
  ]
  receipts_pattern = {
    "$or" = [
      { source = ["orders"], "detail-type" = ["OrderPlaced"] },
      { source = ["mailroom"], "detail-type" = ["Heartbeat"] },
    ]
  }
  # The policies of the queues name the rule without a reference: the rule is created after them.
  receipts_rule          = "arn:${data.aws_arn.table.partition}:events:${data.aws_arn.table.region}:${data.aws_arn.table.account}:rule/${aws_cloudwatch_event_bus.bus.name}/${var.name}-receipts"
  receipts_redrive       = { deadLetterTargetArn = aws_sqs_queue.receipts_dead_letters.arn, maxReceiveCount = 105 }
  receipts_redrive_allow = { redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.receipts_queue.arn] }

  # No other queue may have one of these for its dead-letter queue.
  redrive_deny = { redrivePermission = "denyAll" }
}

resource "aws_sqs_queue" "receipts_queue" {
  name                       = "${var.name}-receipts"
  message_retention_seconds  = 1209600
  sqs_managed_sse_enabled    = true
  visibility_timeout_seconds = 180
  redrive_policy             = jsonencode(local.receipts_redrive)
  tags                       = local.tags
}

resource "aws_sqs_queue_redrive_allow_policy" "receipts_queue" {
  queue_url            = aws_sqs_queue.receipts_queue.url
  redrive_allow_policy = jsonencode(local.redrive_deny)
}

data "aws_iam_policy_document" "receipts_queue" {
  statement {
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.receipts_queue.arn]
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
  statement {
    sid       = "TheRuleSends"
    effect    = "Allow"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.receipts_queue.arn]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [local.receipts_rule]
    }
  }
  statement {
    sid       = "NobodyElseSends"
    effect    = "Deny"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.receipts_queue.arn]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:PrincipalIsAWSService"
      values   = ["false"]
    }
    condition {
      test     = "Null"
      variable = "aws:PrincipalTag/mailroom"
      values   = ["false"]
    }
  }
  statement {
    sid       = "TheAuditLooks"
    effect    = "Allow"
    actions   = ["sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.receipts_queue.arn]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.audit.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "receipts_queue" {
  queue_url = aws_sqs_queue.receipts_queue.url
  policy    = data.aws_iam_policy_document.receipts_queue.json
}

resource "aws_sqs_queue" "receipts_dead_letters" {
  name                      = "${var.name}-receipts-dead-letters"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_redrive_allow_policy" "receipts_dead_letters" {
  queue_url            = aws_sqs_queue.receipts_dead_letters.url
  redrive_allow_policy = jsonencode(local.receipts_redrive_allow)
}

data "aws_iam_policy_document" "receipts_dead_letters" {
  statement {
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.receipts_dead_letters.arn]
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
  statement {
    sid       = "NobodyElseSends"
    effect    = "Deny"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.receipts_dead_letters.arn]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:PrincipalIsAWSService"
      values   = ["false"]
    }
    condition {
      test     = "Null"
      variable = "aws:PrincipalTag/mailroom"
      values   = ["false"]
    }
  }
  statement {
    sid       = "TheAuditLooks"
    effect    = "Allow"
    actions   = ["sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.receipts_dead_letters.arn]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.audit.arn]
    }
  }
  statement {
    sid       = "TheSweepLooksAtDeadLetters"
    effect    = "Allow"
    actions   = ["sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.receipts_dead_letters.arn]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.sweep.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "receipts_dead_letters" {
  queue_url = aws_sqs_queue.receipts_dead_letters.url
  policy    = data.aws_iam_policy_document.receipts_dead_letters.json
}

resource "aws_sqs_queue" "receipts_undelivered" {
  name                      = "${var.name}-receipts-undelivered"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_redrive_allow_policy" "receipts_undelivered" {
  queue_url            = aws_sqs_queue.receipts_undelivered.url
  redrive_allow_policy = jsonencode(local.redrive_deny)
}

data "aws_iam_policy_document" "receipts_undelivered" {
  statement {
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.receipts_undelivered.arn]
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
  statement {
    sid       = "TheRuleSends"
    effect    = "Allow"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.receipts_undelivered.arn]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [local.receipts_rule]
    }
  }
  statement {
    sid       = "NobodyElseSends"
    effect    = "Deny"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.receipts_undelivered.arn]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:PrincipalIsAWSService"
      values   = ["false"]
    }
    condition {
      test     = "Null"
      variable = "aws:PrincipalTag/mailroom"
      values   = ["false"]
    }
  }
  statement {
    sid       = "TheAuditLooks"
    effect    = "Allow"
    actions   = ["sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.receipts_undelivered.arn]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.audit.arn]
    }
  }
  statement {
    sid       = "TheSweepLooksAtDeadLetters"
    effect    = "Allow"
    actions   = ["sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.receipts_undelivered.arn]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.sweep.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "receipts_undelivered" {
  queue_url = aws_sqs_queue.receipts_undelivered.url
  policy    = data.aws_iam_policy_document.receipts_undelivered.json
}

resource "aws_cloudwatch_log_group" "receipts" {
  name              = "/aws/lambda/${var.name}-receipts"
  retention_in_days = 30
}

resource "aws_iam_role" "receipts" {
  name               = "${var.name}-receipts"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
  tags               = local.tags
}

data "aws_iam_policy_document" "receipts" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.receipts.arn}:*"]
  }
  statement {
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["INBOX#receipts#*", "LAST#receipts#*", "LIMIT#receipts#*", "LIMIT##*"]
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
      values   = ["REJECTED#receipts", "FAILED#receipts"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  # To cancel scheduled events.
  statement {
    actions   = ["dynamodb:UpdateItem"]
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
    actions   = ["dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAllValues:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["RECEIPT#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
  statement {
    actions   = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ReceiveMessage"]
    resources = [aws_sqs_queue.receipts_queue.arn]
  }
}

resource "aws_iam_role_policy" "receipts" {
  role   = aws_iam_role.receipts.name
  policy = data.aws_iam_policy_document.receipts.json
}

resource "aws_lambda_function" "receipts" {
  function_name    = "${var.name}-receipts"
  description      = "Mailroom consumer receipts"
  filename         = local.zips.receipts
  source_code_hash = filebase64sha256(local.zips.receipts)
  handler          = "index.handler"
  runtime          = var.runtime
  architectures    = ["arm64"]
  memory_size      = 512
  timeout          = 30
  role             = aws_iam_role.receipts.arn
  tags             = local.tags
  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.receipts.name
  }
  environment {
    variables = {
      POWERTOOLS_SERVICE_NAME        = "receipts"
      POWERTOOLS_METRICS_NAMESPACE   = "Mailroom"
      MAILROOM_SERVICE               = "receipts"
      MAILROOM_TABLE                 = aws_dynamodb_table.table.name
      MAILROOM_SHARDS                = local.shards
      MAILROOM_BORN_LEASE_MS         = local.born_lease_ms
      MAILROOM_PUBLISHES             = jsonencode([])
      MAILROOM_CONSUMER              = "receipts"
      MAILROOM_QUEUE_URL             = aws_sqs_queue.receipts_queue.url
      MAILROOM_LEASE_MS              = "30000"
      MAILROOM_VISIBILITY_TIMEOUT_MS = "180000"
      MAILROOM_MAX_ATTEMPTS          = "10"
      MAILROOM_RETRY_FIRST_MS        = "2000"
      MAILROOM_RETRY_LONGEST_MS      = "900000"
      MAILROOM_MAX_RECEIVES          = "105"
      MAILROOM_INBOX_RETENTION_DAYS  = "35"
    }
  }
  depends_on = [aws_iam_role_policy.receipts]
}

resource "aws_lambda_event_source_mapping" "receipts" {
  function_name           = aws_lambda_function.receipts.function_name
  event_source_arn        = aws_sqs_queue.receipts_queue.arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]
  scaling_config {
    maximum_concurrency = 100
  }
}

# After the function that handles its events, and after the policies: EventBridge does not retry when it lacks permission.
resource "aws_cloudwatch_event_rule" "receipts_rule" {
  name           = "${var.name}-receipts"
  description    = "Events for the consumer receipts."
  event_bus_name = aws_cloudwatch_event_bus.bus.name
  event_pattern  = jsonencode(local.receipts_pattern)
  depends_on = [
    aws_lambda_event_source_mapping.receipts,
    aws_sqs_queue_policy.receipts_queue,
    aws_sqs_queue_policy.receipts_undelivered,
  ]
}

resource "aws_cloudwatch_event_target" "receipts_rule" {
  rule           = aws_cloudwatch_event_rule.receipts_rule.name
  event_bus_name = aws_cloudwatch_event_bus.bus.name
  arn            = aws_sqs_queue.receipts_queue.arn
  dead_letter_config {
    arn = aws_sqs_queue.receipts_undelivered.arn
  }
}
