"""Runs MiniStack. With `--with-parent`, it ends when the process that started it does.

The second argument is a mark by which `npm run local:stop` knows this process from another one that may have got
its number since.

MiniStack answers any `Host`, any `Origin` and any user of the machine. Everyone who reaches it can create a function, which
runs code as the developer. The guard below refuses requests that a web page or another user can send.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import threading
from urllib.parse import parse_qs


def end_with_parent() -> None:
    # Standard input is a pipe from the parent. It ends when the parent does, even when that was killed.
    while os.read(0, 4096):
        pass
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    if os.getpgrp() == os.getpid():
        # The whole group: MiniStack and the Node processes that it runs the functions in.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


if "--with-parent" in sys.argv:
    threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = sys.argv[:1]

import hypercorn.asyncio as hypercorn  # noqa: E402
import ministack.app as ministack  # noqa: E402
import uvicorn  # noqa: E402
from hypercorn.app_wrappers import ASGIWrapper  # noqa: E402
from hypercorn.asyncio.tcp_server import TCPServer  # noqa: E402
from hypercorn.asyncio.worker_context import WorkerContext  # noqa: E402
from ministack.services import dynamodb, eventbridge, stepfunctions  # noqa: E402
from ministack.services.cloudformation import drift, provisioners  # noqa: E402
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: E402

# Hosts that are served without further proof: no page and no DNS server can point them elsewhere. By the name of a function URL or
# of an API (MiniStack's ids), MiniStack calls that function or API and no service.
OWN_HOST = re.compile(
    rb"(?:127\.0\.0\.1|\[::1\]|localhost|[0-9a-f]{8}\.execute-api\.127\.0\.0\.1"
    rb"|(?:[a-z0-9]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.lambda-url\.[a-z0-9-]+\.(?:on\.aws|localhost|127\.0\.0\.1)"
    rb")(?::\d{1,5})?",
    re.IGNORECASE,
)

# Hosts that are served with an `Authorization` header: a page of another site can send one only with an Origin. S3 puts the bucket
# before the name. LocalStack's name resolves to 127.0.0.1 in public DNS, and browsers send no `Sec-Fetch-Site` to it, because it is
# not a trustworthy origin. A signature in the query does not count: a page can write any.
SIGNED_HOST = re.compile(
    rb"(?:[a-z0-9_-]+\.)*(?:127\.0\.0\.1|localhost|localhost\.localstack\.cloud)(?::\d{1,5})?",
    re.IGNORECASE,
)

# What a browser says of a request that no page of another site caused: one that was typed, or one of the engine's own pages.
OWN_FETCHES = {b"none", b"same-origin"}


def refusal(scope: dict) -> "str | None":
    """Why a request is refused: a web page or another user may have sent it, or its host is not this machine (DNS rebinding)."""
    headers = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    sites = headers.get(b"sec-fetch-site", [])
    agents = headers.get(b"user-agent", [])
    hosts = headers.get(b"host", [])
    signed = b"authorization" in headers
    if b"origin" in headers:
        return "The local AWS does not serve web pages: this request has an Origin header."
    if any(site not in OWN_FETCHES for site in sites):
        return "The local AWS does not serve web pages: a page of another site caused this request."
    if not sites and (b"referer" in headers or any(b"mozilla/" in agent.lower() for agent in agents)):
        return (
            "The local AWS does not serve web pages: this request has the Referer or the User-Agent of a browser, but not its "
            "Sec-Fetch-Site. Use a current browser, and the name 127.0.0.1 or localhost."
        )
    if len(hosts) != 1 or not (OWN_HOST.fullmatch(hosts[0]) or SIGNED_HOST.fullmatch(hosts[0])):
        return "The local AWS serves this machine only: the Host header must name it, e.g. 127.0.0.1 or localhost."
    if not signed and not OWN_HOST.fullmatch(hosts[0]):
        return "The local AWS serves this Host only with an Authorization header: use 127.0.0.1, or sign the request."
    # The query protocol: a link or an image can carry such a request, and a page that the engine serves could sign one.
    if (sites or not signed) and "Action" in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        return "The local AWS serves an Action in the query only with an Authorization header, and not to a browser: sign the request."
    if not is_own_user(scope["client"], scope["server"]):
        return f"The local AWS serves only the user who started it (uid {os.getuid()}) and root."
    return None


# sock_diag(7)
SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, ANY = 4, 20, 1, 0xFFFFFFFF


def owner(client: tuple, server: tuple) -> "int | None":
    """The uid that owns the client's end of a connection over IPv4; None if it has been closed. As the kernel of Linux has it."""
    ends = struct.pack("!HH16s16s", client[1], server[1], socket.inet_aton(client[0]), socket.inet_aton(server[0]))
    wanted = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ANY) + ends + struct.pack("=III", 0, ANY, ANY)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(wanted), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + wanted)
        answer = kernel.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != SOCK_DIAG_BY_FAMILY:
        return None
    uid, inode = struct.unpack_from("=II", answer, 16 + 64)
    return uid if inode else None  # a closed socket has no inode, and 0 as its uid


def knows_owners() -> bool:
    """True if this kernel names the owner of a connection: Linux, unless it was built without `inet_diag`."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            return owner(client.getsockname(), server.getsockname()) == os.getuid()
    except (AttributeError, OSError):
        return False


KNOWS_OWNERS = knows_owners()


def is_own_user(client: tuple, server: tuple) -> bool:
    """True for the user who started the engine, and for root, which can act as that user anyway."""
    return not KNOWS_OWNERS or owner(client, server) in (os.getuid(), 0)


engine = ministack.app


async def guarded(scope, receive, send):
    """MiniStack, behind the refusals."""
    why = None if scope["type"] == "lifespan" else refusal(scope)
    if why is None:
        await engine(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered with 403
    else:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": f"{why}\n".encode()})


def with_table_settings(provision, properties_at: int):
    """MiniStack's CloudFormation creates tables without the TTL and the policy of the template, so this adds them."""

    def provision_table(*args, **named):
        name, attributes = provision(*args, **named)
        apply_table_settings(name, args[properties_at])
        return name, attributes

    return provision_table


def apply_table_settings(name: str, properties: dict) -> None:
    """Sets the TTL and the policy of a table as its template has them; none if the template has none."""
    arn = dynamodb._tables[name]["TableArn"]
    dynamodb._ttl_settings.pop(name, None)
    dynamodb._resource_policies.pop(arn, None)
    ttl = properties.get("TimeToLiveSpecification") or {}
    if str(ttl.get("Enabled")).lower() == "true":
        check(dynamodb._update_ttl({"TableName": name, "TimeToLiveSpecification": {**ttl, "Enabled": True}}))
    # A global table has a policy for each replica. The engine has one region.
    holder = (properties.get("Replicas") or [properties])[0]
    policy = (holder.get("ResourcePolicy") or {}).get("PolicyDocument")
    if policy:
        check(dynamodb._put_resource_policy({"ResourceArn": arn, "Policy": json.dumps(policy)}))


def with_bus_policy(provision, properties_at: int):
    """MiniStack's CloudFormation creates buses without the policy of the template, so this adds it."""

    def provision_bus(*args, **named):
        name, attributes = provision(*args, **named)
        policy = args[properties_at].get("Policy")
        if policy:
            eventbridge._event_bus_policies[name] = policy
        else:
            eventbridge._event_bus_policies.pop(name, None)
        return name, attributes

    return provision_bus


def with_bus_in_id(provision, properties_at: int):
    """CloudFormation's id of a rule on a custom bus is `bus|rule`. MiniStack's is the name of the rule."""

    def provision_rule(physical_id, *args, **named):
        result = provision(rule_name(physical_id), *args, **named)
        bus = args[properties_at - 1].get("EventBusName", "default").rsplit("/", 1)[-1]
        return (result[0] if bus == "default" else f"{bus}|{result[0]}", *result[1:])

    return provision_rule


def rule_name(physical_id: str) -> str:
    return physical_id.rsplit("|", 1)[-1]


def create_bus_policy(_logical_id: str, properties: dict, _stack: str):
    """MiniStack's CloudFormation has no event bus policies. The engine stores their statements and, like every policy, does not enforce them."""
    bus, statement_id = properties["EventBusName"], properties["StatementId"]
    if bus not in eventbridge._event_buses:
        raise ValueError(f"Event bus {bus} does not exist.")
    policy = eventbridge._event_bus_policies.setdefault(bus, {"Version": "2012-10-17", "Statement": []})
    others = [statement for statement in policy["Statement"] if statement.get("Sid") != statement_id]
    policy["Statement"] = [*others, properties["Statement"]]
    return f"{bus}|{statement_id}", {}


def update_bus_policy(_physical_id: str, _old: dict, properties: dict, stack: str):
    return create_bus_policy("", properties, stack)


def delete_bus_policy(_physical_id: str, properties: dict) -> None:
    policy = eventbridge._event_bus_policies.get(properties["EventBusName"], {"Statement": []})
    policy["Statement"] = [one for one in policy["Statement"] if one.get("Sid") != properties["StatementId"]]


def check(answer: tuple) -> None:
    if answer[0] >= 400:
        raise ValueError(answer[2].decode())


for kind in ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"):
    handlers = provisioners._RESOURCE_HANDLERS[kind]
    handlers["create"] = with_table_settings(handlers["create"], 1)  # logical id, properties, stack
    handlers["update"] = with_table_settings(handlers["update"], 2)  # physical id, old properties, new properties, stack

handlers = provisioners._RESOURCE_HANDLERS["AWS::Events::EventBus"]
handlers["create"] = with_bus_policy(handlers["create"], 1)
handlers["update"] = with_bus_policy(handlers["update"], 2)

handlers = provisioners._RESOURCE_HANDLERS["AWS::Events::Rule"]
delete_rule = handlers["delete"]
handlers["create"] = with_bus_in_id(handlers["create"], 1)
handlers["update"] = with_bus_in_id(handlers["update"], 2)
handlers["delete"] = lambda physical_id, properties: delete_rule(rule_name(physical_id), properties)
read_rule, rule_members = drift._DRIFT_READERS["AWS::Events::Rule"]
drift._DRIFT_READERS["AWS::Events::Rule"] = (lambda physical_id, properties: read_rule(rule_name(physical_id), properties), rule_members)

provisioners._RESOURCE_HANDLERS["AWS::Events::EventBusPolicy"] = {
    "create": create_bus_policy,
    "update": update_bus_policy,
    "delete": delete_bus_policy,
}


partiql_select = dynamodb._partiql_select


def select_partitions(table: dict, parsed: dict):
    """MiniStack tests every item of the table. DynamoDB reads only the partitions that the statement names."""
    named = [values for name, op, values in parsed["conditions"] if name == table["pk_name"] and op == "IN"]
    if named:
        keys = {next(iter(value.values())) for value in named[0]}
        table = {**table, "items": {key: table["items"][key] for key in keys if key in table["items"]}}
    return partiql_select(table, parsed)


dynamodb._partiql_select = select_partitions


start_execution = stepfunctions._start_execution


def start_or_attach(data: dict):
    """MiniStack refuses each name that an execution has. Step Functions answers with the execution if it runs and has the same input."""
    machine = stepfunctions._resolve_state_machine_arn(data.get("stateMachineArn", ""))
    for execution in stepfunctions._executions.values():
        if (execution["stateMachineArn"], execution["name"]) == (machine, data.get("name")):
            if execution["status"] == "RUNNING" and execution["input"] == data.get("input", "{}"):
                return stepfunctions.json_response({key: execution[key] for key in ("executionArn", "startDate")})
    return start_execution(data)


stepfunctions._start_execution = start_or_attach


# RFC 9113, 3.4: the first line of a connection over HTTP/2.
PREFACE = b"PRI * HTTP/2.0\r\n"


class EitherVersion(HttpToolsProtocol):
    """HTTP/1.1. A connection that begins with HTTP/2, such as one of the SDK to Kinesis, is handed to MiniStack's own server."""

    hypercorn_config = None
    is_new = True
    begun = b""

    def data_received(self, data: bytes) -> None:
        if self.is_new:
            data = self.begun = self.begun + data
            if len(data) < len(PREFACE) and PREFACE.startswith(data):
                return  # a part of either version, e.g. the P of POST
            self.is_new = False
            if data.startswith(PREFACE):
                self.hand_over(data)
                return
        super().data_received(data)

    def hand_over(self, data: bytes) -> None:
        self.connections.discard(self)
        reader = asyncio.StreamReader(loop=self.loop)
        streams = asyncio.StreamReaderProtocol(reader, self.serve_http2, loop=self.loop)
        self.transport.set_protocol(streams)
        streams.connection_made(self.transport)
        streams.data_received(data)

    async def serve_http2(self, reader, writer) -> None:
        await TCPServer(ASGIWrapper(guarded), self.loop, self.hypercorn_config, WorkerContext(None), {}, reader, writer)


async def serve(app, config) -> None:
    """MiniStack's own server, Hypercorn, parses HTTP in Python, which takes more of the processor than most requests do."""
    EitherVersion.hypercorn_config = config
    host, port = config.bind[0].rsplit(":", 1)
    settings = uvicorn.Config(
        app,
        host=host,
        port=int(port),
        http=EitherVersion,
        ws="wsproto",
        lifespan="on",
        timeout_keep_alive=config.keep_alive_timeout,
        timeout_graceful_shutdown=1,
        date_header=False,  # MiniStack's answers have a date
        server_header=False,
        proxy_headers=False,
        access_log=False,
        log_config=None,
    )
    await uvicorn.Server(settings).serve()


ministack.app = guarded
hypercorn.serve = serve
ministack.main()
