# The directory: where the sweep, the audit and the mailroom command find the parts.

locals {
  directory = {
    stack          = var.name
    table          = aws_dynamodb_table.table.name
    bus            = aws_cloudwatch_event_bus.bus.name
    shards         = 8
    streamFunction = aws_lambda_function.stream_relay.function_name
    sweepFunction  = aws_lambda_function.sweep.function_name
    sweepRule      = aws_cloudwatch_event_rule.sweep_schedule.name
    failureQueue   = aws_sqs_queue.relay_failures.url
    sources        = local.sources
    schema         = 1
  }
  receipts_directory = {
    stack              = var.name
    name               = "receipts"
    service            = "receipts"
    events             = local.receipts_events
    rule               = aws_cloudwatch_event_rule.receipts_rule.name
    queue              = aws_sqs_queue.receipts_queue.url
    deadLetterQueue    = aws_sqs_queue.receipts_dead_letters.url
    undeliveredQueue   = aws_sqs_queue.receipts_undelivered.url
    function           = aws_lambda_function.receipts.function_name
    domainKeys         = ["RECEIPT#*"]
    maxAttempts        = 10
    batchSize          = 10
    inboxRetentionDays = 35
    schema             = 1
  }
  mailroom_owner = { stack = var.name, owner = "Shop/Mailroom" }
  receipts_owner = { stack = var.name, owner = "Shop/Receipts" }
}

resource "aws_ssm_parameter" "directory_entry" {
  name  = "/mailroom/${aws_dynamodb_table.table.name}/mailroom"
  type  = "String"
  tier  = "Intelligent-Tiering"
  value = jsonencode(local.directory)
}

resource "aws_ssm_parameter" "receipts_directory_entry" {
  name  = "/mailroom/${aws_dynamodb_table.table.name}/consumers/receipts"
  type  = "String"
  tier  = "Intelligent-Tiering"
  value = jsonencode(local.receipts_directory)
}

resource "aws_ssm_parameter" "claim_orders" {
  name  = "/mailroom-buses/${aws_cloudwatch_event_bus.bus.name}/services/orders"
  type  = "String"
  value = jsonencode(local.mailroom_owner)
}

resource "aws_ssm_parameter" "service_orders" {
  name  = "/mailroom/${aws_dynamodb_table.table.name}/services/orders"
  type  = "String"
  value = jsonencode(local.mailroom_owner)
}

resource "aws_ssm_parameter" "attributes" {
  name  = "/mailroom/${aws_dynamodb_table.table.name}/attributes/v1"
  type  = "StringList"
  value = "${aws_cloudwatch_event_bus.bus.name},8,30000,${aws_iam_role.sweep.arn},${aws_dynamodb_table.table.arn},${aws_iam_role.audit.arn}"
}

resource "aws_ssm_parameter" "receipts_claim" {
  name  = "/mailroom-buses/${aws_cloudwatch_event_bus.bus.name}/consumers/${aws_dynamodb_table.table.name}/receipts"
  type  = "String"
  value = jsonencode(local.receipts_owner)
}
