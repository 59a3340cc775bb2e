locals {
  built = "${path.module}/../handlers/node_modules/cdk-mailroom/dist/functions"

  # Mailroom's functions come built with the package; `npm run build` in ../handlers bundles your own.
  folders = {
    stream_relay = "${local.built}/relay-stream"
    sweep        = "${local.built}/relay-sweep"
    audit        = "${local.built}/audit"
    place_order  = "${path.module}/../handlers/dist/place-order"
    receipts     = "${path.module}/../handlers/dist/receipts"
  }

  zips = { for name, archive in data.archive_file.code : name => archive.output_path }
}

data "archive_file" "code" {
  for_each    = local.folders
  type        = "zip"
  source_dir  = each.value
  output_path = "${path.module}/.terraform/${each.key}.zip"
}
