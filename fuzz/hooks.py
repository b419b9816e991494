"""Lists the Schemathesis findings that do not fail the run, each with a reason, and adds our own checks."""

import json
from datetime import datetime, timezone

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.openapi.checks import RejectedPositiveData, UseAfterFree

Problem = dict[str, str | int | None]
REPLAY = "/v1/rejections/replay"
CHANGES = "/v1/changes"
REPORT = "/v1/reports/recommendations"
LAKE_FILES = "/v1/lake/{table}/files"
LAKE_FILE = "/v1/lake/{table}/files/{file_id}"
AUDIT = "/admin/v1/audit"
ORGANISATION = "/admin/v1/organisations/{slug}"
JSON_LINES = "application/x-ndjson"
# The schema of a line in an access request's download. The record can be of any type.
COLLECTED = {
    "type": "object",
    "required": ["type", "id", "record"],
    "properties": {"type": {"type": "string"}, "id": {"type": "string"}, "record": {"type": "object"}},
}

# ---- Exceptions: this is the complete list. The docstring of each function is the reason. ---------------------------


def unknown_reference(case: Case, problem: Problem) -> bool:
    """Only the database knows whether a record exists or a person was erased, and a schema cannot express that."""
    return problem["code"] in ("reference_not_found", "erased")


def excluded_by_another(case: Case, problem: Problem) -> bool:
    """A schema cannot express that parameters and headers exclude each other."""
    return problem["code"] == "not_combinable"


def origins_of_a_browser_key(case: Case, problem: Problem) -> bool:
    """Origins are required if `browser` is true, but client generators do not support a schema that expresses this."""
    return problem["code"] == "required" and problem["field"] == "origins"


def in_the_past(case: Case, problem: Problem) -> bool:
    """A schema cannot express that a time must be in the future."""
    return problem["code"] == "out_of_range" and problem["field"] == "expires_at"


def beyond_the_calendar(case: Case, problem: Problem) -> bool:
    """A schema cannot express that a date-time with an offset must be within the years 1 to 9999 in UTC."""
    value = value_of(case, problem)
    try:
        datetime.fromisoformat(value.upper()).astimezone(timezone.utc)
    except OverflowError:
        return problem["code"] == "invalid_format"
    except (AttributeError, ValueError):
        pass
    return False


def cursor_of_nobody(case: Case, problem: Problem) -> bool:
    """These cursors (change feed, replays, report, lake and audit log) are signed, so generated cursors are refused."""
    signed = {CHANGES: "after", REPLAY: "cursor", REPORT: "cursor", LAKE_FILES: "cursor", AUDIT: "cursor"}
    return signed.get(case.operation.path) == problem["field"] and problem["code"] == "invalid_format"


def not_as_browsers_send_it(case: Case, problem: Problem) -> bool:
    """A schema cannot express how browsers write an origin: they never send https://example.com:443."""
    return problem["code"] == "invalid_value" and problem["field"] == "origins"


def longer_than_the_service(case: Case, problem: Problem) -> bool:
    """The maximum retention of receipts and rejections is a service setting, so a schema cannot express it."""
    return problem["code"] == "out_of_range" and problem["field"] in ("receipts_kept_days", "rejections_kept_days")


def files_of_a_run(case: Case, problem: Problem) -> bool:
    """A schema cannot express which files a run has, that their names have no folders, or which parameters belong together."""
    if problem["field"] == "files":
        return problem["code"] == "invalid_value" and case.operation.path.startswith("/v1/runs")
    return problem["field"] in ("run_id", "file") and problem["code"] in ("required", "invalid_value")


def left_out_of_a_merge(case: Case, problem: Problem) -> bool:
    """Which fields a record may leave out depends on a parameter, and for merged records on what is stored."""
    is_upload = case.operation.path.startswith("/v1/data/")
    return is_upload and problem["code"] == "required" and value_of(case, problem) is None


# Problems with a request or a record that the description allows.
PROBLEMS_EXCEPTED = [
    unknown_reference,
    excluded_by_another,
    origins_of_a_browser_key,
    in_the_past,
    beyond_the_calendar,
    cursor_of_nobody,
    not_as_browsers_send_it,
    longer_than_the_service,
    files_of_a_run,
    left_out_of_a_merge,
]


def key_used_before(case: Case, response: Response) -> bool:
    """The Idempotency-Key was already used with a different body, which the service has to refuse."""
    return response.status_code == 422 and "Idempotency-Key" in case.headers


def failed_again(case: Case, response: Response) -> bool:
    """A replay checks records that failed before and may fail again, but the request itself is valid."""
    return case.operation.path == REPLAY and "batches" in body_of(response)


def only_excepted_problems(case: Case, response: Response) -> bool:
    """All problems in the answer are exceptions listed above."""
    return bool(problems_of(response)) and not unexcepted(case, response)


def outside_of_the_file(case: Case, response: Response) -> bool:
    """A schema cannot express a file's length."""
    return response.status_code == 416 and "Range" in case.headers


# Refusals of requests that the description allows.
REFUSALS_EXCEPTED = [key_used_before, failed_again, only_excepted_problems, outside_of_the_file]


def too_long_for_any_header(case: Case, response: Response) -> bool:
    """A parameter may exceed the limit for the URL and all headers together. The request is then refused unread."""
    return response.status_code == 431


def failed_records_named(case: Case, response: Response) -> bool:
    """Each record in an upload is checked separately. Invalid records fail, and the others are stored."""
    return response.status_code == 207 and bool(problems_of(response))


def range_of_another_kind(case: Case, response: Response) -> bool:
    """HTTP requires servers to ignore a range in other units, and a range whose If-Range does not match the ETag."""
    return case.operation.path == LAKE_FILE and response.status_code == 200


# Requests that the description does not allow, and whose answers are not the ones that Schemathesis expects.
ACCEPTANCES_EXCEPTED = [too_long_for_any_header, failed_records_named, range_of_another_kind]


def deleted_and_shown(case: Case) -> bool:
    """A deleted organisation can be restored, so it is shown as deleted until it is removed."""
    return case.operation.path.startswith(ORGANISATION)


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Returns whether the finding counts as a failure."""
    if isinstance(failure, RejectedPositiveData):
        return not any(excepted(case, response) for excepted in REFUSALS_EXCEPTED)
    if isinstance(failure, AcceptedNegativeData):
        return not any(excepted(case, response) for excepted in ACCEPTANCES_EXCEPTED)
    if isinstance(failure, UseAfterFree):
        return not deleted_and_shown(case)
    return True


# ---- Our own checks -------------------------------------------------------------------------------------------------


@schemathesis.check
def described_records_are_stored(ctx: CheckContext, response: Response, case: Case) -> None:
    """Schemathesis treats a 207 as a success, so this check reports each failed record."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 207:
        return
    # A replay's records are not in the request.
    refused = [] if case.operation.path == REPLAY else unexcepted(case, response)
    assert not refused, f"records failed that the description allows: {refused}"


@schemathesis.hook
def before_load_schema(context: HookContext, raw_schema: dict) -> None:
    """The description allows additional fields, so that clients accept later additions. In a test, such fields are mistakes.
    """
    closed = set()

    def close(schema: object) -> None:
        if isinstance(schema, list):
            for one in schema:
                close(one)
        if not isinstance(schema, dict):
            return
        name = schema.get("$ref", "").removeprefix("#/components/schemas/")
        if name and name not in closed:
            closed.add(name)
            close(raw_schema["components"]["schemas"][name])
        if schema.get("type") == "object" and "properties" in schema:
            schema["unevaluatedProperties"] = False
            for one in schema["properties"].values():
                close(one)
        for keyword in ("items", "oneOf"):
            close(schema.get(keyword))

    responses = list(raw_schema["components"]["responses"].values())
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            responses += operation["responses"].values()
    for response in responses:
        content = response.get("content", {})
        if JSON_LINES in content and "application/json" in content:
            # A page contains the same items as the lines, so each line is validated against the schema of a record or an
            # interaction.
            page = content["application/json"]["schema"]["$ref"].removeprefix("#/components/schemas/")
            lists = raw_schema["components"]["schemas"][page]["properties"]
            content[JSON_LINES]["schema"] = next(lists[name] for name in ("records", "interactions", "changes") if name in lists)
        elif JSON_LINES in content:
            content[JSON_LINES]["schema"] = {"type": "array", "items": COLLECTED}
        for described in content.values():
            close(described["schema"])


@schemathesis.deserializer(JSON_LINES)
def read_lines(ctx, response: Response) -> list:
    # splitlines() would also split at characters inside a record.
    *lines, rest = response.content.decode("utf-8").split("\n")
    assert rest == "", "the last line is not whole"
    return [json.loads(line) for line in lines]


@schemathesis.deserializer("application/vnd.apache.parquet")
def read_file(ctx, response: Response) -> str:
    return response.content.decode("latin-1")


def body_of(response: Response) -> dict:
    try:
        return dict_of(json.loads(response.content))
    except ValueError:
        return {}


def problems_of(response: Response) -> list[Problem]:
    """Returns the problems with the request or its records in an answer, each with its code and field."""
    body = body_of(response)
    return [
        *body.get("details", []),
        *(error for batch in body.get("batches", []) for error in batch["data"]["errors"]),
    ]


def unexcepted(case: Case, response: Response) -> list[Problem]:
    return [
        problem
        for problem in problems_of(response)
        if not any(excepted(case, problem) for excepted in PROBLEMS_EXCEPTED)
    ]


def value_of(case: Case, problem: Problem) -> object:
    """Returns the value that was sent in the field with the problem."""
    sent = case.body["records"][problem["index"]] if "index" in problem else {**case.query, **dict_of(case.body)}
    return dict_of(sent).get(problem["field"])


def dict_of(value: object) -> dict:
    return value if isinstance(value, dict) else {}
