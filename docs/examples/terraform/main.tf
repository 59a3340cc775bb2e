terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100"
    }
  }
}

variable "name" {
  description = "Begins the names of all parts; the mailroom command shows it as the stack."
  type        = string
  default     = "shop"
}

variable "runtime" {
  description = "Versions of the AWS provider that do not know nodejs24.x accept nodejs22.x, which runs the same code."
  type        = string
  default     = "nodejs24.x"
}

locals {
  # The queues' policies recognize the roles of this Mailroom by the tag.
  tags = { mailroom = var.name }

  # The sources that the relay publishes. Events of any other source stay unpublished.
  sources = ["mailroom", "orders"]

  shards        = "8"
  born_lease_ms = "30000"

  scheduled = { scheduled = true }

  parameters     = "arn:${data.aws_arn.table.partition}:ssm:${data.aws_arn.table.region}:${data.aws_arn.table.account}:parameter/mailroom/${aws_dynamodb_table.table.name}"
  bus_parameters = "arn:${data.aws_arn.table.partition}:ssm:${data.aws_arn.table.region}:${data.aws_arn.table.account}:parameter/mailroom-buses/${aws_cloudwatch_event_bus.bus.name}"
  rules          = "arn:${data.aws_arn.table.partition}:events:${data.aws_arn.table.region}:${data.aws_arn.table.account}:rule/${aws_cloudwatch_event_bus.bus.name}/*"
}

data "aws_arn" "table" {
  arn = aws_dynamodb_table.table.arn
}

data "aws_iam_policy_document" "lambda" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

output "table_name" {
  value = aws_dynamodb_table.table.name
}

output "place_order_function" {
  value = aws_lambda_function.place_order.function_name
}
