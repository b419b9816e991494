"""What Schemathesis may find without failing the run, each with its reason, and what is checked besides."""

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
AUDIT = "/admin/v1/audit"
ORGANISATION = "/admin/v1/organisations/{slug}"
JSON_LINES = "application/x-ndjson"
# A line of what was collected for an access request: the record is of any type.
COLLECTED = {
    "type": "object",
    "required": ["type", "id", "record"],
    "properties": {"type": {"type": "string"}, "id": {"type": "string"}, "record": {"type": "object"}},
}

# ---- Exceptions: these are all. The text of each is its reason. ----------------------------------------------------


def unknown_reference(case: Case, problem: Problem) -> bool:
    """Whether something exists, or somebody was erased, is known to the database, not to a schema."""
    return problem["code"] in ("reference_not_found", "erased")


def excluded_by_another(case: Case, problem: Problem) -> bool:
    """A schema has no words for parameters and headers that exclude each other."""
    return problem["code"] == "not_combinable"


def origins_of_a_browser_key(case: Case, problem: Problem) -> bool:
    """Origins are required if `browser` is true; generators of clients do not understand a schema that says so."""
    return problem["code"] == "required" and problem["field"] == "origins"


def in_the_past(case: Case, problem: Problem) -> bool:
    """A schema does not know what time it is."""
    return problem["code"] == "out_of_range" and problem["field"] == "expires_at"


def beyond_the_calendar(case: Case, problem: Problem) -> bool:
    """A schema cannot say that a date-time with an offset lies in the years 1 to 9999 once it is in UTC."""
    value = value_of(case, problem)
    try:
        datetime.fromisoformat(value.upper()).astimezone(timezone.utc)
    except OverflowError:
        return problem["code"] == "invalid_format"
    except (AttributeError, ValueError):
        pass
    return False


def cursor_of_nobody(case: Case, problem: Problem) -> bool:
    """Cursors of the change feed, of replays, of the report and of the audit log are signed, so none can be made up."""
    signed = {CHANGES: "after", REPLAY: "cursor", REPORT: "cursor", AUDIT: "cursor"}
    return signed.get(case.operation.path) == problem["field"] and problem["code"] == "invalid_format"


def not_as_browsers_send_it(case: Case, problem: Problem) -> bool:
    """A schema cannot say how a browser writes an origin: https://example.com:443 is one that it never sends."""
    return problem["code"] == "invalid_value" and problem["field"] == "origins"


def longer_than_the_service(case: Case, problem: Problem) -> bool:
    """For how long the service itself keeps receipts and rejections is a setting, which a schema does not know."""
    return problem["code"] == "out_of_range" and problem["field"] in ("receipts_kept_days", "rejections_kept_days")


# A problem of a request or a record that the description allows.
PROBLEMS_EXCEPTED = [
    unknown_reference,
    excluded_by_another,
    origins_of_a_browser_key,
    in_the_past,
    beyond_the_calendar,
    cursor_of_nobody,
    not_as_browsers_send_it,
    longer_than_the_service,
]


def key_used_before(case: Case, response: Response) -> bool:
    """The Idempotency-Key came before with another body: refusing that is what the key is for."""
    return response.status_code == 422 and "Idempotency-Key" in case.headers


def failed_again(case: Case, response: Response) -> bool:
    """A replay judges records that failed before and may fail again; the request itself was sound."""
    return case.operation.path == REPLAY and "batches" in body_of(response)


def only_excepted_problems(case: Case, response: Response) -> bool:
    """Every problem it names is excepted above."""
    return bool(problems_of(response)) and not unexcepted(case, response)


# A request that the description allows and the service refuses.
REFUSALS_EXCEPTED = [key_used_before, failed_again, only_excepted_problems]


def too_long_for_any_header(case: Case, response: Response) -> bool:
    """A parameter can be longer than the address and all headers together may be; that is refused unread."""
    return response.status_code == 431


def failed_records_named(case: Case, response: Response) -> bool:
    """Each record of an upload is judged by itself: the bad ones fail, the others are stored."""
    return response.status_code == 207 and bool(problems_of(response))


# A request that the description does not allow, and that is answered otherwise than Schemathesis expects.
ACCEPTANCES_EXCEPTED = [too_long_for_any_header, failed_records_named]


def deleted_and_shown(case: Case) -> bool:
    """An organisation that was deleted is shown, as deleted, until it is removed: it can be restored."""
    return case.operation.path.startswith(ORGANISATION)


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Whether it counts as a failure."""
    if isinstance(failure, RejectedPositiveData):
        return not any(excepted(case, response) for excepted in REFUSALS_EXCEPTED)
    if isinstance(failure, AcceptedNegativeData):
        return not any(excepted(case, response) for excepted in ACCEPTANCES_EXCEPTED)
    if isinstance(failure, UseAfterFree):
        return not deleted_and_shown(case)
    return True


# ---- Checks beyond those of Schemathesis ---------------------------------------------------------------------------


@schemathesis.check
def described_records_are_stored(ctx: CheckContext, response: Response, case: Case) -> None:
    """To Schemathesis 207 is a success; here each failed record counts."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 207:
        return
    # The records of a replay are not those of the request.
    refused = [] if case.operation.path == REPLAY else unexcepted(case, response)
    assert not refused, f"records failed that the description allows: {refused}"


@schemathesis.hook
def before_load_schema(context: HookContext, raw_schema: dict) -> None:
    """Clients must not mind fields that are added later, so the description allows them; here they are mistakes."""
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
            # A page holds what is on the lines: each of them is held against the schema of a record or an interaction.
            page = content["application/json"]["schema"]["$ref"].removeprefix("#/components/schemas/")
            lists = raw_schema["components"]["schemas"][page]["properties"]
            content[JSON_LINES]["schema"] = next(lists[name] for name in ("records", "interactions", "changes") if name in lists)
        elif JSON_LINES in content:
            content[JSON_LINES]["schema"] = {"type": "array", "items": COLLECTED}
        for described in content.values():
            close(described["schema"])


@schemathesis.deserializer(JSON_LINES)
def read_lines(ctx, response: Response) -> list:
    # Not splitlines(), which takes characters within a record for the end of a line.
    *lines, rest = response.content.decode("utf-8").split("\n")
    assert rest == "", "the last line is not whole"
    return [json.loads(line) for line in lines]


def body_of(response: Response) -> dict:
    try:
        return dict_of(json.loads(response.content))
    except ValueError:
        return {}


def problems_of(response: Response) -> list[Problem]:
    """The problems that an answer names, of the request or of its records, each with its code and field."""
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
    """What was sent in the field that has the problem."""
    sent = case.body["records"][problem["index"]] if "index" in problem else {**case.query, **dict_of(case.body)}
    return dict_of(sent).get(problem["field"])


def dict_of(value: object) -> dict:
    return value if isinstance(value, dict) else {}
