# The producer. It is deployed after the relay, so that every event written has a relay to publish it.

resource "aws_cloudwatch_log_group" "place_order" {
  name              = "/aws/lambda/${var.name}-place-order"
  retention_in_days = 30
}

resource "aws_iam_role" "place_order" {
  name               = "${var.name}-place-order"
  assume_role_policy = data.aws_iam_policy_document.lambda.json
  tags               = local.tags
}

data "aws_iam_policy_document" "place_order" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.place_order.arn}:*"]
  }
  statement {
    actions   = ["dynamodb:PutItem", "dynamodb:UpdateItem"]
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
      values   = ["ORDER#*"]
    }
    condition {
      test     = "Null"
      variable = "dynamodb:LeadingKeys"
      values   = ["false"]
    }
  }
}

resource "aws_iam_role_policy" "place_order" {
  role   = aws_iam_role.place_order.name
  policy = data.aws_iam_policy_document.place_order.json
}

resource "aws_lambda_function" "place_order" {
  function_name    = "${var.name}-place-order"
  filename         = local.zips.place_order
  source_code_hash = filebase64sha256(local.zips.place_order)
  handler          = "index.handler"
  runtime          = var.runtime
  architectures    = ["arm64"]
  memory_size      = 512
  timeout          = 30
  role             = aws_iam_role.place_order.arn
  tags             = local.tags
  logging_config {
    log_format = "JSON"
    log_group  = aws_cloudwatch_log_group.place_order.name
  }
  environment {
    variables = {
      POWERTOOLS_SERVICE_NAME      = "orders"
      POWERTOOLS_METRICS_NAMESPACE = "Mailroom"
      MAILROOM_SERVICE             = "orders"
      MAILROOM_TABLE               = aws_dynamodb_table.table.name
      MAILROOM_SHARDS              = local.shards
      MAILROOM_BORN_LEASE_MS       = local.born_lease_ms
      MAILROOM_PUBLISHES           = jsonencode(["OrderPlaced"])
    }
  }
  depends_on = [
    aws_iam_role_policy.place_order,
    aws_lambda_event_source_mapping.stream_relay,
    aws_cloudwatch_event_target.sweep_schedule,
    aws_lambda_permission.sweep_schedule,
  ]
}
