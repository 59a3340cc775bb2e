"""Applies the transform of SAM to the template at the standard input."""

import json
import sys

from boto3 import Session
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

template = json.load(sys.stdin)
session = Session(region_name="us-east-1")
print(json.dumps(Translator({}, Parser(), boto_session=session).translate(template, {})))
