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
