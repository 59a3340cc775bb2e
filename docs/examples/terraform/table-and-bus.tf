# The table: domain rows, outbox and inbox.

resource "aws_dynamodb_table" "table" {
  name             = "${var.name}-mailroom"
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "PK"
  range_key        = "SK"
  stream_enabled   = true
  stream_view_type = "NEW_IMAGE"
  tags             = local.tags

  deletion_protection_enabled = true

  attribute {
    name = "PK"
    type = "S"
  }
  attribute {
    name = "SK"
    type = "S"
  }
  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }
  point_in_time_recovery {
    enabled = true
  }
}

# A message that is redelivered without its inbox row runs again.
data "aws_iam_policy_document" "table" {
  statement {
    sid    = "InboxRowsAreOnlyUpdated"
    effect = "Deny"
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    actions = [
      "dynamodb:BatchWriteItem",
      "dynamodb:DeleteItem",
      "dynamodb:PartiQLDelete",
      "dynamodb:PartiQLInsert",
      "dynamodb:PutItem",
    ]
    resources = [aws_dynamodb_table.table.arn]
    condition {
      test     = "ForAnyValue:StringLike"
      variable = "dynamodb:LeadingKeys"
      values   = ["INBOX#*", "LAST#*"]
    }
  }
}

resource "aws_dynamodb_resource_policy" "table" {
  resource_arn = aws_dynamodb_table.table.arn
  policy       = data.aws_iam_policy_document.table.json
}

# The bus. Only the relay publishes on it.

resource "aws_cloudwatch_event_bus" "bus" {
  name = "${var.name}-mailroom"
  tags = local.tags
}

data "aws_iam_policy_document" "bus" {
  statement {
    sid    = "OnlyPublishersPut"
    effect = "Deny"
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    actions   = ["events:PutEvents"]
    resources = [aws_cloudwatch_event_bus.bus.arn]
    condition {
      test     = "ArnNotEquals"
      variable = "aws:PrincipalArn"
      values   = [aws_iam_role.stream_relay.arn, aws_iam_role.sweep.arn]
    }
    condition {
      test     = "Bool"
      variable = "aws:PrincipalIsAWSService"
      values   = ["false"]
    }
  }
}

resource "aws_cloudwatch_event_bus_policy" "bus" {
  event_bus_name = aws_cloudwatch_event_bus.bus.name
  policy         = data.aws_iam_policy_document.bus.json
}
